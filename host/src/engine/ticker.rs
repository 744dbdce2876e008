//! The clock of epoch interruption: one thread for all engines.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wasmtime::{Engine, EngineWeak};

/// How long a guest computes before it must let others run.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// Advances the epoch of every watched engine once each [`TICK`]; the thread ends with the last handle.
#[derive(Clone)]
pub(crate) struct Ticker(Arc<Shared>);

struct Shared {
    engines: Mutex<Vec<EngineWeak>>,
}

impl std::fmt::Debug for Ticker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticker").finish_non_exhaustive()
    }
}

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            engines: Mutex::default(),
        });
        let weak = Arc::downgrade(&shared);
        std::thread::Builder::new()
            .name("epoch-ticker".to_owned())
            .spawn(move || {
                loop {
                    #[allow(
                        clippy::disallowed_methods,
                        reason = "a thread of its own, not the runtime"
                    )]
                    std::thread::sleep(TICK);
                    let Some(shared) = weak.upgrade() else { break };
                    shared.tick();
                }
            })?;
        Ok(Self(shared))
    }

    /// Advances this engine's epoch too, for as long as the engine lives.
    pub(crate) fn watch(&self, engine: &Engine) {
        self.0.lock().push(engine.weak());
    }
}

impl Shared {
    fn tick(&self) {
        self.lock().retain(|engine| match engine.upgrade() {
            Some(engine) => {
                engine.increment_epoch();
                true
            }
            None => false,
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<EngineWeak>> {
        self.engines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
