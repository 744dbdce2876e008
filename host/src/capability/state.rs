//! What the store of one instance holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, StoreLimits, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};
use wasmtime_wasi_io::IoView;

use super::outbound_http::Hooks;
use crate::config::GuestLimits;
use crate::limits::memory;
use crate::telemetry::guest_log::GuestLog;

/// The data of a store.
pub(crate) struct State {
    table: ResourceTable,
    /// Made when the guest first calls what needs it: most that only answer requests never do.
    wasi: Option<WasiCtx>,
    http: WasiHttpCtx,
    hooks: Hooks,
    limits: StoreLimits,
    log: GuestLog,
}

impl State {
    /// The data of a fresh instance of the guest that is called `guest`.
    pub(crate) fn new(guest: Arc<str>, limits: &GuestLimits) -> Self {
        static INSTANCES: AtomicU64 = AtomicU64::new(0);
        let instance = INSTANCES.fetch_add(1, Ordering::Relaxed);
        Self {
            table: ResourceTable::new(),
            wasi: None,
            http: WasiHttpCtx::new(),
            hooks: Hooks,
            limits: memory::store_limits(limits),
            log: GuestLog::new(guest, instance),
        }
    }

    /// A store whose guest yields at every epoch tick and grows no further than its limits.
    pub(crate) fn into_store(self, engine: &Engine) -> Store<Self> {
        let mut store = Store::new(engine, self);
        store.limiter(|state| &mut state.limits);
        // tokio's own yield lets the I/O driver and all other ready tasks go first, so that guests that
        // only compute never keep a new request from being read.
        store.epoch_deadline_callback(|_| {
            Ok(UpdateDeadline::YieldCustom(
                1,
                Box::pin(tokio::task::yield_now()),
            ))
        });
        store.set_epoch_deadline(1);
        store
    }

    /// The log of this instance's stdout and stderr.
    pub(crate) fn log(&self) -> &GuestLog {
        &self.log
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

impl IoView for State {
    fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: self
                .wasi
                .get_or_insert_with(|| super::wasi::instance(&self.log)),
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.table,
            hooks: &mut self.hooks,
        }
    }
}
