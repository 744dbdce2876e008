//! Servers for the tests: one that speaks HTTP (1.1 and 2) and counts, one that follows a script byte by byte.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use cloudgo_bench::load::Plan;

pub(crate) type Body = BoxBody<Bytes, hyper::Error>;

/// What the server saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) requests: AtomicU64,
    /// Connections with at least one request.
    pub(crate) connections: AtomicU64,
    pub(crate) paths: Mutex<Vec<String>>,
}

impl Seen {
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.requests.load(SeqCst), self.connections.load(SeqCst))
    }
}

/// A server that ends when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    _runtime: Runtime,
}

impl Server {
    pub(crate) fn start<F, R>(answer: F) -> Self
    where
        F: Fn(Request<Incoming>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response<Body>> + Send + 'static,
    {
        Self::start_with(u64::MAX, answer)
    }

    /// Takes its leave of each connection, in the way of the protocol, after so many requests.
    pub(crate) fn start_with<F, R>(most: u64, answer: F) -> Self
    where
        F: Fn(Request<Incoming>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response<Body>> + Send + 'static,
    {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let counted = Arc::clone(&seen);
        let handle = runtime.handle().clone();
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (seen, answer) = (Arc::clone(&counted), answer.clone());
                let (served, enough) = (AtomicU64::new(0), Arc::new(Notify::new()));
                let leave = Arc::clone(&enough);
                let service = service_fn(move |request: Request<Incoming>| {
                    seen.requests.fetch_add(1, SeqCst);
                    let before = served.fetch_add(1, SeqCst);
                    seen.connections.fetch_add(u64::from(before == 0), SeqCst);
                    if before + 1 == most {
                        enough.notify_one();
                    }
                    seen.paths
                        .lock()
                        .unwrap()
                        .push(request.uri().path().to_owned());
                    let answered = answer(request);
                    async move { Ok::<_, Infallible>(answered.await) }
                });
                handle.spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let mut connection =
                        pin!(builder.serve_connection(TokioIo::new(stream), service));
                    // A client may leave at any time.
                    tokio::select! {
                        _ = connection.as_mut() => {}
                        () = leave.notified() => {
                            connection.as_mut().graceful_shutdown();
                            let _ = connection.await;
                        }
                    }
                });
            }
        });
        Self {
            address,
            seen,
            _runtime: runtime,
        }
    }

    /// Answers everything with "hello".
    pub(crate) fn hello() -> Self {
        Self::start(|_| async { Response::new(text("hello")) })
    }
}

pub(crate) fn text(text: &'static str) -> Body {
    Full::new(Bytes::from_static(text.as_bytes()))
        .map_err(|never| match never {})
        .boxed()
}

/// A server in which `script` handles each connection, numbered from 0. The first one is the client's look whether
/// anybody is there. The listener is handed to the script too; the server ends with the script's `false`.
pub(crate) fn scripted(
    mut script: impl FnMut(usize, TcpStream, &mut Option<TcpListener>) + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut listener = Some(listener);
        let mut at = 0;
        while let Some((stream, _)) = listener.as_ref().map(|listener| listener.accept().unwrap()) {
            script(at, stream, &mut listener);
            at += 1;
        }
    });
    address
}

/// Reads a request without a body; false at the end of the connection.
pub(crate) fn read_request(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

pub(crate) fn send(stream: &mut TcpStream, bytes: &str) {
    stream.write_all(bytes.as_bytes()).unwrap();
}

/// `requests` recorded requests without a warm-up, with time enough to make them.
pub(crate) fn exactly(requests: u64, plan: Plan) -> Plan {
    use std::time::Duration;
    Plan {
        warmup: Duration::ZERO,
        duration: Duration::from_secs(60),
        requests_limit: Some(requests),
        ..plan
    }
}
