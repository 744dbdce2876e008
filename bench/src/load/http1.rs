//! One HTTP/1.1 connection of the client.
//!
//! Not hyper's: a request is one write of prepared bytes and an answer is compared where it was read, so that the
//! client takes little of the processors that it shares with the server. The head is parsed by `httparse`, as in hyper.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::load::Failure;
use crate::load::answer::Answer;
use crate::load::mix::Prepared;
use crate::load::record::Traffic;

/// A read takes at most so much; a head may not be longer.
const SCRATCH: usize = 64 * 1024;

/// What all connections of a thread share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) traffic: Traffic,
    /// The place where all connections of the thread read: 10,000 buffers of their own would take 640 MB.
    scratch: Mutex<Box<[u8]>>,
}

impl Common {
    pub(super) fn new() -> Self {
        Self {
            traffic: Traffic::default(),
            scratch: Mutex::new(vec![0; SCRATCH].into_boxed_slice()),
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Http1 {
    stream: TcpStream,
    /// The beginning of a head whose end has not come.
    rest: Vec<u8>,
    answers: u64,
}

/// How a request ended without its answer.
#[derive(Debug)]
pub(super) enum Broken {
    /// The server had closed the connection before it saw the request.
    Stale,
    Failed(Failure),
}

impl Http1 {
    pub(super) async fn connect(target: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(target)
            .await
            .map_err(|error| Failure::connecting(&error))?;
        stream
            .set_nodelay(true)
            .map_err(|error| Failure::connecting(&error))?;
        Ok(Self {
            stream,
            rest: Vec::new(),
            answers: 0,
        })
    }

    /// Sends a request and reads its whole answer. Afterwards the connection is usable if the result says so.
    pub(super) async fn exchange(
        &mut self,
        request: &Prepared,
        common: &Common,
    ) -> Result<Done, Broken> {
        let mut exchange = Exchange {
            unsent: &request.bytes,
            answer: Answer::new(&request.expect, request.bodiless),
            heard: false,
            common,
        };
        let ended = poll_fn(|context| exchange.poll(self, context)).await;
        match ended {
            Ok(clean) => {
                self.answers += 1;
                let usable = clean && exchange.unsent.is_empty() && exchange.answer.keep_alive();
                Ok(Done {
                    verdict: exchange.answer.verdict(),
                    usable,
                })
            }
            Err(Failure::Cut) if !exchange.heard && self.answers > 0 => Err(Broken::Stale),
            Err(failure) => Err(Broken::Failed(failure)),
        }
    }

    /// Waits until the server has closed the connection: whoever closes first keeps the port for a minute.
    pub(super) async fn closed(&mut self) {
        let mut byte = [0; 64];
        let stream = &mut self.stream;
        while poll_fn(|context| {
            let mut buffer = ReadBuf::new(&mut byte);
            let read = ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer));
            Poll::Ready(read.is_ok() && !buffer.filled().is_empty())
        })
        .await
        {}
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.stream
    }
}

/// A complete answer.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) verdict: Result<(), Failure>,
    /// The connection takes another request.
    pub(super) usable: bool,
}

struct Exchange<'a> {
    unsent: &'a [u8],
    answer: Answer<'a>,
    heard: bool,
    common: &'a Common,
}

impl Exchange<'_> {
    /// Writes and reads at the same time: a server may answer before it has read everything, or while it reads.
    /// Ready with whether nothing came after the answer.
    fn poll(
        &mut self,
        connection: &mut Http1,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, Failure>> {
        while !self.unsent.is_empty() {
            match Pin::new(&mut connection.stream).poll_write(context, self.unsent) {
                Poll::Ready(Ok(count)) => {
                    self.unsent = self.unsent.get(count..).unwrap_or_default();
                    self.common.traffic.wrote(count);
                }
                // The server reads no more; its answer may be there all the same.
                Poll::Ready(Err(_)) | Poll::Pending => break,
            }
        }
        let mut scratch = self
            .common
            .scratch
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            if buffer.remaining() <= connection.rest.len() {
                return Poll::Ready(Err(Failure::Malformed));
            }
            buffer.put_slice(&connection.rest);
            let before = buffer.filled().len();
            if ready!(Pin::new(&mut connection.stream).poll_read(context, &mut buffer)).is_err() {
                return Poll::Ready(Err(Failure::Cut));
            }
            let count = buffer.filled().len() - before;
            if count == 0 {
                return Poll::Ready(self.answer.end().map(|()| false));
            }
            self.heard = true;
            self.common.traffic.read(count);
            let taken = match self.answer.feed(buffer.filled()) {
                Ok(taken) => taken,
                Err(failure) => return Poll::Ready(Err(failure)),
            };
            let left = buffer.filled().get(taken..).unwrap_or_default();
            if self.answer.done() {
                connection.rest.clear();
                return Poll::Ready(Ok(left.is_empty()));
            }
            connection.rest.clear();
            connection.rest.extend_from_slice(left);
        }
    }
}
