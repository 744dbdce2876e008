//! The only place that names `wasmtime::Config`: one engine for WASI 0.2 guests and one for WASI 0.3 guests,
//! each made when the first guest of its kind is loaded. Pool sizes are in `pooling`, the epoch's clock in
//! `ticker`. Start with [`build`].

mod pooling;
mod ticker;

use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::{Config, Engine, InstanceAllocationStrategy};

pub(crate) use pooling::{InstanceNeeds, PoolPlan};
pub(crate) use ticker::Ticker;

/// The two versions of WASI, and with them the two engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wasi {
    /// `wasi:http/incoming-handler@0.2.x`
    P2,
    /// `wasi:http/handler@0.3.x`
    P3,
}

impl Wasi {
    /// How the name of the exported handler begins.
    pub(crate) fn handler(self) -> &'static str {
        match self {
            Self::P2 => "wasi:http/incoming-handler@0.2.",
            Self::P3 => "wasi:http/handler@0.3.",
        }
    }
}

/// An engine and the number of instances that it can hold.
#[derive(Clone, Debug)]
pub(crate) struct GuestEngine {
    /// The engine.
    pub(crate) engine: Engine,
    /// One permit for each instance that the pool holds, so that the pool itself never runs out.
    pub(crate) slots: Arc<Semaphore>,
    /// Whether instances come from a pool.
    pub(crate) pooled: bool,
    /// Without it, guests that only compute are never interrupted.
    _ticker: Ticker,
}

/// Makes an engine for guests of one kind.
///
/// Falls back to on-demand allocation where the address space does not hold the pool.
pub(crate) fn build(wasi: Wasi, plan: &PoolPlan, ticker: &Ticker) -> wasmtime::Result<GuestEngine> {
    let mut config = base_config(wasi);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(plan.allocation(wasi)));
    let (engine, pooled) = match Engine::new(&config) {
        Ok(engine) => (engine, true),
        Err(error) => {
            tracing::warn!(
                error = format!("{error:#}"),
                slots = plan.slots,
                "no address space for the instance pool, allocating on demand (slower); \
                 lower --max-concurrent-requests or raise the address space limit"
            );
            (Engine::new(&on_demand_config(wasi))?, false)
        }
    };
    ticker.watch(&engine);
    let slots = Arc::new(Semaphore::new(plan.slots));
    Ok(GuestEngine {
        engine,
        slots,
        pooled,
        _ticker: ticker.clone(),
    })
}

fn base_config(wasi: Wasi) -> Config {
    let mut config = Config::new();
    // Guests that compute without end are stopped at their deadline only because epochs make them yield.
    config.epoch_interruption(true);
    // Support for concurrent calls costs a WASI 0.2 call 4 to 8 µs and gives it nothing.
    config.concurrency_support(wasi == Wasi::P3);
    config
}

/// Small reservations: the default of 4 GiB for each memory is what did not fit.
fn on_demand_config(wasi: Wasi) -> Config {
    let mut config = base_config(wasi);
    config.memory_reservation(0);
    config.memory_reservation_for_growth(1 << 20);
    config.memory_guard_size(64 << 10);
    config
}
