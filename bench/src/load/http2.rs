//! HTTP/2 with prior knowledge: one connection, shared by its streams, opened anew when it ends.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::load::Failure;
use crate::load::answer::Check;
use crate::load::http1::{Broken, Common};
use crate::load::mix::Prepared;

type Sender = SendRequest<Full<Bytes>>;

/// A connection and who may open it.
#[derive(Debug)]
pub(super) struct Http2 {
    target: SocketAddr,
    common: Arc<Common>,
    /// One stream opens, the others wait for it.
    opening: Semaphore,
    current: Mutex<Current>,
}

#[derive(Debug, Default)]
struct Current {
    sender: Option<Sender>,
    reconnects: u64,
    /// Drives the connection; ends with this.
    driver: JoinSet<()>,
}

impl Http2 {
    pub(super) fn new(target: SocketAddr, common: Arc<Common>) -> Self {
        Self {
            target,
            common,
            opening: Semaphore::new(1),
            current: Mutex::default(),
        }
    }

    /// Connections opened in place of ended ones since the last call.
    pub(super) fn take_reconnects(&self) -> u64 {
        std::mem::take(&mut self.lock().reconnects)
    }

    /// The open connection, opened first if need be.
    pub(super) async fn open(&self) -> Result<Sender, Failure> {
        if let Some(sender) = self.ready_sender() {
            return Ok(sender);
        }
        let _turn = self.opening.acquire().await;
        if let Some(sender) = self.ready_sender() {
            return Ok(sender);
        }
        let stream = TcpStream::connect(self.target)
            .await
            .map_err(|error| Failure::connecting(&error))?;
        stream
            .set_nodelay(true)
            .map_err(|error| Failure::connecting(&error))?;
        let counted = Counted {
            stream,
            common: Arc::clone(&self.common),
        };
        let shaken = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .handshake(TokioIo::new(counted));
        let (sender, connection) = shaken.await.map_err(|error| kind(&error))?;
        let mut current = self.lock();
        current.driver.abort_all();
        current.driver.spawn(async move {
            // Its end shows in the requests that it carried.
            let _ = connection.await;
        });
        let before = current.sender.replace(sender.clone());
        current.reconnects += u64::from(before.is_some());
        Ok(sender)
    }

    /// Sends a request and reads its whole answer.
    pub(super) async fn exchange(&self, request: &Prepared) -> Result<Result<(), Failure>, Broken> {
        let mut sender = self.open().await.map_err(Broken::Failed)?;
        let message = Request::from_parts(request.parts.clone(), Full::new(request.body.clone()));
        if sender.ready().await.is_err() {
            return Err(Broken::Stale);
        }
        let mut answer = match sender.send_request(message).await {
            Ok(answer) => answer,
            Err(error) if error.is_canceled() || error.is_closed() => return Err(Broken::Stale),
            Err(error) => return Err(Broken::Failed(kind(&error))),
        };
        let mut check = Check::new(&request.expect);
        while let Some(frame) = answer.body_mut().frame().await {
            match frame {
                Ok(frame) => check.body(frame.data_ref().map_or(&[][..], |data| data)),
                Err(error) => return Err(Broken::Failed(kind(&error))),
            }
        }
        Ok(check.verdict(answer.status().as_u16()))
    }

    fn ready_sender(&self) -> Option<Sender> {
        self.lock()
            .sender
            .as_ref()
            .filter(|sender| !sender.is_closed())
            .cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kind(error: &hyper::Error) -> Failure {
    if error.is_parse() {
        Failure::Malformed
    } else {
        Failure::Cut
    }
}

/// A stream whose bytes are counted.
struct Counted {
    stream: TcpStream,
    common: Arc<Common>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        self.common.traffic.read(buffer.filled().len() - before);
        Poll::Ready(read)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        self.common.traffic.wrote(*written.as_ref().unwrap_or(&0));
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, pieces));
        self.common.traffic.wrote(*written.as_ref().unwrap_or(&0));
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
