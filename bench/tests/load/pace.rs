//! The open loop keeps its schedule and tells how long requests waited for it.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::Response;
use tokio::time::{Instant, sleep};

use cloudgo_bench::load::{self, Outcome, Pace, Plan, Progress, Protocol, Template};

use crate::server::{Server, text};

fn run(plan: &Plan) -> Outcome {
    load::run(plan, &Progress::hidden()).unwrap()
}

fn open(server: &Server, rate: f64, duration: Duration) -> Plan {
    let pace = Pace::Open { rate };
    Plan {
        pace,
        duration,
        warmup: Duration::ZERO,
        ..Plan::new(server.address, vec![Template::get("/")])
    }
}

#[test]
fn every_scheduled_request_is_sent_or_told() {
    for (protocol, threads) in [
        (Protocol::Http1, 1),
        (Protocol::Http1, 3),
        (Protocol::Http2, 1),
    ] {
        let server = Server::hello();
        let plan = open(&server, 2000.0, Duration::from_millis(200));
        let outcome = run(&Plan {
            connections: 8,
            protocol,
            threads,
            ..plan
        });
        let late = outcome.failures.get("late").copied().unwrap_or_default();
        assert_eq!(
            outcome.requests + late,
            400,
            "{protocol:?}, {threads} threads: {:?}",
            outcome.failures
        );
        assert_eq!(server.seen.counts().0, outcome.requests);
    }
}

/// The server holds its first answer. Requests that were due meanwhile waited for the only connection, and that
/// waiting is in their latency: half of them waited at least half of the time that the server itself measured.
#[test]
fn a_stall_is_in_the_latency_of_all_that_were_due() {
    let stalled = Arc::new(OnceLock::new());
    let measured = Arc::clone(&stalled);
    let first = Arc::new(AtomicU64::new(1));
    let server = Server::start(move |_| {
        let (first, measured) = (first.swap(0, SeqCst) == 1, Arc::clone(&measured));
        async move {
            if first {
                let began = Instant::now();
                sleep(Duration::from_millis(200)).await;
                let _ = measured.set(began.elapsed());
            }
            Response::new(text("hello"))
        }
    });
    let outcome = run(&Plan {
        connections: 1,
        ..open(&server, 1000.0, Duration::from_secs(1))
    });
    let stall = *stalled.get().unwrap();
    assert!(
        outcome.max() >= stall.mul_f64(0.999),
        "{:?} is shorter than {stall:?}",
        outcome.max()
    );
    let waited = outcome
        .latency
        .count_between(u64::try_from(stall.as_nanos()).unwrap() / 2, u64::MAX);
    let due = u64::try_from((stall / 2).min(Duration::from_secs(1)).as_millis()).unwrap();
    assert!(
        waited >= due,
        "{waited} of {due} requests show that they waited"
    );
}

#[test]
fn what_never_found_a_free_connection_is_late() {
    let server = Server::start(|_| std::future::pending());
    let plan = open(&server, 1000.0, Duration::from_millis(50));
    let outcome = run(&Plan {
        connections: 1,
        timeout: Duration::from_millis(100),
        ..plan
    });
    assert_eq!((outcome.requests, outcome.failed()), (0, 50));
    assert!(
        outcome.failures.get("late").is_some_and(|late| *late >= 49),
        "{:?}",
        outcome.failures
    );
}
