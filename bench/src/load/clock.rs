//! The instants of a run and the counts that end it early.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

use crate::load::Plan;

/// The instants of a run, the same for all threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) start: Instant,
    /// The end of the warm-up.
    pub(super) record: Instant,
    /// No request starts from here on.
    pub(super) end: Instant,
}

impl Clock {
    pub(super) fn starting_now(plan: &Plan) -> Self {
        let start = Instant::now();
        let record = start + plan.warmup;
        Self {
            start,
            record,
            end: record + plan.duration,
        }
    }
}

/// How many recorded requests may still start.
#[derive(Debug)]
pub(super) struct Tickets {
    left: Option<AtomicU64>,
}

impl Tickets {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            left: limit.map(AtomicU64::new),
        }
    }

    /// Whether one more may start.
    pub(super) fn take(&self) -> bool {
        self.left.as_ref().is_none_or(|left| {
            left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1))
                .is_ok()
        })
    }
}

/// The instants at which the requests of one thread are due: every `step`, from `first`.
#[derive(Debug)]
pub(super) struct Schedule {
    first: Duration,
    step: Duration,
    next: AtomicU64,
}

impl Schedule {
    /// The share of thread `index` in `rate` requests per second over all `threads`.
    pub(super) fn new(rate: f64, index: usize, threads: usize) -> Self {
        let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        Self {
            first: Duration::from_secs_f64(count(index) / rate),
            step: Duration::from_secs_f64(count(threads) / rate),
            next: AtomicU64::new(0),
        }
    }

    /// When the next request is due, after the start; each call hands out one.
    pub(super) fn next(&self) -> Duration {
        let nanos = u128::from(self.next.fetch_add(1, Relaxed)) * self.step.as_nanos();
        self.first + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_share_a_schedule_without_gaps() {
        let schedules = [Schedule::new(1000.0, 0, 2), Schedule::new(1000.0, 1, 2)];
        let due: Vec<_> = (0..6)
            .map(|at: usize| schedules[at % 2].next().as_micros())
            .collect();
        assert_eq!(due, [0, 1000, 2000, 3000, 4000, 5000]);
    }

    #[test]
    fn tickets_end() {
        let tickets = Tickets::new(Some(2));
        assert_eq!(
            [
                tickets.take(),
                tickets.take(),
                tickets.take(),
                tickets.take()
            ],
            [true, true, false, false]
        );
        assert!(Tickets::new(None).take());
    }
}
