//! `wasi:cli` and what belongs to it (clocks, filesystem, io, random, sockets), always linked, granting
//! nothing: no environment, no files, no sockets, closed stdin. stdout and stderr go to the log.

use wasmtime::component::Linker;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

use super::state::State;
use crate::engine::Wasi;
use crate::telemetry::guest_log::{GuestLog, Stream};

pub(super) fn link(linker: &mut Linker<State>, wasi: Wasi) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    // The same again for `wasi:io`, which needs only the table: through `WasiView`, a guest's first write to
    // its response would make a whole context with four random generators.
    linker.allow_shadowing(true);
    wasmtime_wasi_io::add_to_linker_async(linker)?;
    linker.allow_shadowing(false);
    if wasi == Wasi::P3 {
        wasmtime_wasi::p3::add_to_linker(linker)?;
    }
    Ok(())
}

/// The context of one store.
pub(super) fn instance(log: &GuestLog) -> WasiCtx {
    WasiCtxBuilder::new()
        .stdout(log.stream(Stream::Stdout))
        .stderr(log.stream(Stream::Stderr))
        .allow_tcp(false)
        .allow_udp(false)
        .build()
}
