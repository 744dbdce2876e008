//! Wall time of a guest, less the time for which it waits for its client's upload.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::body::BodyFault;

/// What a request's body reports to those who wait for its answer.
#[derive(Debug)]
pub(crate) struct Upload {
    /// The longest single wait that counts. A guest that asks once and then does something else is not
    /// waiting for its client, however long that takes.
    longest: Option<Duration>,
    clock: Mutex<UploadClock>,
    fault: OnceLock<BodyFault>,
    ended: AtomicBool,
    abandoned: AtomicBool,
}

#[derive(Debug, Default)]
struct UploadClock {
    waited: Duration,
    since: Option<Instant>,
}

impl Upload {
    pub(crate) fn new(longest: Option<Duration>) -> Self {
        Self {
            longest,
            clock: Mutex::default(),
            fault: OnceLock::new(),
            ended: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
        }
    }

    /// The guest wants bytes and the client has sent none.
    pub(super) fn begin_wait(&self) {
        let mut clock = self.lock();
        clock.since.get_or_insert_with(Instant::now);
    }

    /// The bytes have come, or nobody waits for them any more.
    pub(super) fn end_wait(&self) {
        let mut clock = self.lock();
        if let Some(since) = clock.since.take() {
            clock.waited += self.counted(since);
        }
    }

    /// How long the guest has waited for its client so far.
    pub(crate) fn waited(&self) -> Duration {
        let clock = self.lock();
        clock.waited
            + clock
                .since
                .map_or(Duration::ZERO, |since| self.counted(since))
    }

    fn counted(&self, since: Instant) -> Duration {
        let elapsed = since.elapsed();
        self.longest.map_or(elapsed, |longest| elapsed.min(longest))
    }

    pub(super) fn set_ended(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Nobody reads the body any more.
    pub(super) fn set_dropped(&self) {
        self.end_wait();
        if !self.ended.load(Ordering::Acquire) {
            self.abandoned.store(true, Ordering::Release);
        }
    }

    /// Whether the body was given up before its end.
    pub(crate) fn was_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    pub(super) fn set_fault(&self, fault: BodyFault) {
        // Only the first fault is the cause; what follows it is a consequence.
        let _ = self.fault.set(fault);
    }

    /// Why the body ended early, if it did.
    pub(crate) fn fault(&self) -> Option<BodyFault> {
        self.fault.get().copied()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, UploadClock> {
        self.clock
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Fires once when the wall time is over. No timer exists before it is first polled.
#[derive(Debug)]
pub(crate) struct Deadline {
    start: Instant,
    wall: Option<Duration>,
    upload: Option<Arc<Upload>>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Counts from now; `None` never fires.
    pub(crate) fn new(wall: Option<Duration>, upload: Option<Arc<Upload>>) -> Self {
        Self {
            start: Instant::now(),
            wall,
            upload,
            sleep: None,
        }
    }

    /// Ready, with the wall time, when that is over, less the upload's waits.
    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let Some(wall) = self.wall else {
            return Poll::Pending;
        };
        loop {
            let waited = self
                .upload
                .as_ref()
                .map_or(Duration::ZERO, |upload| upload.waited());
            let end = self.start + wall + waited;
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(end)));
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if Instant::now() >= end {
                return Poll::Ready(wall);
            }
            // The client's upload took some of the time: wait for the rest.
            sleep.as_mut().reset(end);
        }
    }
}

/// Restarts at every sign of life and fires after a silence. Its timer exists only while somebody waits.
#[derive(Debug)]
pub(crate) struct IdleTimer {
    limit: Option<Duration>,
    sleep: Option<Pin<Box<Sleep>>>,
    armed: bool,
}

impl IdleTimer {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self {
            limit,
            sleep: None,
            armed: false,
        }
    }

    /// There was a sign of life.
    pub(crate) fn touch(&mut self) {
        self.armed = false;
    }

    /// Ready, with the limit, when nothing happened for so long.
    pub(crate) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let Some(limit) = self.limit else {
            return Poll::Pending;
        };
        if !self.armed {
            self.armed = true;
            let end = Instant::now() + limit;
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(end),
                None => self.sleep = Some(Box::pin(sleep_until(end))),
            }
        }
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().poll(cx).map(|()| limit),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn upload_time_is_not_billed() {
        let upload = Arc::new(Upload::new(None));
        let mut deadline = Deadline::new(Some(Duration::from_secs(10)), Some(Arc::clone(&upload)));
        let begin = Instant::now();
        upload.begin_wait();
        tokio::time::sleep(Duration::from_secs(7)).await;
        upload.end_wait();
        poll_fn(|cx| deadline.poll_expired(cx)).await;
        assert_eq!(begin.elapsed().as_secs(), 17);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_counts_no_longer_than_the_silence_that_is_allowed() {
        let upload = Arc::new(Upload::new(Some(Duration::from_secs(3))));
        let mut deadline = Deadline::new(Some(Duration::from_secs(10)), Some(Arc::clone(&upload)));
        let begin = Instant::now();
        upload.begin_wait();
        poll_fn(|cx| deadline.poll_expired(cx)).await;
        assert_eq!(begin.elapsed().as_secs(), 13);
    }

    #[tokio::test(start_paused = true)]
    async fn no_wall_time_never_fires() {
        let mut deadline = Deadline::new(None, None);
        let fired = tokio::time::timeout(
            Duration::from_secs(3600),
            poll_fn(|cx| deadline.poll_expired(cx)),
        );
        assert!(fired.await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_timer_restarts() {
        let mut idle = IdleTimer::new(Some(Duration::from_secs(3)));
        let begin = Instant::now();
        let early = tokio::time::timeout(Duration::from_secs(2), poll_fn(|cx| idle.poll_idle(cx)));
        assert!(early.await.is_err());
        idle.touch();
        poll_fn(|cx| idle.poll_idle(cx)).await;
        assert_eq!(begin.elapsed().as_secs(), 5);
    }
}
