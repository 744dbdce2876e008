//! The front for HTTP/1.0, HTTP/1.1 and HTTP/2 without TLS.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use http::{HeaderValue, Request, Response, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::authority;
use super::connection::{Connection, DrainStep, InFlight};
use super::socket::Socket;
use super::stream::StreamedBody;
use super::watchdog::Watchdog;
use crate::config::ListenerConfig;
use crate::error::RequestError;
use crate::handler::{ConnInfo, Handler};
use crate::limits::body::LimitedBody;
use crate::task::Tasks;

/// Serves the connections of one listener.
#[derive(Clone, Debug)]
pub(crate) struct HttpFront {
    handler: Arc<Handler>,
    config: Arc<ListenerConfig>,
    builder: auto::Builder<Tasks>,
}

/// HTTP/2 streams run as tasks of their own.
impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        self.spawn(future);
    }
}

impl HttpFront {
    pub(crate) fn new(handler: Arc<Handler>, config: Arc<ListenerConfig>) -> Self {
        let mut builder = auto::Builder::new(handler.tasks.clone());
        builder
            .http1()
            // A client that has closed only its sending side still gets its answer.
            .half_close(true)
            // The connection's own watchdog tells idle from slow; hyper's timer does not.
            .header_read_timeout(None);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(256);
        Self {
            handler,
            config,
            builder,
        }
    }

    /// Serves one connection until it ends, takes too long, or is drained.
    pub(crate) async fn serve_connection(
        &self,
        stream: TcpStream,
        info: ConnInfo,
        mut drain: watch::Receiver<bool>,
    ) {
        let connection = Connection::new(stream, &self.config);
        let io = TokioIo::new(Socket::new(Arc::clone(&connection)));
        let service = {
            let front = self.clone();
            let connection = Arc::clone(&connection);
            service_fn(move |request| {
                let in_flight = connection.begin_request();
                let front = front.clone();
                let connection = Arc::clone(&connection);
                async move { front.answer(connection, in_flight, info, request).await }
            })
        };
        let mut serving = pin!(self.builder.serve_connection(io, service));
        let mut watchdog = Watchdog::new(Arc::clone(&connection));
        let mut drain = pin!(drain_points(&connection, &mut drain));
        let mut stopped = false;
        let result = poll_fn(|cx| {
            if !stopped && drain.as_mut().poll(cx).is_ready() {
                stopped = true;
                serving.as_mut().graceful_shutdown();
            }
            if let Poll::Ready(result) = serving.as_mut().poll(cx) {
                return Poll::Ready(result.map_err(|error| error.to_string()));
            }
            watchdog
                .poll_expired(cx)
                .map(|()| Err("the client took too long".to_owned()))
        })
        .await;
        if let Err(error) = result {
            tracing::debug!(peer = %info.peer, error, "connection closed");
        }
    }

    /// Answers one request, unless its client goes away.
    ///
    /// # Errors
    /// `Vanished` when there is nobody to answer.
    async fn answer(
        &self,
        connection: Arc<Connection>,
        in_flight: InFlight,
        info: ConnInfo,
        mut request: Request<Incoming>,
    ) -> Result<Response<StreamedBody>, Vanished> {
        let version = request.version();
        let valid = authority::make_absolute(&mut request, info.local);
        // In a box from here on: each future on the way would have room for two copies of it, and all of that
        // is moved with every request.
        let request = Box::new(request.map(|body| LimitedBody::new(body, self.config.body_idle)));
        let upload = match valid {
            Ok(()) => request.body().upload(),
            Err(_) => None,
        };
        let checked = match valid {
            Ok(()) => Ok(request),
            Err(reason) => Err((RequestError::BadRequest(reason), request)),
        };
        let mut answer = pin!(self.handler.handle(info, checked));
        let mut vanished = pin!(connection.vanished(version == Version::HTTP_11));
        let mut response = poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Ok(response)),
            // Only asked while there is something to wait for.
            Poll::Pending => vanished.as_mut().poll(cx).map(|()| Err(Vanished)),
        })
        .await?;
        // hyper closes a connection whose request body is given up, and may learn of that only after the head.
        let given_up = upload.is_some_and(|upload| upload.was_abandoned());
        if version <= Version::HTTP_11 && (given_up || connection.is_draining()) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        Ok(response.map(|body| StreamedBody::new(body, in_flight)))
    }
}

/// Resolves when the host drains and this connection is to stop reading.
async fn drain_points(connection: &Connection, drain: &mut watch::Receiver<bool>) {
    // Nobody holds the sender any more: the host is gone without a drain, which is no reason to stop.
    if drain.wait_for(|draining| *draining).await.is_err() {
        return std::future::pending().await;
    }
    loop {
        match connection.drain_step() {
            DrainStep::Stop => return,
            DrainStep::Until(instant) => {
                tokio::select! {
                    () = tokio::time::sleep_until(instant) => {}
                    () = connection.changed() => {}
                }
            }
            DrainStep::Wait => connection.changed().await,
        }
    }
}

/// The client is gone; hyper closes the connection.
#[derive(Debug, thiserror::Error)]
#[error("the client went away before it was answered")]
struct Vanished;
