//! Who may enter: a number of permits, and a queue that is bounded in length and in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The right to be inside; leaving is `Drop`.
pub(crate) type Permit = OwnedSemaphorePermit;

/// No permit came free within the bounds of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overloaded;

/// A number of permits with a bounded queue before them.
#[derive(Debug)]
pub(crate) struct Admission {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    queue: usize,
    wait: Option<Duration>,
}

/// Counts one waiter for as long as it lives.
struct Waiter<'a>(&'a AtomicUsize);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Admission {
    /// `permits` at once; `queue` others wait for at most `wait`, or for as long as it takes.
    pub(crate) fn new(permits: usize, queue: usize, wait: Option<Duration>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            waiting: AtomicUsize::new(0),
            queue,
            wait,
        }
    }

    /// Takes a permit, in order of arrival.
    pub(crate) async fn enter(&self) -> Result<Permit, Overloaded> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let _waiter = Waiter(&self.waiting);
        if before >= self.queue {
            return Err(Overloaded);
        }
        acquire(&self.permits, self.wait).await
    }
}

/// Waits for a permit, in order of arrival and for no longer than `wait`.
pub(crate) async fn acquire(
    permits: &Arc<Semaphore>,
    wait: Option<Duration>,
) -> Result<Permit, Overloaded> {
    let permit = Arc::clone(permits).acquire_owned();
    let permit = match wait {
        None => permit.await,
        Some(wait) => match tokio::time::timeout(wait, permit).await {
            Ok(permit) => permit,
            Err(_elapsed) => return Err(Overloaded),
        },
    };
    permit.map_err(|_closed| Overloaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn queue_is_bounded_in_length_and_time() {
        let admission = Arc::new(Admission::new(1, 1, Some(Duration::from_secs(5))));
        let inside = admission.enter().await.unwrap();
        let waiting = {
            let admission = Arc::clone(&admission);
            crate::task::Tasks::default().spawn(async move { admission.enter().await.is_ok() })
        };
        tokio::task::yield_now().await;
        assert_eq!(
            admission.enter().await.err(),
            Some(Overloaded),
            "the queue has one place"
        );
        drop(inside);
        assert!(waiting.await.unwrap(), "the waiter gets the permit");

        let _inside = admission.enter().await.unwrap();
        let begin = tokio::time::Instant::now();
        assert_eq!(admission.enter().await.err(), Some(Overloaded));
        assert_eq!(begin.elapsed(), Duration::from_secs(5));
        assert_eq!(admission.waiting.load(Ordering::Acquire), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_waiter_leaves_the_queue() {
        let admission = Admission::new(1, 1, Some(Duration::from_secs(5)));
        let _inside = admission.enter().await.unwrap();
        let cancelled = tokio::time::timeout(Duration::from_secs(1), admission.enter()).await;
        assert!(cancelled.is_err());
        assert_eq!(admission.waiting.load(Ordering::Acquire), 0);
    }
}
