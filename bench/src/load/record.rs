//! What the connections of one thread write down.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::load::{Failure, LoadError};

/// Three digits: the error of a recorded latency is at most 0.1 %.
const DIGITS: u8 = 3;
/// An hour in nanoseconds: longer latencies are recorded as this.
const LONGEST: u64 = 3_600_000_000_000;

/// Counts and latencies of one thread.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) requests: u64,
    pub(super) failures: BTreeMap<Failure, u64>,
    pub(super) reconnects: u64,
    pub(super) latency: Histogram<u64>,
    pub(super) last: Option<Instant>,
}

impl Recorder {
    pub(super) fn new() -> Result<Self, LoadError> {
        Ok(Self {
            requests: 0,
            failures: BTreeMap::new(),
            reconnects: 0,
            latency: Histogram::new_with_bounds(1, LONGEST, DIGITS)
                .map_err(|error| LoadError::Client(io::Error::other(error)))?,
            last: None,
        })
    }

    /// A request that counts has ended at `now`, `latency` after its start or its scheduled instant.
    pub(super) fn ended(&mut self, result: Result<(), Failure>, latency: Duration, now: Instant) {
        self.last = Some(now);
        match result {
            Ok(()) => {
                self.requests += 1;
                self.latency
                    .saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
            }
            Err(failure) => self.failed(failure),
        }
    }

    pub(super) fn failed(&mut self, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.reconnects += other.reconnects;
        for (failure, count) in &other.failures {
            *self.failures.entry(*failure).or_default() += count;
        }
        // All histograms have the same bounds: adding cannot fail.
        let _ = self.latency.add(&other.latency);
        self.last = self.last.max(other.last);
    }
}

/// Bytes through the sockets of one thread.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    read: AtomicU64,
    written: AtomicU64,
}

impl Traffic {
    pub(super) fn read(&self, count: usize) {
        self.read.fetch_add(count as u64, Relaxed);
    }

    pub(super) fn wrote(&self, count: usize) {
        self.written.fetch_add(count as u64, Relaxed);
    }

    /// Forgets what went through so far.
    pub(super) fn reset(&self) {
        self.read.store(0, Relaxed);
        self.written.store(0, Relaxed);
    }

    /// Bytes read and written.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.read.load(Relaxed), self.written.load(Relaxed))
    }
}
