//! The longest time of one request.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::load::Failure;

/// One timer for all requests of a connection. It is set anew only when it fires or the deadline comes nearer:
/// an answer in time costs no timer operation.
#[derive(Debug)]
pub(super) struct Guard {
    timer: Pin<Box<Sleep>>,
    deadline: Instant,
    timeout: Duration,
}

impl Guard {
    pub(super) fn new(timeout: Duration) -> Self {
        let deadline = Instant::now() + timeout;
        Self {
            timer: Box::pin(sleep_until(deadline)),
            deadline,
            timeout,
        }
    }

    /// The time begins at `now`.
    pub(super) fn start(&mut self, now: Instant) {
        self.deadline = now + self.timeout;
    }

    /// Waits for `work`, at most until the deadline.
    pub(super) async fn within<F: Future>(&mut self, work: F) -> Result<F::Output, Failure> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            while self.timer.as_mut().poll(context).is_ready() {
                if Instant::now() >= self.deadline {
                    return Poll::Ready(Err(Failure::Timeout));
                }
                self.timer.as_mut().reset(self.deadline);
            }
            Poll::Pending
        })
        .await
    }
}
