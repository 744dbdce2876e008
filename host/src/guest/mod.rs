//! What is live: a [`Guest`] is one deployed generation of a component with its limits; `registry` holds the
//! snapshot that requests are dispatched with. How a guest is called is `dispatch`'s business.

pub(crate) mod registry;

use std::sync::Arc;
use std::time::Duration;

use wasmtime::Store;

use crate::capability::State;
use crate::component::{Loaded, Ready};
use crate::config::{AdmissionConfig, GuestConfig, GuestLimits};
use crate::engine::GuestEngine;
use crate::limits::admission::{self, Admission, Overloaded, Permit};

/// One deployed generation of a component.
pub(crate) struct Guest {
    /// The name in logs.
    pub(crate) name: Arc<str>,
    /// What one instance and one request may use.
    pub(crate) limits: GuestLimits,
    /// The linked component.
    pub(crate) ready: Ready,
    engine: GuestEngine,
    admission: Admission,
    wait: Option<Duration>,
}

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guest")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Guest {
    /// A guest made of a loaded component.
    pub(crate) fn new(config: &GuestConfig, admission: &AdmissionConfig, loaded: Loaded) -> Self {
        Self {
            name: config.name.as_str().into(),
            limits: config.limits,
            ready: loaded.ready,
            engine: loaded.engine,
            admission: Admission::new(config.limits.concurrency, admission.queue, admission.wait),
            wait: admission.wait,
        }
    }

    /// Takes one of this guest's own permits.
    pub(crate) async fn enter(&self) -> Result<Permit, Overloaded> {
        self.admission.enter().await
    }

    /// A store for a fresh instance, and its place in the pool, which must be given back after the store: the
    /// pool has the instance until the store is gone.
    pub(crate) async fn store(&self) -> Result<(Store<State>, Permit), Overloaded> {
        let slots = &self.engine.slots;
        // It is there at once, unless instances whose requests are over still work.
        let slot = match Arc::clone(slots).try_acquire_owned() {
            Ok(slot) => slot,
            Err(_none_left) => admission::acquire(slots, self.wait).await?,
        };
        let state = State::new(Arc::clone(&self.name), &self.limits);
        Ok((state.into_store(&self.engine.engine), slot))
    }
}
