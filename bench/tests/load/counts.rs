//! Every request is sent once, over as many connections as the plan says, and counted once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use tokio::sync::Barrier;

use cloudgo_bench::load::{
    self, Expect, ExpectBody, LoadError, Plan, Progress, Protocol, Template, idle,
};
use cloudgo_bench::users::Users;

use crate::server::{Server, exactly, text};

fn hello() -> Template {
    let expect = Expect {
        status: 200,
        body: ExpectBody::Bytes(Bytes::from_static(b"hello")),
    };
    Template {
        expect,
        ..Template::get("/")
    }
}

fn run(plan: &Plan) -> load::Outcome {
    let outcome = load::run(plan, &Progress::hidden()).unwrap();
    assert_eq!(outcome.failures, [].into());
    assert_eq!(outcome.latency.len(), outcome.requests);
    outcome
}

#[test]
fn keep_alive_uses_each_connection_again() {
    let server = Server::hello();
    let plan = Plan {
        connections: 4,
        ..Plan::new(server.address, vec![hello()])
    };
    let outcome = run(&exactly(500, plan));
    assert_eq!((outcome.requests, outcome.reconnects), (500, 0));
    assert_eq!(server.seen.counts(), (500, 4));
    let head = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
    assert_eq!(outcome.bytes_out, 500 * head.len() as u64);
    assert!(outcome.bytes_in > 500 * "hello".len() as u64);
}

#[test]
fn a_connection_for_each_request_is_one_for_each() {
    let server = Server::hello();
    let plan = Plan {
        connections: 4,
        protocol: Protocol::Http1PerRequest,
        ..Plan::new(server.address, vec![hello()])
    };
    let outcome = run(&exactly(50, plan));
    assert_eq!((outcome.requests, outcome.reconnects), (50, 0));
    assert_eq!(server.seen.counts(), (50, 50));
}

#[test]
fn http2_streams_share_their_connection_and_run_at_a_time() {
    let together = Arc::new(Barrier::new(16));
    let server = Server::start(move |_| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            Response::new(text("hello"))
        }
    });
    let plan = Plan {
        connections: 2,
        streams: 8,
        protocol: Protocol::Http2,
        ..Plan::new(server.address, vec![hello()])
    };
    let outcome = run(&exactly(160, plan));
    assert_eq!((outcome.requests, outcome.reconnects), (160, 0));
    assert_eq!(server.seen.counts(), (160, 2));
    assert!(outcome.bytes_in > 0 && outcome.bytes_out > 0);
}

#[test]
fn a_mix_keeps_its_proportion_and_order() {
    let server = Server::hello();
    let weighted = |path: &str, weight| Template {
        weight,
        path: path.to_owned(),
        ..hello()
    };
    let plan = Plan::new(server.address, vec![weighted("/a", 3), weighted("/b", 1)]);
    run(&exactly(
        400,
        Plan {
            connections: 1,
            ..plan
        },
    ));
    let paths = server.seen.paths.lock().unwrap();
    assert_eq!(paths.iter().filter(|path| *path == "/a").count(), 300);
    assert!(paths.chunks(4).all(|four| four == &paths[..4]));
}

#[test]
fn bodies_of_a_megabyte_go_up_while_they_come_down() {
    for protocol in [Protocol::Http1, Protocol::Http1PerRequest, Protocol::Http2] {
        let server = Server::start(|request| async { Response::new(request.into_body().boxed()) });
        let body: Bytes = (0..1 << 20)
            .map(|at: u32| at.to_le_bytes()[1])
            .collect::<Vec<_>>()
            .into();
        let expect = Expect {
            status: 200,
            body: ExpectBody::Bytes(body.clone()),
        };
        let request = Template {
            expect,
            ..Template::post("/", body)
        };
        let outcome = run(&exactly(
            20,
            Plan {
                connections: 2,
                protocol,
                ..Plan::new(server.address, vec![request])
            },
        ));
        assert_eq!(outcome.requests, 20, "{protocol:?}");
        assert!(
            outcome.bytes_in > 20 << 20 && outcome.bytes_out > 20 << 20,
            "{protocol:?}"
        );
    }
}

#[test]
fn threads_share_connections_and_requests() {
    let server = Server::hello();
    let plan = Plan {
        connections: 5,
        threads: 2,
        ..Plan::new(server.address, vec![hello()])
    };
    assert_eq!(run(&exactly(301, plan)).requests, 301);
    assert_eq!(server.seen.counts(), (301, 5));
}

#[test]
fn the_warm_up_is_sent_and_not_counted() {
    let server = Server::hello();
    let plan = exactly(
        10,
        Plan {
            connections: 1,
            ..Plan::new(server.address, vec![hello()])
        },
    );
    let outcome = run(&Plan {
        warmup: Duration::from_millis(200),
        ..plan
    });
    assert_eq!(outcome.requests, 10);
    assert!(server.seen.counts().0 > 10);
}

#[test]
fn each_user_makes_its_requests_twice() {
    let server = Server::hello();
    let users = Users {
        target: server.address,
        request: hello(),
        requests: 4,
        timeout: Duration::from_secs(10),
    };
    let row = users.measure(3, &Progress::hidden()).unwrap();
    assert_eq!(row.failures, [].into());
    assert_eq!(server.seen.counts(), (24, 24));
    assert!(row.totals.iter().all(|total| !total.is_zero()));
}

#[test]
fn idle_connections_stay_open_after_their_answer() {
    let server = Server::hello();
    let held = idle::hold(server.address, 100, &hello()).unwrap();
    assert_eq!(held.alive(), 100);
    assert_eq!(server.seen.counts(), (100, 100));

    let wrong = Template {
        expect: Expect {
            status: 404,
            body: ExpectBody::Any,
        },
        ..hello()
    };
    let refused = idle::hold(server.address, 3, &wrong).unwrap_err();
    assert!(
        matches!(
            refused,
            LoadError::Idle {
                wanted: 3,
                failure: load::Failure::Status(200),
                ..
            }
        ),
        "{refused}"
    );
}

#[test]
fn a_plan_without_sense_is_an_error() {
    let server = Server::hello();
    let plan = Plan::new(server.address, vec![hello()]);
    let none = Plan {
        connections: 0,
        ..plan.clone()
    };
    let still = Plan {
        pace: load::Pace::Open { rate: 0.0 },
        ..plan.clone()
    };
    let empty = Plan {
        requests: Vec::new(),
        ..plan
    };
    for plan in [none, still, empty] {
        assert!(
            matches!(
                load::run(&plan, &Progress::hidden()),
                Err(LoadError::Plan(_))
            ),
            "{plan:?}"
        );
    }
}
