//! A response body on its way to a client: it keeps its request in flight, breaks off when the client resets the
//! connection, and is given up when an HTTP/2 client does not open the stream's window for too long.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::connection::{InFlight, Stalling};
use crate::handler::{Broken, ResponseBody};

/// A response body that watches its client.
pub(super) struct StreamedBody {
    source: Source,
    connection: InFlight,
    reset: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

#[allow(
    clippy::large_enum_variant,
    reason = "a box would cost every HTTP/1 response an allocation"
)]
enum Source {
    /// HTTP/1: a client that takes nothing stops the socket, which the connection sees.
    Direct(ResponseBody),
    /// HTTP/2: a client can stop one stream while the socket goes on.
    Shared(Arc<Stream>),
}

/// One HTTP/2 stream's body, where its connection can reach it.
struct Stream(Mutex<StreamState>);

struct StreamState {
    body: Option<ResponseBody>,
    /// Since when a frame has been given and the next one has not been asked for.
    given: Option<Instant>,
}

/// Why a response breaks off.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamError {
    #[error(transparent)]
    Broken(Broken),
    #[error("the client reset the connection")]
    Reset,
    #[error("the client took nothing of the response for too long")]
    Stalled,
}

impl StreamedBody {
    pub(super) fn new(body: ResponseBody, connection: InFlight) -> Self {
        let source = if connection.connection().is_http2() && !body.is_end_stream() {
            let state = StreamState {
                body: Some(body),
                given: None,
            };
            let stream = Arc::new(Stream(Mutex::new(state)));
            connection.connection().watch(Arc::downgrade(&stream) as _);
            Source::Shared(stream)
        } else {
            Source::Direct(body)
        };
        Self {
            source,
            connection,
            reset: None,
        }
    }
}

impl Stream {
    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let mut state = self.lock();
        state.given = None;
        let Some(body) = &mut state.body else {
            return Poll::Ready(Some(Err(StreamError::Stalled)));
        };
        let frame = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(_))) = frame {
            state.given = Some(Instant::now());
        }
        frame.map_err(StreamError::Broken)
    }
}

impl Stalling for Stream {
    fn since(&self) -> Option<Instant> {
        let state = self.lock();
        state.given.filter(|_| state.body.is_some())
    }

    fn give_up(&self) {
        // Dropped outside the lock: this cancels the guest.
        let body = self.lock().body.take();
        drop(body);
    }
}

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = self.get_mut();
        let frame = match &mut this.source {
            Source::Direct(body) => Pin::new(body).poll_frame(cx).map_err(StreamError::Broken),
            Source::Shared(stream) => stream.poll_frame(cx),
        };
        if frame.is_ready() {
            return frame;
        }
        // hyper would notice a reset only at the next write.
        let connection = &this.connection;
        let reset = this.reset.get_or_insert_with(|| {
            let connection = Arc::clone(connection.connection());
            Box::pin(async move { connection.reset().await })
        });
        reset
            .as_mut()
            .poll(cx)
            .map(|()| Some(Err(StreamError::Reset)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Direct(body) => body.is_end_stream(),
            Source::Shared(stream) => stream.lock().body.as_ref().is_some_and(Body::is_end_stream),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Direct(body) => body.size_hint(),
            Source::Shared(stream) => stream
                .lock()
                .body
                .as_ref()
                .map(Body::size_hint)
                .unwrap_or_default(),
        }
    }
}
