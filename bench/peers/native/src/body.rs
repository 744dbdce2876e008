//! Bodies: what arrives is counted, what leaves is whole, a number of bytes, or chunks.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use work_logic::{BLOCK, CHUNK, FILLING};

static FULL: [u8; BLOCK] = [FILLING; BLOCK];

/// The body of a response.
#[derive(Debug)]
pub enum Reply {
    Whole(Option<Bytes>),
    /// So many bytes are left, sent in blocks.
    Fill(u64),
    Chunks {
        left: u64,
        /// The last chunk has been handed over, and perhaps not been written.
        flush: bool,
    },
}

impl Reply {
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }

    pub fn chunks(left: u64) -> Self {
        Self::Chunks { left, flush: false }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Fill(0) => None,
            Self::Fill(left) => {
                let block = piece(BLOCK, *left);
                *left -= block.len() as u64;
                Some(block)
            }
            Self::Chunks { flush, .. } if *flush => {
                // hyper writes what it has when a body is not ready, and collects otherwise.
                *flush = false;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Self::Chunks { left: 0, .. } => None,
            Self::Chunks { left, flush } => {
                (*left, *flush) = (*left - 1, true);
                Some(piece(CHUNK, u64::MAX))
            }
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(
            self,
            Self::Whole(None) | Self::Fill(0) | Self::Chunks { left: 0, .. }
        )
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Fill(left) => SizeHint::with_exact(*left),
            Self::Chunks { .. } => SizeHint::default(),
        }
    }
}

fn piece(size: usize, left: u64) -> Bytes {
    let length = usize::try_from(left).map_or(size, |left| left.min(size));
    Bytes::from_static(FULL.get(..length).unwrap_or(&FULL))
}

/// Reads a body to its end and counts it.
pub async fn count<B: Body<Data = Bytes> + Unpin>(mut body: B) -> Result<u64, B::Error> {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// The lengths of the frames, with a 0 where the body was not ready.
    fn frames(mut body: Reply) -> Vec<usize> {
        let mut context = Context::from_waker(Waker::noop());
        let mut lengths = Vec::new();
        loop {
            match Pin::new(&mut body).poll_frame(&mut context) {
                Poll::Pending => lengths.push(0),
                Poll::Ready(None) => return lengths,
                Poll::Ready(Some(Ok(frame))) => {
                    lengths.push(frame.data_ref().map_or(0, Bytes::len));
                }
            }
        }
    }

    #[test]
    fn downloads_come_in_blocks() {
        assert_eq!(Reply::Fill(200_000).size_hint().exact(), Some(200_000));
        assert_eq!(
            frames(Reply::Fill(200_000)),
            [65_536, 65_536, 65_536, 3_392]
        );
        assert!(frames(Reply::Fill(0)).is_empty());
    }

    #[test]
    fn every_chunk_is_flushed() {
        assert_eq!(Reply::chunks(3).size_hint().exact(), None);
        assert_eq!(frames(Reply::chunks(3)), [1_024, 0, 1_024, 0, 1_024, 0]);
    }

    #[tokio::test]
    async fn counts_to_the_end() {
        assert_eq!(count(Reply::Fill(200_000)).await, Ok(200_000));
        assert_eq!(count(Reply::whole("abc")).await, Ok(3));
    }
}
