//! The one place that spawns: everything started here is waited for by the drain.

use std::future::Future;

use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The tasks of one host. Clones share the same set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks(TaskTracker);

impl Tasks {
    /// Starts a task that [`Tasks::finished`] waits for.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the wrapper that the lint points to"
    )]
    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(self.0.track_future(future))
    }

    /// A token that counts like a running task until it is dropped, for work that a library spawns itself.
    pub(crate) fn token(&self) -> TaskTrackerToken {
        self.0.token()
    }

    /// How many tasks and tokens are alive.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Waits until no task and no token is left. Tasks may still be added while waiting.
    pub(crate) async fn finished(&self) {
        self.0.close();
        self.0.wait().await;
    }
}
