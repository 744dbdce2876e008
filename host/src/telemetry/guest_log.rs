//! A guest's stdout and stderr: whole lines, each one log record that names guest, instance and request.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use smallvec::SmallVec;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use super::request_id::RequestId;

/// A longer line is cut into several records, so that a guest cannot fill the host's memory with one.
const LONGEST_LINE: usize = 16 * 1024;
/// What one write may carry. The log takes everything at once, so there is never a wait.
const WRITE_BUDGET: usize = 64 * 1024;

/// Which of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// `wasi:cli/stdout`
    Stdout,
    /// `wasi:cli/stderr`
    Stderr,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// The output of one instance. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct GuestLog(Arc<Output>);

#[derive(Debug)]
struct Output {
    guest: Arc<str>,
    instance: u64,
    /// Those that run in the instance now. Few instances serve more than one at a time.
    requests: Mutex<SmallVec<[RequestId; 2]>>,
    stdout: Mutex<Partial>,
    stderr: Mutex<Partial>,
}

/// What is left of a line that has not ended yet.
type Partial = Vec<u8>;

/// Marks a request as running inside an instance for as long as it lives.
#[derive(Debug)]
pub(crate) struct Tagged {
    log: GuestLog,
    request: RequestId,
}

impl Drop for Tagged {
    fn drop(&mut self) {
        let output = &self.log.0;
        let alone = lock(&output.requests).len() == 1;
        if alone {
            // A line that the request has begun and not ended is still its own.
            output.end_lines();
        }
        lock(&output.requests).retain(|request| *request != self.request);
    }
}

impl GuestLog {
    /// The log of the guest's instance with this number.
    pub(crate) fn new(guest: Arc<str>, instance: u64) -> Self {
        Self(Arc::new(Output {
            guest,
            instance,
            requests: Mutex::default(),
            stdout: Mutex::default(),
            stderr: Mutex::default(),
        }))
    }

    /// Lines that are written from now on belong to this request.
    pub(crate) fn tag(&self, request: RequestId) -> Tagged {
        lock(&self.0.requests).push(request);
        Tagged {
            log: self.clone(),
            request,
        }
    }

    /// One of the two streams.
    pub(crate) fn stream(&self, stream: Stream) -> LogStream {
        LogStream(Arc::clone(&self.0), stream)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Output {
    fn partial(&self, stream: Stream) -> MutexGuard<'_, Partial> {
        lock(match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        })
    }

    fn emit(&self, stream: Stream, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.strip_suffix('\r').unwrap_or(&line);
        let requests = lock(&self.requests);
        // Several requests at once share an instance and its streams: then the instance's number must do.
        let request = match requests.as_slice() {
            [one] => Some(tracing::field::display(one)),
            _ => None,
        };
        tracing::info!(
            target: "guest",
            guest = %self.guest,
            instance = self.instance,
            request,
            stream = stream.name(),
            "{line}"
        );
    }

    fn write(&self, stream: Stream, mut bytes: &[u8]) {
        let mut partial = self.partial(stream);
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.append(stream, &mut partial, line);
            self.emit(stream, &partial);
            partial.clear();
            bytes = rest.split_first().map_or(&[][..], |(_newline, rest)| rest);
        }
        self.append(stream, &mut partial, bytes);
    }

    fn end_lines(&self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut partial = self.partial(stream);
            if !partial.is_empty() {
                self.emit(stream, &partial);
                partial.clear();
            }
        }
    }

    fn append(&self, stream: Stream, partial: &mut Partial, bytes: &[u8]) {
        partial.extend_from_slice(bytes);
        while partial.len() > LONGEST_LINE {
            let rest = partial.split_off(character_boundary(partial, LONGEST_LINE));
            self.emit(stream, partial);
            *partial = rest;
        }
    }
}

/// The last place at or before `end` where text may be cut without cutting a UTF-8 character.
fn character_boundary(text: &[u8], end: usize) -> usize {
    let continues = |index: &usize| text.get(*index).is_some_and(|byte| byte & 0xc0 == 0x80);
    // No character has more than three continuation bytes; bytes that are no UTF-8 may be cut anywhere.
    (end.saturating_sub(3)..=end)
        .rev()
        .find(|index| !continues(index))
        .unwrap_or(end)
}

impl Drop for Output {
    fn drop(&mut self) {
        self.end_lines();
    }
}

/// A `wasi:cli` output stream that ends in the log. Clones write to the same line.
#[derive(Clone, Debug)]
pub(crate) struct LogStream(Arc<Output>, Stream);

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for LogStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.write(self.1, buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl OutputStream for LogStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.write(self.1, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BUDGET)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LogStream {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_between_characters() {
        let euros = "€€".as_bytes();
        let cuts: Vec<_> = (0..=6).map(|end| character_boundary(euros, end)).collect();
        assert_eq!(cuts, [0, 0, 0, 3, 3, 3, 6]);
        assert_eq!(character_boundary(b"abcdef", 4), 4);
        assert_eq!(character_boundary(&[0x80; 9], 5), 5, "no UTF-8 at all");
    }
}
