//! A connection's bytes as the HTTP library reads and writes them. The connection itself hears of all of them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::connection::Connection;

/// The byte stream of a connection.
#[derive(Debug)]
pub(super) struct Socket {
    connection: Arc<Connection>,
    /// What the next read takes at most. The buffer is zeroed before, which costs more than reading a small
    /// request does: it grows only while the client fills it.
    chunk: usize,
}

const SMALLEST_CHUNK: usize = 1024;
const LARGEST_CHUNK: usize = 64 * 1024;

impl Socket {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self {
            connection,
            chunk: SMALLEST_CHUNK,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { connection, chunk } = self.get_mut();
        ready!(connection.stream().poll_read_ready(cx))?;
        let space = buf.initialize_unfilled_to(buf.remaining().min(*chunk));
        loop {
            ready!(connection.stream().poll_read_ready(cx))?;
            let mut count = 0;
            let read = connection.stream().try_io(Interest::READABLE, || {
                let (received, _) = rustix::net::recv(
                    connection.stream(),
                    &mut *space,
                    rustix::net::RecvFlags::DONTWAIT,
                )?;
                count = received;
                // A short read has emptied the socket. Saying so spares the system call that would tell.
                if (1..space.len()).contains(&count) {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && count == 0 => {}
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                Ok(()) | Err(_) => {
                    *chunk = if count == space.len() {
                        (*chunk * 4).min(LARGEST_CHUNK)
                    } else {
                        SMALLEST_CHUNK.max(count.next_power_of_two())
                    };
                    connection.saw_bytes(space.get(..count).unwrap_or_default());
                    buf.advance(count);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl Socket {
    fn poll_attempt(
        &self,
        cx: &mut Context<'_>,
        attempt: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let connection = &self.connection;
        let written = loop {
            match connection.stream().poll_write_ready(cx) {
                Poll::Pending => break Poll::Pending,
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => match attempt(connection.stream()) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    written => break Poll::Ready(written),
                },
            }
        };
        connection.saw_write(&written);
        written
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_attempt(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_attempt(cx, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The HTTP library flushes when its own buffer is empty; TCP has none to flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.saw_flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown =
            rustix::net::shutdown(self.connection.stream(), rustix::net::Shutdown::Write);
        Poll::Ready(shutdown.map_err(io::Error::from))
    }
}
