//! A plain HTTP/1.1 connection for what the load client does not do: being idle, asking a thousand times before
//! reading one answer, and the very first request to a server.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A connection.
#[derive(Debug)]
pub(super) struct Raw {
    stream: TcpStream,
    target: SocketAddr,
}

/// Where an answer ends.
enum Body {
    Length(usize),
    Chunks,
}

impl Raw {
    pub(super) fn connect(target: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&target, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream, target })
    }

    /// Sends a GET request.
    pub(super) fn ask(&mut self, path: &str) -> io::Result<()> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.target);
        self.stream.write_all(request.as_bytes())
    }

    /// Reads one answer: its status and, if it has a declared length, its body.
    pub(super) fn answer(&mut self) -> io::Result<(u16, Vec<u8>)> {
        let mut bytes = Vec::new();
        loop {
            if let Some(answer) = complete(&bytes)? {
                return Ok(answer);
            }
            let mut piece = [0; 4096];
            let read = self.stream.read(&mut piece)?;
            if read == 0 {
                let problem = "the server closed the connection before its answer was complete";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, problem));
            }
            bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
        }
    }

    /// Whether nothing has come, not even an end.
    pub(super) fn is_silent(&self) -> io::Result<bool> {
        self.stream.set_nonblocking(true)?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        Ok(peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock))
    }
}

/// The answer, if these bytes are a whole one.
fn complete(bytes: &[u8]) -> io::Result<Option<(u16, Vec<u8>)>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut headers);
    let invalid = |problem: &str| io::Error::new(ErrorKind::InvalidData, problem.to_owned());
    let parsed = head
        .parse(bytes)
        .map_err(|error| invalid(&format!("the answer is no HTTP: {error}")))?;
    let httparse::Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let body = bytes.get(length..).unwrap_or_default();
    let whole = match end(head.headers) {
        Some(Body::Length(length)) => body.len() >= length,
        Some(Body::Chunks) => body.ends_with(b"0\r\n\r\n"),
        None => return Err(invalid("the answer does not say where it ends")),
    };
    let status = head.code.unwrap_or_default();
    Ok(whole.then(|| (status, body.to_vec())))
}

fn end(headers: &[httparse::Header<'_>]) -> Option<Body> {
    headers.iter().find_map(|header| {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Some(Body::Chunks);
        }
        if !header.name.eq_ignore_ascii_case("content-length") {
            return None;
        }
        let length = str::from_utf8(header.value).ok()?.trim().parse().ok()?;
        Some(Body::Length(length))
    })
}

#[cfg(test)]
mod tests {
    use super::complete;

    #[test]
    fn answers_end_where_they_say() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n".to_vec();
        assert_eq!(complete(&head[..20]).unwrap(), None);
        assert_eq!(complete(&head).unwrap(), None);
        let whole = [head, b"abc".to_vec()].concat();
        assert_eq!(complete(&whole).unwrap(), Some((200, b"abc".to_vec())));
        let chunks = b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
        assert_eq!(complete(chunks).unwrap(), None);
        let whole = [chunks.to_vec(), b"0\r\n\r\n".to_vec()].concat();
        assert_eq!(complete(&whole).unwrap().unwrap().0, 500);
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        assert!(complete(b"SSH-2.0-x\r\n").is_err());
        assert!(complete(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
