//! The response body of a guest. It ends cleanly only if the guest ended it: a trap, a deadline or a leaked
//! body is an error here, which every protocol shows to the client as an aborted body.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;
use wasmtime_wasi_http::WasiBody;

use super::{p2, p3};
use crate::config::GuestLimits;
use crate::limits::deadline::IdleTimer;

/// Why a response body broke off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenBody {
    /// The guest trapped, was stopped, or ended without finishing its body.
    #[error("the guest ended without finishing its response body")]
    Unfinished,
    /// The guest ended its body before the length that it had declared.
    #[error("the guest's response body is shorter than its content-length")]
    Short,
    /// The guest was silent for too long.
    #[error("the guest's response body was silent for {0:?}")]
    Idle(Duration),
    /// The guest aborted its body, or broke its own content-length.
    #[error("the guest aborted its response body: {0}")]
    Aborted(wasmtime_wasi_http::Error),
}

/// What keeps a body's guest going.
#[derive(Debug)]
pub(super) enum Producer {
    /// A WASI 0.2 guest, which runs while its body is polled.
    P2(p2::Running),
    /// A WASI 0.3 guest, which runs in its worker.
    P3(p3::Awaited),
}

/// How long a guest may take over its body and after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits {
    /// The longest silence.
    pub(super) idle: Option<Duration>,
    /// Work that goes on after the response.
    pub(super) after: Option<Duration>,
}

impl From<&GuestLimits> for BodyLimits {
    fn from(limits: &GuestLimits) -> Self {
        Self {
            idle: limits.response_idle,
            after: limits.wall,
        }
    }
}

/// A guest's response body.
#[derive(Debug)]
pub(crate) struct GuestBody {
    inner: WasiBody,
    producer: Producer,
    idle: IdleTimer,
    limits: BodyLimits,
    /// Bytes that are still to come, if the response declares its length.
    left: Option<u64>,
    ended: bool,
    failure: Option<Failure>,
}

/// An error on its way to the front. The front discards what it has not yet sent when it hears of an error,
/// HTTP/2's stream resets even more than a closed connection: a moment lets that part go out first, so that
/// the client sees how far the response got.
#[derive(Debug)]
struct Failure {
    error: Option<BrokenBody>,
    pause: Pin<Box<Sleep>>,
}

const FAILURE_PAUSE: Duration = Duration::from_millis(20);

impl Failure {
    fn new(error: BrokenBody) -> Self {
        tracing::debug!(%error, "response body aborted");
        Self {
            error: Some(error),
            pause: Box::pin(tokio::time::sleep(FAILURE_PAUSE)),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        if self.error.is_some() {
            std::task::ready!(self.pause.as_mut().poll(cx));
        }
        // Asked again after the error, a body is over.
        Poll::Ready(self.error.take().map(Err))
    }
}

impl GuestBody {
    pub(super) fn new(
        inner: WasiBody,
        producer: Producer,
        limits: BodyLimits,
        content_length: Option<u64>,
    ) -> Self {
        let ended = inner.is_end_stream();
        Self {
            inner,
            producer,
            idle: IdleTimer::new(limits.idle),
            limits,
            left: content_length,
            ended,
            failure: None,
        }
    }

    /// Whether everything that belongs to the response has been handed over.
    pub(crate) fn is_complete(&self) -> bool {
        self.ended || self.left == Some(0)
    }

    /// Reads and throws away what the guest still writes for a response that has no body on the wire, so that
    /// the guest sees its writes succeed. Ends when the guest does, after the time for work that follows a response, or after 1 MiB.
    pub(crate) async fn discard(mut self) {
        const MOST: usize = 1 << 20;
        // Whatever happens from here on, the client has its whole answer.
        self.ended = true;
        let limit = self.limits.after;
        let body = &mut self;
        let read = async move {
            let mut seen = 0;
            while seen < MOST {
                let frame = std::future::poll_fn(|cx| body.poll_produced(cx)).await;
                let Some(Ok(frame)) = frame else { break };
                seen += frame.data_ref().map_or(0, Bytes::len);
            }
        };
        match limit {
            Some(limit) => drop(tokio::time::timeout(limit, read).await),
            None => read.await,
        }
    }

    /// Holds the guest to the length that it has declared. What goes beyond it never reaches the client.
    fn count(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, BrokenBody> {
        let mut data = match frame.into_data() {
            Ok(data) => data,
            // Trailers are the last frame.
            Err(_) if self.left.is_some_and(|left| left > 0) => return Err(BrokenBody::Short),
            Err(trailers) => {
                self.ended = true;
                return Ok(trailers);
            }
        };
        if let Some(left) = self.left {
            let length = data.len() as u64;
            if length > left {
                tracing::debug!("guest wrote more than its content-length");
                data.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                self.ended = true;
            }
            self.left = Some(left.saturating_sub(length));
        }
        Ok(Frame::data(data))
    }

    fn poll_produced(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        let mut has_run = false;
        loop {
            match Pin::new(&mut self.inner).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => return Poll::Ready(Some(Ok(frame))),
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(BrokenBody::Aborted(error))));
                }
                Poll::Ready(None) => {
                    let finished = match &self.producer {
                        Producer::P2(running) => running.body_was_finished(),
                        // Its store lives for as long as this body: only the guest can have ended it.
                        Producer::P3(_) => true,
                    };
                    return Poll::Ready((!finished).then_some(Err(BrokenBody::Unfinished)));
                }
                Poll::Pending => match &mut self.producer {
                    // The guest runs now; what it writes meanwhile is sent at once.
                    Producer::P2(running) if !has_run => {
                        has_run = true;
                        running.poll_on(cx);
                    }
                    Producer::P2(_) => return Poll::Pending,
                    Producer::P3(awaited) => {
                        return awaited
                            .poll_broken(cx)
                            .map(|()| Some(Err(BrokenBody::Unfinished)));
                    }
                },
            }
        }
    }
}

impl Body for GuestBody {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        let this = self.get_mut();
        if let Some(failure) = &mut this.failure {
            return failure.poll(cx);
        }
        if this.ended {
            return Poll::Ready(None);
        }
        let error = match this.poll_produced(cx) {
            Poll::Ready(Some(Err(error))) => error,
            Poll::Ready(Some(Ok(frame))) => {
                this.idle.touch();
                match this.count(frame) {
                    Ok(frame) => return Poll::Ready(Some(Ok(frame))),
                    Err(error) => error,
                }
            }
            Poll::Ready(None) if this.left.is_none_or(|left| left == 0) => {
                this.ended = true;
                return Poll::Ready(None);
            }
            Poll::Ready(None) => BrokenBody::Short,
            Poll::Pending => BrokenBody::Idle(std::task::ready!(this.idle.poll_idle(cx))),
        };
        this.failure.insert(Failure::new(error)).poll(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for GuestBody {
    fn drop(&mut self) {
        let complete = self.is_complete();
        match &mut self.producer {
            Producer::P2(running) if complete => running.finish_in_background(),
            // Dropping the call drops the guest's store: it is cancelled.
            Producer::P2(_) => {}
            Producer::P3(awaited) if complete => awaited.complete(),
            // As with a client that is gone: its worker hears of it when this is dropped.
            Producer::P3(_) => {}
        }
    }
}
