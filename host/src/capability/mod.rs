//! What a guest may call, one file for each WIT package; `state` is what an instance's store holds.
//! Each capability has three lifetimes and a function for each: `link` once for an engine, `grant` once for
//! a guest, `instance` once for a store.

mod outbound_http;
pub(crate) mod state;
mod wasi;

use wasmtime::component::Linker;

pub(crate) use state::State;

use crate::engine::Wasi;

/// Links everything that a guest of this kind may import.
///
/// A WASI 0.3 guest still imports WASI 0.2 through its standard library, so it gets both.
pub(crate) fn link(linker: &mut Linker<State>, wasi: Wasi) -> wasmtime::Result<()> {
    wasi::link(linker, wasi)?;
    outbound_http::link(linker, wasi)
}
