//! A run: threads, their connections, and the sum of what they recorded.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::load::clock::{Clock, Schedule, Tickets};
use crate::load::guard::Guard;
use crate::load::http1::Common;
use crate::load::http2::Http2;
use crate::load::idle::OPENING;
use crate::load::line::Line;
use crate::load::record::Recorder;
use crate::load::ticker::Ticker;
use crate::load::worker::{Run, Worker};
use crate::load::{LoadError, Outcome, Pace, Plan, Progress, Protocol, descriptors, mix};

/// How often a visible progress changes.
const SHOWN_EVERY: Duration = Duration::from_millis(100);

/// Puts the load of `plan` on its target and blocks until all its requests have ended, which is at most the
/// request timeout after the end of the recorded time. Requests that fail are counted in the outcome by kind;
/// the error is for a run that could not take place.
pub fn run(plan: &Plan, progress: &Progress) -> Result<Outcome, LoadError> {
    check(plan)?;
    descriptors::allow(plan.connections)?;
    reach(plan)?;
    let threads = plan.threads.clamp(1, plan.connections);
    let shared = Shared {
        plan,
        threads,
        run: Arc::new(Run {
            order: mix::order(plan)?,
            tickets: Tickets::new(plan.requests_limit),
            each: plan.requests_each.unwrap_or(u64::MAX),
            ended: AtomicU64::new(0),
        }),
        opened: Barrier::new(threads),
        clock: OnceLock::new(),
    };
    let mut runtimes = Vec::new();
    for _ in 0..threads {
        runtimes.push(
            Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(LoadError::Client)?,
        );
    }
    let shares = shared.work(runtimes, progress)?;
    shared.outcome(&shares)
}

fn check(plan: &Plan) -> Result<(), LoadError> {
    let wrong = |what: &str| Err(LoadError::Plan(what.to_owned()));
    if plan.connections == 0 || plan.streams == 0 {
        return wrong("a run needs at least one connection and one stream");
    }
    if plan.timeout.is_zero() || plan.duration.is_zero() {
        return wrong("duration and timeout must be above 0");
    }
    match plan.pace {
        Pace::Open { rate } if !(rate.is_finite() && rate > 0.0 && rate < 1e9) => {
            wrong("the rate must be above 0")
        }
        _ => Ok(()),
    }
}

/// A wrong address should be one clear message, not a table of refused connections.
fn reach(plan: &Plan) -> Result<(), LoadError> {
    match TcpStream::connect_timeout(&plan.target, plan.timeout) {
        Ok(_) => Ok(()),
        Err(source) => Err(LoadError::Unreachable {
            target: plan.target,
            source,
        }),
    }
}

/// What the threads share.
struct Shared<'a> {
    plan: &'a Plan,
    threads: usize,
    run: Arc<Run>,
    /// The clock starts when the connections of all threads are open.
    opened: Barrier,
    clock: OnceLock<Clock>,
}

/// What one thread brings home.
struct Share {
    recorder: Recorder,
    bytes_in: u64,
    bytes_out: u64,
}

