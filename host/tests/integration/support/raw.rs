//! A client that sends what it is told, byte for byte, and reads HTTP/1 responses without a library's
//! opinion of them.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One TCP connection.
#[derive(Debug)]
pub(crate) struct Raw {
    stream: TcpStream,
    /// Read from the socket and not yet taken by a caller.
    unread: Vec<u8>,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By its own framing.
    Framed,
    /// It had no framing and the server closed the connection.
    Closed,
    /// The server closed or reset the connection before the end of the framing.
    Cut,
}

/// A response as it stood on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawAnswer {
    pub(crate) version: String,
    pub(crate) status: u16,
    /// The interim responses that came before it.
    pub(crate) interim: Vec<u16>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, Vec<u8>)>,
    pub(crate) end: End,
}

impl RawAnswer {
    pub(crate) fn values(&self, name: &str) -> Vec<&[u8]> {
        let wanted = self.headers.iter().filter(|(key, _)| key == name);
        wanted.map(|(_, value)| value.as_slice()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.values(name)
            .first()
            .map(|value| std::str::from_utf8(value).unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Fails unless this is a one-line answer that the host itself makes.
    #[track_caller]
    pub(crate) fn assert_by_host(&self, status: u16, reason: &str) {
        assert_eq!((self.status, self.end), (status, End::Framed), "{self:?}");
        assert!(
            self.header("x-request-id").is_some_and(|id| !id.is_empty()),
            "{self:?}"
        );
        let begin = format!("{status} {reason}: ");
        let text = self.text();
        assert!(
            text.starts_with(&begin) && text.len() > begin.len() + 1,
            "{text:?}"
        );
        assert_eq!(text.find('\n'), Some(text.len() - 1), "one line: {text:?}");
    }
}

struct Head {
    version: String,
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
}

impl Raw {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends a GET with a Host.
    pub(crate) async fn get(&mut self, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: test.example\r\n\r\n"))
            .await;
    }

    /// Reads the final response of a request that is not HEAD.
    pub(crate) async fn answer(&mut self) -> RawAnswer {
        self.answer_to("GET").await.expect("an answer")
    }

    /// Reads the final response; `None` if the connection ends before it has begun.
    pub(crate) async fn answer_to(&mut self, method: &str) -> Option<RawAnswer> {
        let mut interim = Vec::new();
        let head = loop {
            let head = self.head().await?;
            if head.status >= 200 {
                break head;
            }
            interim.push(head.status);
        };
        let mut answer = RawAnswer {
            version: head.version,
            status: head.status,
            interim,
            headers: head.headers,
            body: Vec::new(),
            trailers: Vec::new(),
            end: End::Framed,
        };
        let bodyless = method == "HEAD" || matches!(answer.status, 204 | 304);
        if bodyless {
            return Some(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            self.chunked(&mut answer).await;
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().unwrap();
            answer.end = if self.fill(length).await {
                End::Framed
            } else {
                End::Cut
            };
            answer.body = self.take(length);
        } else {
            answer.body = self.rest().await;
            answer.end = End::Closed;
        }
        Some(answer)
    }

    /// Reads one interim head.
    pub(crate) async fn interim(&mut self) -> u16 {
        self.head().await.expect("an interim response").status
    }

    /// Reads a response's head and leaves its body where it is.
    pub(crate) async fn status(&mut self) -> u16 {
        self.head().await.expect("a response head").status
    }

    /// Waits for `length` bytes and takes them; fewer, if the connection ends before.
    pub(crate) async fn read(&mut self, length: usize) -> Vec<u8> {
        self.fill(length).await;
        self.take(length)
    }

    /// Everything up to the end of the connection, however it comes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.unread)
    }

    /// Whether the server has sent something, without waiting for it.
    pub(crate) fn has_answer(&mut self) -> bool {
        let mut byte = [0_u8; 1];
        if let Ok(1) = self.stream.try_read(&mut byte) {
            self.unread.push(byte[0]);
        }
        !self.unread.is_empty()
    }

    /// Says that no more bytes will come, and goes on reading.
    pub(crate) async fn half_close(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Ends the connection with a RST.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    async fn head(&mut self) -> Option<Head> {
        let end = loop {
            if let Some(end) = find(&self.unread, b"\r\n\r\n") {
                break end;
            }
            if !self.more().await {
                return None;
            }
        };
        let head = self.take(end + 4);
        let mut lines = head[..end]
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::trim_ascii_end);
        let first = std::str::from_utf8(lines.next().unwrap()).unwrap();
        let mut words = first.splitn(3, ' ');
        let version = words.next().unwrap().to_owned();
        let status = words.next().unwrap().parse().unwrap();
        Some(Head {
            version,
            status,
            headers: lines.map(field).collect(),
        })
    }

    async fn chunked(&mut self, answer: &mut RawAnswer) {
        answer.end = End::Cut;
        while let Some(line) = self.line().await {
            let size = std::str::from_utf8(&line).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            if size == 0 {
                while let Some(line) = self.line().await {
                    if line.is_empty() {
                        answer.end = End::Framed;
                        return;
                    }
                    answer.trailers.push(field(&line));
                }
                return;
            }
            let whole = self.fill(size + 2).await;
            answer.body.extend(self.take(size));
            if !whole {
                return;
            }
            assert_eq!(self.take(2), b"\r\n");
        }
    }

    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = find(&self.unread, b"\r\n") {
                let line = self.take(end);
                self.take(2);
                return Some(line);
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Reads until `length` bytes are there; false if the connection ends before.
    async fn fill(&mut self, length: usize) -> bool {
        while self.unread.len() < length {
            if !self.more().await {
                return false;
            }
        }
        true
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let length = length.min(self.unread.len());
        self.unread.drain(..length).collect()
    }

    /// Reads once. False at the end of the connection, be it closed or reset.
    async fn more(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.unread).await, Ok(1..))
    }
}

fn field(line: &[u8]) -> (String, Vec<u8>) {
    let colon = line.iter().position(|byte| *byte == b':').unwrap();
    let name = String::from_utf8(line[..colon].to_vec()).unwrap();
    (name, line[colon + 1..].trim_ascii().to_vec())
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// Connects until nobody listens any more: from then on the drain has begun.
pub(crate) async fn until_refused(addr: SocketAddr) {
    while let Ok(stream) = TcpStream::connect(addr).await {
        drop(stream);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
