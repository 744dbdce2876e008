//! Where every front ends and every guest begins: one snapshot, one guest, permits, the call, the answer.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use crate::dispatch::{Admitted, GuestBody, IncomingRequest, Target};
use crate::error::RequestError;
use crate::guest::registry::Registry;
use crate::limits::admission::Admission;
use crate::respond;
use crate::task::Tasks;
use crate::telemetry::access_log::{Access, Line};
use crate::telemetry::request_id::RequestId;

/// What a front knows of a request's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnInfo {
    /// The client.
    pub(crate) peer: SocketAddr,
    /// The listener's own end.
    pub(crate) local: SocketAddr,
}

/// Answers requests, whatever protocol they came by.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) registry: Registry<Target>,
    pub(crate) admission: Admission,
    pub(crate) tasks: Tasks,
    pub(crate) access_log: bool,
}

impl Handler {
    /// Answers one request. Never fails: what goes wrong becomes a response.
    ///
    /// `checked` is the request, or why the front refuses it.
    pub(crate) async fn handle<B>(
        &self,
        conn: ConnInfo,
        checked: Result<IncomingRequest<B>, (RequestError, IncomingRequest<B>)>,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::fmt::Display,
    {
        let id = RequestId::next();
        let (method, access) = match &checked {
            Ok(request) => (request.method().clone(), self.access(id, conn, request)),
            Err((_, request)) => (request.method().clone(), self.access(id, conn, request)),
        };
        let answer = match checked {
            Ok(request) => match self.serve(id, request).await {
                Ok(response) if method == Method::CONNECT && response.status().is_success() => {
                    Err(RequestError::Tunnel(response.status()))
                }
                answer => answer,
            },
            Err((error, _)) => Err(error),
        };
        let mut response = match answer {
            Ok(response) => self.guest_response(&method, response),
            Err(error) => {
                log_failure(id, &error);
                respond::error_response(&error, id).map(|text| ResponseBody::host(&method, text))
            }
        };
        if let Some(access) = access {
            let line = Line::new(access, response.status());
            response.body_mut().line = Some(Box::new(line));
        }
        response
    }

    async fn serve<B>(
        &self,
        id: RequestId,
        request: IncomingRequest<B>,
    ) -> Result<Response<GuestBody>, RequestError>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::fmt::Display,
    {
        let snapshot = self.registry.load();
        let target = Arc::clone(snapshot.route());
        let overloaded = |_| RequestError::Overloaded;
        // The guest's own queue comes first, so that one busy guest does not hold places of all.
        let own = target.guest.enter().await.map_err(overloaded)?;
        let shared = self.admission.enter().await.map_err(overloaded)?;
        target.call(Admitted::new(id, [own, shared]), request).await
    }

    fn guest_response(
        &self,
        method: &Method,
        response: Response<GuestBody>,
    ) -> Response<ResponseBody> {
        let (mut head, body) = response.into_parts();
        respond::fix_head(head.status, &mut head.headers);
        if respond::has_body(method, head.status) {
            return Response::from_parts(head, ResponseBody::guest(body));
        }
        self.tasks.spawn(body.discard());
        Response::from_parts(head, ResponseBody::empty())
    }

    fn access<B>(&self, request: RequestId, conn: ConnInfo, of: &Request<B>) -> Option<Access> {
        self.access_log.then(|| Access {
            request,
            peer: conn.peer,
            method: of.method().clone(),
            uri: of.uri().clone(),
            begin: Instant::now(),
        })
    }
}

/// A client's own mistakes are no news for the operator; a guest's are.
fn log_failure(id: RequestId, error: &RequestError) {
    // As a value and not as text, so that a backtrace stays within its line.
    let text = error.to_string();
    if error.status().is_client_error() {
        tracing::debug!(request = %id, kind = error.kind(), error = text, "request refused");
    } else {
        tracing::warn!(request = %id, kind = error.kind(), error = text, "request failed");
    }
}

/// The body of a response, on its way to a front.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    content: Content,
    /// In a box, since a response is moved many times and few hosts log every one.
    line: Option<Box<Line>>,
}

#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly every body is a guest's; a box would cost each of them an allocation"
)]
enum Content {
    Empty,
    Host(Bytes),
    Guest(GuestBody),
}

/// The response broke off. The cause has been logged where it was known.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Broken(#[from] crate::dispatch::BrokenBody);

impl ResponseBody {
    fn empty() -> Self {
        Self {
            content: Content::Empty,
            line: None,
        }
    }

    fn guest(body: GuestBody) -> Self {
        Self {
            content: Content::Guest(body),
            line: None,
        }
    }

    fn host(method: &Method, text: Bytes) -> Self {
        let content = if method == Method::HEAD {
            Content::Empty
        } else {
            Content::Host(text)
        };
        Self {
            content,
            line: None,
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        let frame = match &mut this.content {
            Content::Empty => None,
            Content::Host(text) => {
                let text = std::mem::take(text);
                this.content = Content::Empty;
                Some(Ok(Frame::data(text)))
            }
            Content::Guest(body) => {
                let frame = std::task::ready!(Pin::new(body).poll_frame(cx));
                frame.map(|frame| frame.map_err(Broken::from))
            }
        };
        if let (Some(line), Some(Ok(frame))) = (&mut this.line, &frame) {
            line.sent(frame.data_ref().map_or(0, |data| data.len() as u64));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Empty => true,
            Content::Host(text) => text.is_empty(),
            Content::Guest(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Empty => SizeHint::with_exact(0),
            Content::Host(text) => SizeHint::with_exact(text.len() as u64),
            Content::Guest(body) => body.size_hint(),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let complete = match &self.content {
            Content::Empty => true,
            Content::Host(_) => false,
            Content::Guest(body) => body.is_complete(),
        };
        if let Some(line) = &mut self.line
            && complete
        {
            line.complete();
        }
    }
}
