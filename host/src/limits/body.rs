//! A request body that is bounded in size and in silence, and that tells the deadline when the client,
//! not the guest, is what everybody waits for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::deadline::{IdleTimer, Upload};

/// Why a request body ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// More bytes than the limit.
    TooLarge(u64),
    /// Silence for longer than the limit.
    Timeout,
    /// The connection broke or the framing was malformed.
    Cut,
}

/// A bounded request body. Errors are [`BodyFault`]s.
#[derive(Debug)]
pub(crate) struct LimitedBody<B> {
    inner: B,
    left: Option<u64>,
    limit: u64,
    idle: IdleTimer,
    upload: Option<Arc<Upload>>,
}

impl<B: Body> LimitedBody<B> {
    /// Bounds `inner` in silence; [`LimitedBody::limit`] bounds it in size.
    pub(crate) fn new(inner: B, idle: Option<Duration>) -> Self {
        let upload = (!inner.is_end_stream()).then(|| Arc::new(Upload::new(idle)));
        Self {
            inner,
            left: None,
            limit: 0,
            idle: IdleTimer::new(idle),
            upload,
        }
    }

    /// Bounds the size, at once if it is declared.
    pub(crate) fn limit(&mut self, bytes: Option<u64>) -> Result<(), BodyFault> {
        let Some(limit) = bytes else {
            return Ok(());
        };
        if self.inner.size_hint().lower() > limit {
            return Err(BodyFault::TooLarge(limit));
        }
        self.left = Some(limit);
        self.limit = limit;
        Ok(())
    }

    /// What this body reports; `None` when it is empty from the start.
    pub(crate) fn upload(&self) -> Option<Arc<Upload>> {
        self.upload.clone()
    }

    fn fail(&self, fault: BodyFault) -> BodyFault {
        if let Some(upload) = &self.upload {
            upload.set_fault(fault);
        }
        fault
    }
}

impl<B> Body for LimitedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let this = self.get_mut();
        let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) else {
            if let Some(upload) = &this.upload {
                upload.begin_wait();
            }
            ready!(this.idle.poll_idle(cx));
            return Poll::Ready(Some(Err(this.fail(BodyFault::Timeout))));
        };
        this.idle.touch();
        if let Some(upload) = &this.upload {
            upload.end_wait();
            let last = match &frame {
                None => true,
                Some(Ok(frame)) => frame.is_trailers(),
                Some(Err(_)) => false,
            };
            if last || this.inner.is_end_stream() {
                upload.set_ended();
            }
        }
        Poll::Ready(match frame {
            None => None,
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                match this.left {
                    Some(left) if length > left => {
                        Some(Err(this.fail(BodyFault::TooLarge(this.limit))))
                    }
                    Some(left) => {
                        this.left = Some(left - length);
                        Some(Ok(frame))
                    }
                    None => Some(Ok(frame)),
                }
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "request body broke off");
                Some(Err(this.fail(BodyFault::Cut)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B> Drop for LimitedBody<B> {
    fn drop(&mut self) {
        // A guest that gave up on the body is billed from here on.
        if let Some(upload) = &self.upload {
            upload.set_dropped();
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full, StreamBody};

    use super::*;

    #[tokio::test]
    async fn a_declared_size_is_refused_at_once() {
        let mut body = LimitedBody::new(Full::new(Bytes::from_static(b"12345")), None);
        assert_eq!(body.limit(Some(4)), Err(BodyFault::TooLarge(4)));
        assert_eq!(body.limit(Some(5)), Ok(()));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "12345");
    }

    #[tokio::test]
    async fn an_undeclared_size_fails_where_the_limit_is_passed() {
        let chunks =
            ["123", "45"].map(|text| Ok::<_, std::io::Error>(Frame::data(Bytes::from(text))));
        let mut body = LimitedBody::new(StreamBody::new(futures_util::stream::iter(chunks)), None);
        body.limit(Some(4)).unwrap();
        let upload = body.upload().unwrap();
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "123"
        );
        assert_eq!(
            body.frame().await.unwrap().unwrap_err(),
            BodyFault::TooLarge(4)
        );
        assert_eq!(upload.fault(), Some(BodyFault::TooLarge(4)));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_bounded() {
        let silent = StreamBody::new(futures_util::stream::pending::<Result<_, std::io::Error>>());
        let mut body = LimitedBody::new(silent, Some(Duration::from_secs(3)));
        assert_eq!(body.frame().await.unwrap().unwrap_err(), BodyFault::Timeout);
    }
}
