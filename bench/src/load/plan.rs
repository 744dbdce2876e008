//! What is sent, how fast, for how long, and which answers count.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};

/// One run of load against one server.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The address connected to; also the `host` header, unless the template has its own.
    pub target: SocketAddr,
    /// What is sent: chosen by weight, in a fixed order on each connection.
    pub requests: Vec<Template>,
    /// How the requests travel.
    pub protocol: Protocol,
    /// Connections at a time (with `Http1PerRequest`: requests at a time).
    pub connections: usize,
    /// HTTP/2 only: requests at a time on each connection.
    pub streams: usize,
    /// Whether answers or a clock decide when the next request starts.
    pub pace: Pace,
    /// Load before the recorded time.
    pub warmup: Duration,
    /// The recorded time: requests that start in it are counted.
    pub duration: Duration,
    /// Ends earlier, after so many recorded requests.
    pub requests_limit: Option<u64>,
    /// Each connection (each stream of it) stops after so many recorded requests.
    pub requests_each: Option<u64>,
    /// The longest that one request may take, connecting included.
    pub timeout: Duration,
    /// Threads of the client, each with a share of the connections.
    pub threads: usize,
}

impl Plan {
    /// Closed loop over HTTP/1.1 keep-alive: 64 connections, 1 s of warm-up, 5 s recorded, one thread.
    pub fn new(target: SocketAddr, requests: Vec<Template>) -> Self {
        Self {
            target,
            requests,
            protocol: Protocol::Http1,
            connections: 64,
            streams: 1,
            pace: Pace::Closed,
            warmup: Duration::from_secs(1),
            duration: Duration::from_secs(5),
            requests_limit: None,
            requests_each: None,
            timeout: Duration::from_secs(10),
            threads: 1,
        }
    }
}

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive: one request after the other on each connection.
    Http1,
    /// HTTP/1.1 with a new connection for each request.
    Http1PerRequest,
    /// HTTP/2 with prior knowledge (no TLS, no upgrade).
    Http2,
}

/// What decides when the next request starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each connection starts its next request as soon as it has its answer.
    Closed,
    /// Requests start by a clock fixed in advance; a late answer makes the following ones late, not fewer.
    Open {
        /// Requests per second over all connections.
        rate: f64,
    },
}

/// One kind of request.
#[derive(Clone, Debug)]
pub struct Template {
    /// The method.
    pub method: Method,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Headers beside `host`, `content-length` and `connection`, which the client sets.
    pub headers: HeaderMap,
    /// The body; empty means none.
    pub body: Bytes,
    /// How often it comes in a mix, relative to the others.
    pub weight: u32,
    /// Which answer counts as a success.
    pub expect: Expect,
}

impl Template {
    /// A `GET` that expects status 200 and any body.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            weight: 1,
            expect: Expect::default(),
        }
    }

    /// A `POST` of `body` that expects status 200 and any body.
    pub fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::POST,
            body: body.into(),
            ..Self::get(path)
        }
    }
}

/// The answer that counts as a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: ExpectBody,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            status: 200,
            body: ExpectBody::Any,
        }
    }
}

/// The body that counts as a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectBody {
    /// Whatever comes, as long as it is complete.
    Any,
    /// So many bytes.
    Length(u64),
    /// These bytes.
    Bytes(Bytes),
}
