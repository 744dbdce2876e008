//! One connection (or one stream) at work: the loop that sends request after request.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::load::Failure;
use crate::load::clock::{Clock, Schedule, Tickets};
use crate::load::guard::Guard;
use crate::load::line::Line;
use crate::load::mix::Prepared;
use crate::load::record::Recorder;
use crate::load::ticker::Ticker;

/// After a connection that could not be opened: the closed loop must not spin.
const BREATH: Duration = Duration::from_millis(10);

/// What the workers of all threads share.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) order: Vec<Arc<Prepared>>,
    pub(super) tickets: Tickets,
    pub(super) each: u64,
    /// Recorded requests so far, for the display.
    pub(super) ended: AtomicU64,
}

/// One connection or stream and where it writes its results.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) index: usize,
    pub(super) line: Line,
    pub(super) guard: Guard,
    pub(super) run: Arc<Run>,
    pub(super) recorder: Arc<Mutex<Recorder>>,
}

impl Worker {
    /// Each request starts when the one before has its answer.
    pub(super) async fn closed_loop(mut self, clock: Clock) {
        let run = Arc::clone(&self.run);
        let mut left = run.each;
        for request in run
            .order
            .iter()
            .cycle()
            .skip(self.index % run.order.len().max(1))
        {
            let started = Instant::now();
            let counts = started >= clock.record;
            if started >= clock.end || (counts && (left == 0 || !run.tickets.take())) {
                break;
            }
            left -= u64::from(counts);
            self.guard.start(started);
            let result = self.line.request(request, &mut self.guard).await;
            self.ended(result, started, counts);
            self.line.settle().await;
            if matches!(
                result,
                Err(Failure::Refused | Failure::NoPort | Failure::Connect)
            ) {
                sleep(BREATH).await;
            }
        }
    }

    /// Each request starts at its instant of the schedule, or as soon as a connection is free after that.
    pub(super) async fn open_loop(
        mut self,
        clock: Clock,
        schedule: Arc<Schedule>,
        ticker: Arc<Ticker>,
    ) {
        let run = Arc::clone(&self.run);
        let mut left = run.each;
        for request in run
            .order
            .iter()
            .cycle()
            .skip(self.index % run.order.len().max(1))
        {
            if left == 0 {
                break;
            }
            let due = clock.start + schedule.next();
            let counts = due >= clock.record;
            if due >= clock.end || (counts && !run.tickets.take()) {
                break;
            }
            left -= u64::from(counts);
            if Instant::now() >= clock.end {
                self.late(counts);
                continue;
            }
            ticker.until(due).await;
            self.guard.start(Instant::now());
            let result = self.line.request(request, &mut self.guard).await;
            self.ended(result, due, counts);
            self.line.settle().await;
        }
    }

    fn ended(&mut self, result: Result<(), Failure>, since: Instant, counts: bool) {
        let reconnects = self.line.take_reconnects();
        if counts {
            let now = Instant::now();
            let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
            recorder.ended(result, now - since, now);
            recorder.reconnects += reconnects;
            self.run.ended.fetch_add(1, Relaxed);
        }
    }

    fn late(&self, counts: bool) {
        if counts {
            self.recorder
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .failed(Failure::Late);
        }
    }
}
