//! Wakes at instants fixed in advance, more exactly than the runtime's timer, whose step is 1 ms: at 100 µs for a
//! request, a millisecond of our own would be most of what is measured.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Waits of one thread, each not before the one registered before it.
#[derive(Debug)]
pub(super) struct Ticker {
    timer: timer::Timer,
    waiting: Mutex<VecDeque<(Instant, Waker)>>,
    news: Notify,
}

impl Ticker {
    /// Needs the runtime that will drive it.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            timer: timer::Timer::new()?,
            waiting: Mutex::default(),
            news: Notify::new(),
        })
    }

    /// Returns at `due`, or at once if that is past. Needs `drive` to run.
    pub(super) async fn until(&self, due: Instant) {
        let mut registered = false;
        poll_fn(|context| {
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            if !registered {
                let mut waiting = self.waiting();
                waiting.push_back((due, context.waker().clone()));
                registered = true;
                if waiting.len() == 1 {
                    self.news.notify_one();
                }
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes who waits; without end.
    pub(super) async fn drive(&self) {
        loop {
            let first = self.waiting().front().map(|(due, _)| *due);
            match first {
                Some(due) => {
                    if self.timer.until(due).await.is_err() {
                        sleep_until(due).await;
                    }
                }
                None => self.news.notified().await,
            }
            let now = Instant::now();
            let mut waiting = self.waiting();
            while let Some((_, waker)) = waiting.pop_front_if(|(due, _)| *due <= now) {
                waker.wake();
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(Instant, Waker)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(target_os = "linux")]
mod timer {
    //! A `timerfd`: nanoseconds, and readiness through the runtime's epoll.

    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
    use rustix::time::{timerfd_create, timerfd_settime};
    use tokio::io::unix::AsyncFd;
    use tokio::time::Instant;

    #[derive(Debug)]
    pub(super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        #[allow(
            deprecated,
            reason = "the successor of `new` is unsafe for files that it does not own; this one it owns"
        )]
        pub(super) fn new() -> io::Result<Self> {
            let fd = timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
            )?;
            Ok(Self(AsyncFd::new(fd)?))
        }

        pub(super) async fn until(&self, due: Instant) -> io::Result<()> {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let it_value = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let once = Itimerspec {
                it_interval: Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                },
                it_value,
            };
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
            loop {
                let mut ready = self.0.readable().await?;
                let read = ready.try_io(|fd| Ok(rustix::io::read(fd, &mut [0; 8])?));
                if let Ok(read) = read {
                    return read.map(drop);
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    //! The runtime's timer, for want of a better one.

    use std::io;

    use tokio::time::{Instant, sleep_until};

    #[derive(Debug)]
    pub(super) struct Timer;

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn until(&self, due: Instant) -> io::Result<()> {
            sleep_until(due).await;
            Ok(())
        }
    }
}
