//! What goes wrong is counted by kind, and what is only a new connection is not.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use http::{Response, StatusCode};

use cloudgo_bench::load::{
    self, Expect, ExpectBody, LoadError, Outcome, Plan, Progress, Protocol, Template,
};

use crate::server::{Server, exactly, read_request, scripted, send, text};

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

fn run(plan: &Plan) -> Outcome {
    load::run(plan, &Progress::hidden()).unwrap()
}

fn failures(kind: &str, count: u64) -> BTreeMap<String, u64> {
    [(kind.to_owned(), count)].into()
}

fn one_connection(address: std::net::SocketAddr) -> Plan {
    Plan {
        connections: 1,
        ..Plan::new(address, vec![Template::get("/")])
    }
}

#[test]
fn a_wrong_status_and_a_wrong_body_are_told_apart() {
    for protocol in [Protocol::Http1, Protocol::Http1PerRequest, Protocol::Http2] {
        let server = Server::start(|request| async move {
            let mut response = Response::new(text("hello"));
            if request.uri().path() == "/bad" {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            response
        });
        let other = Expect {
            status: 200,
            body: ExpectBody::Length(4),
        };
        let requests = vec![
            Template {
                weight: 2,
                ..Template::get("/good")
            },
            Template::get("/bad"),
            Template {
                expect: other,
                ..Template::get("/other")
            },
        ];
        let outcome = run(&exactly(
            40,
            Plan {
                connections: 1,
                protocol,
                ..Plan::new(server.address, requests)
            },
        ));
        assert_eq!(outcome.requests, 20, "{protocol:?}");
        assert_eq!(
            outcome.failures,
            [("status 503".to_owned(), 10), ("wrong body".to_owned(), 10)].into()
        );
        assert_eq!(outcome.latency.len(), 20);
        assert_eq!(server.seen.counts().0, 40);
    }
}

#[test]
fn an_answer_that_is_cut_is_a_failure() {
    for protocol in [Protocol::Http1, Protocol::Http1PerRequest] {
        let address = scripted(|_, mut stream, _| {
            if read_request(&mut stream) {
                send(
                    &mut stream,
                    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel",
                );
            }
        });
        let outcome = run(&exactly(
            3,
            Plan {
                protocol,
                ..one_connection(address)
            },
        ));
        assert_eq!(
            (outcome.requests, &outcome.failures),
            (0, &failures("cut", 3)),
            "{protocol:?}"
        );
    }
}

#[test]
fn an_http2_connection_that_ends_is_a_cut() {
    let address = scripted(|_, mut stream, _| {
        let _ = read_request(&mut stream);
    });
    let outcome = run(&exactly(
        3,
        Plan {
            protocol: Protocol::Http2,
            ..one_connection(address)
        },
    ));
    assert_eq!(
        (outcome.requests, outcome.failures),
        (0, failures("cut", 3))
    );
}

#[test]
fn an_answer_that_is_no_http_is_malformed() {
    let address = scripted(|_, mut stream, _| {
        if read_request(&mut stream) {
            send(&mut stream, "SSH-2.0-OpenSSH_9.9\r\n");
        }
    });
    assert_eq!(
        run(&exactly(2, one_connection(address))).failures,
        failures("malformed", 2)
    );
}

#[test]
fn a_server_that_went_away_refuses() {
    let address = scripted(|at, mut stream, listener| {
        if at == 1 {
            *listener = None;
            assert!(read_request(&mut stream));
            send(
                &mut stream,
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            );
        }
    });
    let outcome = run(&exactly(3, one_connection(address)));
    assert_eq!(
        (outcome.requests, outcome.failures),
        (1, failures("refused", 2))
    );
}

#[test]
fn nobody_there_is_one_clear_error() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let error = load::run(&one_connection(address), &Progress::hidden()).unwrap_err();
    assert!(matches!(error, LoadError::Unreachable { target, .. } if target == address));
}

#[test]
fn a_server_that_stops_answering_ends_the_run_by_timeouts() {
    for protocol in [Protocol::Http1, Protocol::Http1PerRequest, Protocol::Http2] {
        let server = Server::start(|_| std::future::pending());
        let timeout = Duration::from_millis(50);
        let plan = Plan {
            connections: 3,
            timeout,
            protocol,
            ..Plan::new(server.address, vec![Template::get("/")])
        };
        let outcome = run(&exactly(6, plan));
        assert_eq!(
            (outcome.requests, &outcome.failures),
            (0, &failures("timeout", 6)),
            "{protocol:?}"
        );
    }
}

#[test]
fn a_connection_closed_between_requests_is_no_failure() {
    let address = scripted(|_, mut stream, _| {
        if read_request(&mut stream) {
            send(&mut stream, ANSWER);
        }
    });
    let outcome = run(&exactly(6, one_connection(address)));
    assert_eq!(
        (outcome.requests, outcome.reconnects, outcome.failures),
        (6, 5, [].into())
    );
}

#[test]
fn connection_close_is_obeyed() {
    let server = Server::start(|_| async {
        let mut response = Response::new(text("hello"));
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        response
    });
    let outcome = run(&exactly(6, one_connection(server.address)));
    assert_eq!(
        (outcome.requests, outcome.reconnects, outcome.failures),
        (6, 5, [].into())
    );
    assert_eq!(server.seen.counts(), (6, 6));
}

#[test]
fn a_server_that_takes_its_leave_costs_no_request() {
    for (protocol, connections) in [
        (Protocol::Http1, 1),
        (Protocol::Http2, 1),
        (Protocol::Http2, 2),
    ] {
        let server = Server::start_with(10, |_| async { Response::new(text("hello")) });
        let plan = Plan {
            connections,
            streams: 2,
            protocol,
            ..one_connection(server.address)
        };
        let outcome = run(&exactly(200, plan));
        assert_eq!(
            (outcome.requests, &outcome.failures),
            (200, &[].into()),
            "{protocol:?}"
        );
        let (requests, connections) = server.seen.counts();
        assert_eq!(requests, 200);
        assert!(
            outcome.reconnects > 1 && outcome.reconnects < connections,
            "{protocol:?}"
        );
    }
}

#[test]
fn an_answer_before_the_end_of_the_request_counts() {
    let address = scripted(|_, mut stream, _| {
        if read_request(&mut stream) {
            send(
                &mut stream,
                "HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            );
            // Closed with unread bytes, the connection would be reset and the answer lost.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    let request = Template::post("/", vec![b'x'; 8 << 20]);
    let outcome = run(&exactly(
        1,
        Plan {
            requests: vec![request],
            ..one_connection(address)
        },
    ));
    assert_eq!(outcome.failures, failures("status 413", 1));
}
