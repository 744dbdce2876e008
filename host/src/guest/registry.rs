//! The live snapshot. Readers take no lock; whoever has taken a snapshot keeps it whole until he is done.

use std::sync::Arc;

use arc_swap::ArcSwap;

/// Routes and what they lead to, at one moment. `T` is what `dispatch` calls.
#[derive(Debug)]
pub(crate) struct Snapshot<T> {
    target: Arc<T>,
}

impl<T> Snapshot<T> {
    /// The snapshot of one guest, on the route `/`.
    pub(crate) fn single(target: Arc<T>) -> Self {
        Self { target }
    }

    /// Where a request goes.
    pub(crate) fn route(&self) -> &Arc<T> {
        &self.target
    }
}

/// Holds the live snapshot.
#[derive(Debug)]
pub(crate) struct Registry<T>(ArcSwap<Snapshot<T>>);

impl<T> Registry<T> {
    /// A registry with its first snapshot.
    pub(crate) fn new(snapshot: Snapshot<T>) -> Self {
        Self(ArcSwap::from_pointee(snapshot))
    }

    /// The snapshot to use for one request, taken once.
    pub(crate) fn load(&self) -> Arc<Snapshot<T>> {
        self.0.load_full()
    }
}