impl Shared<'_> {
    fn work(&self, runtimes: Vec<Runtime>, progress: &Progress) -> Result<Vec<Share>, LoadError> {
        thread::scope(|scope| {
            let (working, done) = mpsc::channel::<()>();
            let handles: Vec<_> = runtimes
                .into_iter()
                .enumerate()
                .map(|(index, runtime)| {
                    let working = working.clone();
                    scope.spawn(move || {
                        let _working = working;
                        runtime.block_on(self.thread(index))
                    })
                })
                .collect();
            drop(working);
            while progress.visible()
                && done.recv_timeout(SHOWN_EVERY) == Err(RecvTimeoutError::Timeout)
            {
                self.show(progress);
            }
            let joined = handles.into_iter().map(|handle| {
                let panicked = || {
                    LoadError::Client(io::Error::other("a thread of the client ended by a panic"))
                };
                handle.join().unwrap_or_else(|_| Err(panicked()))
            });
            let shares = joined.collect();
            progress.clear();
            shares
        })
    }

    fn show(&self, progress: &Progress) {
        if let Some(clock) = self.clock.get() {
            progress.show(
                clock.start.elapsed(),
                clock.end - clock.start,
                self.run.ended.load(Relaxed),
            );
        }
    }

    /// Opens the thread's connections, waits for the other threads, and lets the workers work.
    async fn thread(&self, index: usize) -> Result<Share, LoadError> {
        let common = Arc::new(Common::new());
        let prepared = Recorder::new()
            .and_then(|recorder| Ok((recorder, Ticker::new().map_err(LoadError::Client)?)));
        let workers = match prepared {
            Ok((recorder, ticker)) => {
                let recorder = Arc::new(Mutex::new(recorder));
                let lines = open_all(self.lines(index, &common), self.plan).await;
                Ok((
                    self.workers(index, lines, &recorder),
                    recorder,
                    Arc::new(ticker),
                ))
            }
            Err(error) => Err(error),
        };
        self.opened.wait();
        let clock = *self.clock.get_or_init(|| Clock::starting_now(self.plan));
        let (workers, recorder, ticker) = workers?;

        common.traffic.reset();
        let mut background = JoinSet::new();
        if !self.plan.warmup.is_zero() {
            let common = Arc::clone(&common);
            background.spawn(async move {
                sleep_until(clock.record).await;
                common.traffic.reset();
            });
        }
        let mut tasks = JoinSet::new();
        match self.plan.pace {
            Pace::Closed => workers.into_iter().for_each(|worker| {
                tasks.spawn(worker.closed_loop(clock));
            }),
            Pace::Open { rate } => {
                let schedule = Arc::new(Schedule::new(rate, index, self.threads));
                for worker in workers {
                    tasks.spawn(worker.open_loop(
                        clock,
                        Arc::clone(&schedule),
                        Arc::clone(&ticker),
                    ));
                }
                background.spawn(async move { ticker.drive().await });
            }
        }
        while let Some(joined) = tasks.join_next().await {
            joined.map_err(|error| LoadError::Client(error.into()))?;
        }
        let mut total = Recorder::new()?;
        total.merge(&recorder.lock().unwrap_or_else(PoisonError::into_inner));
        let (bytes_in, bytes_out) = common.traffic.totals();
        Ok(Share {
            recorder: total,
            bytes_in,
            bytes_out,
        })
    }

    /// A line for each connection (and stream) of thread `index`.
    fn lines(&self, index: usize, common: &Arc<Common>) -> Vec<Line> {
        let target = self.plan.target;
        let mut lines = Vec::new();
        for _ in (index..self.plan.connections).step_by(self.threads) {
            match self.plan.protocol {
                Protocol::Http1 => lines.push(Line::http1(target, true, Arc::clone(common))),
                Protocol::Http1PerRequest => {
                    lines.push(Line::http1(target, false, Arc::clone(common)))
                }
                Protocol::Http2 => {
                    let connection = Arc::new(Http2::new(target, Arc::clone(common)));
                    lines.extend(
                        (0..self.plan.streams).map(|_| Line::Http2(Arc::clone(&connection))),
                    );
                }
            }
        }
        lines
    }

    fn workers(
        &self,
        thread: usize,
        lines: Vec<Line>,
        recorder: &Arc<Mutex<Recorder>>,
    ) -> Vec<Worker> {
        let worker = |(at, line)| Worker {
            index: thread + at * self.threads,
            line,
            guard: Guard::new(self.plan.timeout),
            run: Arc::clone(&self.run),
            recorder: Arc::clone(recorder),
        };
        lines.into_iter().enumerate().map(worker).collect()
    }

    fn outcome(&self, shares: &[Share]) -> Result<Outcome, LoadError> {
        let mut total = Recorder::new()?;
        for share in shares {
            total.merge(&share.recorder);
        }
        let limited = self.plan.requests_limit.is_some() || self.plan.requests_each.is_some();
        let record = self.clock.get().map(|clock| clock.record);
        let until_last = total
            .last
            .zip(record)
            .map(|(last, record)| last.saturating_duration_since(record));
        Ok(Outcome {
            requests: total.requests,
            failures: total
                .failures
                .iter()
                .map(|(failure, count)| (failure.to_string(), *count))
                .collect(),
            elapsed: until_last.filter(|_| limited).unwrap_or(self.plan.duration),
            bytes_in: shares.iter().map(|share| share.bytes_in).sum(),
            bytes_out: shares.iter().map(|share| share.bytes_out).sum(),
            reconnects: total.reconnects,
            latency: total.latency,
        })
    }
}

/// Opens the lines, a few at a time. What cannot be opened in time is opened by its first request.
async fn open_all(lines: Vec<Line>, plan: &Plan) -> Vec<Line> {
    let opening = u32::try_from(plan.connections).unwrap_or(u32::MAX);
    let deadline = Instant::now() + plan.timeout + Duration::from_millis(1) * opening;
    let places = Arc::new(Semaphore::new(OPENING));
    let timeout = plan.timeout;
    let mut tasks = JoinSet::new();
    for mut line in lines {
        let places = Arc::clone(&places);
        tasks.spawn(async move {
            let mut guard = Guard::new(timeout);
            let _ = timeout_at(deadline, async {
                let _place = places.acquire().await;
                guard.start(Instant::now());
                line.open(&mut guard).await;
            })
            .await;
            line
        });
    }
    tasks.join_all().await
}
