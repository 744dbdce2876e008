//! What is live: a [`Guest`] is one deployed generation of a component with its limits; `registry` holds the
//! snapshot that requests are dispatched with. How a guest is called is `dispatch`'s business.

pub(crate) mod registry;

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};
use wasmtime::Store;

use crate::capability::{Origin, State};
use crate::component::{Loaded, Ready};
use crate::config::{AdmissionConfig, GuestConfig, GuestLimits};
use crate::engine::GuestEngine;
use crate::limits::admission::{Admission, Overloaded, Permit};

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
    wait: std::time::Duration,
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

    /// A store for a fresh instance, which holds its place in the pool.
    pub(crate) async fn store(&self) -> Result<Store<State>, Overloaded> {
        let slot = self.slot().await?;
        let origin = Origin {
            guest: Arc::clone(&self.name),
            slot,
        };
        Ok(State::new(origin, &self.limits).into_store(&self.engine.engine))
    }

    /// A place in the pool. It is there at once, unless instances whose requests are over still work.
    async fn slot(&self) -> Result<OwnedSemaphorePermit, Overloaded> {
        match Arc::clone(&self.engine.slots).try_acquire_owned() {
            Ok(slot) => Ok(slot),
            Err(TryAcquireError::Closed) => Err(Overloaded),
            Err(TryAcquireError::NoPermits) => {
                let slot = Arc::clone(&self.engine.slots).acquire_owned();
                match tokio::time::timeout(self.wait, slot).await {
                    Ok(Ok(slot)) => Ok(slot),
                    Ok(Err(_)) | Err(_) => Err(Overloaded),
                }
            }
        }
    }
}
