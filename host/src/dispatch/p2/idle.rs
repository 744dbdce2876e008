//! Instances that wait for another request, where the guest allows more than one for each.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use wasmtime::Store;
use wasmtime_wasi_http::p2::bindings::Proxy;

use crate::capability::State;
use crate::config::Reuse;
use crate::limits::admission::Permit;

/// An instance and what is known of its life.
pub(super) struct Instance {
    pub(super) store: Store<State>,
    pub(super) proxy: Proxy,
    served: usize,
    idle_since: Instant,
    /// The place in the pool; given back after the store, which stands before it.
    _slot: Permit,
}

/// The idle instances of one guest.
pub(super) struct IdleInstances {
    requests: usize,
    keep: Duration,
    state: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    instances: Vec<Instance>,
    reaper: Option<JoinSet<()>>,
}

impl std::fmt::Debug for IdleInstances {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdleInstances")
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

impl Instance {
    pub(super) fn new(store: Store<State>, proxy: Proxy, slot: Permit) -> Self {
        Self {
            store,
            proxy,
            served: 0,
            idle_since: Instant::now(),
            _slot: slot,
        }
    }
}

impl IdleInstances {
    pub(super) fn new(reuse: &Reuse) -> Arc<Self> {
        Arc::new(Self {
            requests: reuse.p2_requests,
            keep: reuse.idle,
            state: Mutex::default(),
        })
    }

    /// The instance that was used last: its memory is the warmest.
    pub(super) fn take(&self) -> Option<Instance> {
        if self.requests <= 1 {
            return None;
        }
        self.lock().instances.pop()
    }

    /// Keeps an instance for the next request, unless it has served enough.
    pub(super) fn give_back(self: &Arc<Self>, mut instance: Instance) {
        instance.served += 1;
        if instance.served >= self.requests {
            return;
        }
        instance.idle_since = Instant::now();
        instance.store.set_epoch_deadline(1);
        let mut state = self.lock();
        state.instances.push(instance);
        if state.reaper.is_none() && self.keep < Duration::MAX {
            // Owned by this set, so that it ends with the guest.
            let mut reaper = JoinSet::new();
            reaper.spawn(reap(Arc::downgrade(self), self.keep));
            state.reaper = Some(reaper);
        }
    }

    /// Drops what has been idle for too long. `None` when nothing is left.
    fn drop_expired(&self) -> Option<Instant> {
        let mut state = self.lock();
        let limit = Instant::now();
        let fresh = state
            .instances
            .iter()
            .position(|instance| instance.idle_since + self.keep > limit)
            .unwrap_or(state.instances.len());
        // The oldest stand first: they are pushed and popped at the other end.
        let expired: Vec<_> = state.instances.drain(..fresh).collect();
        let next = state
            .instances
            .first()
            .map(|instance| instance.idle_since + self.keep);
        if next.is_none()
            && let Some(mut reaper) = state.reaper.take()
        {
            reaper.detach_all();
        }
        drop(state);
        drop(expired);
        next
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Idle> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn reap(instances: Weak<IdleInstances>, keep: Duration) {
    let mut next = Instant::now() + keep;
    loop {
        tokio::time::sleep_until(next).await;
        let Some(instances) = instances.upgrade() else {
            return;
        };
        match instances.drop_expired() {
            Some(instant) => next = instant,
            None => return,
        }
    }
}
