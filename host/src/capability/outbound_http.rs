//! `wasi:http/outgoing-handler@0.2` and `wasi:http/client@0.3`: linked, and denied, since nothing grants it.

use std::sync::LazyLock;

use http::HeaderName;
use wasmtime::component::Linker;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody,
    WasiHttpHooks,
};

use super::state::State;
use crate::engine::Wasi;

pub(super) fn link(linker: &mut Linker<State>, wasi: Wasi) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    if wasi == Wasi::P3 {
        wasmtime_wasi_http::p3::add_to_linker(linker)?;
    }
    Ok(())
}

/// How `wasi:http` behaves for one store.
#[derive(Debug)]
pub(super) struct Hooks;

type Transmission = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Sending =
    Box<dyn Future<Output = Result<(http::Response<WasiBody>, Transmission), Error>> + Send>;

impl WasiHttpHooks for Hooks {
    // The provided method makes a new closure for each header that it looks at.
    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        is_forbidden(name)
    }

    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        static FILTER: LazyLock<ForbiddenHeaderFilter> =
            LazyLock::new(|| std::sync::Arc::new(is_forbidden));
        FILTER.clone()
    }

    fn send_request(
        &mut self,
        _request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _transmission: Transmission,
    ) -> Sending {
        Box::new(std::future::ready(Err(Error::HttpRequestDenied)))
    }
}

fn is_forbidden(name: &HeaderName) -> bool {
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
}
