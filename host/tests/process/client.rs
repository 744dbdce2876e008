//! Raw HTTP/1.1 over one TCP connection, with nothing added and nothing forgiven.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};

use crate::support::DEADLINE;

/// A connection.
#[derive(Debug)]
pub(crate) struct Client(BufReader<TcpStream>);

/// A response's head. Names are in lower case.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: Head,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("a connection")
    }

    /// Connects; an unspecified address is reached by the loopback address of its family.
    pub(crate) fn try_connect(mut address: SocketAddr) -> io::Result<Self> {
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let stream = TcpStream::connect_timeout(&address, DEADLINE)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.0
            .get_mut()
            .write_all(text.as_bytes())
            .expect("the request is taken");
    }

    /// Sends a GET request.
    pub(crate) fn ask(&mut self, target: &str) {
        self.send(&format!("GET {target} HTTP/1.1\r\nhost: test\r\n\r\n"));
    }

    /// Sends a GET request and reads its response, unless the connection ends between two responses.
    pub(crate) fn try_get(&mut self, target: &str) -> Option<Response> {
        let request = format!("GET {target} HTTP/1.1\r\nhost: test\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes()).ok()?;
        let head = self.try_head().ok()?;
        let body = self.body(&head).expect("the body of a head that has come");
        Some(Response { head, body })
    }

    /// Sends a GET request and reads its response.
    pub(crate) fn get(&mut self, target: &str) -> Response {
        self.ask(target);
        self.response()
    }

    /// Reads a response to a request that was not HEAD.
    pub(crate) fn response(&mut self) -> Response {
        let head = self.head();
        let body = self
            .body(&head)
            .unwrap_or_else(|error| panic!("{error} after {head:?}"));
        Response { head, body }
    }

    /// Reads a response to a request that was not HEAD, if the connection still has one.
    pub(crate) fn try_response(&mut self) -> Option<Response> {
        let head = self.try_head().ok()?;
        let body = self.body(&head).ok()?;
        Some(Response { head, body })
    }

    /// Reads a response's head.
    pub(crate) fn head(&mut self) -> Head {
        self.try_head().expect("a response's head")
    }

    fn try_head(&mut self) -> io::Result<Head> {
        let status_line = self.line()?;
        let status = status_line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3));
        let status = status.and_then(|digits| digits.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: `{status_line}`"));
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(Head { status, headers });
            }
            let (name, value) = line.split_once(':').expect("a header has a colon");
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Reads the body that belongs to a head.
    ///
    /// # Errors
    /// The body breaks off.
    pub(crate) fn body(&mut self, head: &Head) -> io::Result<String> {
        let mut body = Vec::new();
        if head.value("transfer-encoding") == Some("chunked") {
            while self.chunk(&mut body)? {}
        } else if let Some(length) = head.value("content-length") {
            body.resize(length.parse().expect("a length"), 0);
            self.0.read_exact(&mut body)?;
        } else {
            self.0.read_to_end(&mut body)?;
        }
        String::from_utf8(body).map_err(io::Error::other)
    }

    /// Whether the other side has closed the connection in order, with nothing more to read.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0))
    }

    fn chunk(&mut self, body: &mut Vec<u8>) -> io::Result<bool> {
        let size = self.line()?;
        let size = u64::from_str_radix(&size, 16).map_err(io::Error::other)?;
        let begin = body.len() as u64;
        (&mut self.0).take(size).read_to_end(body)?;
        if body.len() as u64 != begin + size || !self.line()?.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(size > 0)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line
            .strip_suffix("\r\n")
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(line.to_owned())
    }
}

impl Head {
    /// The value of a header that stands at most once.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(found, _)| found == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} stands twice: {self:?}");
        value
    }
}

impl Response {
    /// The body of a response with status 200.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.head.status, 200, "{self:?}");
        self.body
    }
}

/// One GET request on a connection of its own.
pub(crate) fn get(address: SocketAddr, target: &str) -> Response {
    Client::connect(address).get(target)
}

/// A connection whose guest has begun: it has asked for the request's body.
pub(crate) fn with_running_guest(address: SocketAddr) -> Client {
    let mut client = Client::connect(address);
    client.send(
        "POST /drain HTTP/1.1\r\nhost: test\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.head().status, 100);
    client
}
