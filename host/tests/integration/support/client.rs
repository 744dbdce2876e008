//! A well-behaved client for HTTP/1.1 and HTTP/2 (with prior knowledge) that shows both in the same terms.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body_util::channel::{Channel, Sender};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::{Http, spawn};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;
/// The writing end of a request body.
pub(crate) type Upload = Sender<Bytes, BoxError>;

/// The authority that requests name unless a test says otherwise.
const AUTHORITY: &str = "test.example";

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    sender: Requests,
    connection: JoinHandle<()>,
}

#[derive(Debug)]
enum Requests {
    One(http1::SendRequest<Body>),
    Two(http2::SendRequest<Body>),
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// A response that broke off, with what came before.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) read: Bytes,
    /// The library's words, for messages of failed tests.
    #[allow(dead_code, reason = "shown by Debug")]
    pub(crate) error: hyper::Error,
}

/// A whole response, or as much of it as came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Result<Bytes, Cut>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Answer {
    /// The body of an answer that must be complete.
    #[track_caller]
    pub(crate) fn whole(&self) -> &Bytes {
        match &self.body {
            Ok(body) => body,
            Err(cut) => panic!("the body was cut: {cut:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(self.whole()).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Fails unless this is an answer that the host itself makes, with this status.
    #[track_caller]
    pub(crate) fn assert_by_host(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(
            self.header("x-request-id").is_some_and(|id| !id.is_empty()),
            "{self:?}"
        );
        assert_eq!(
            self.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        let reason = self.status.canonical_reason().unwrap();
        let begin = format!("{status} {reason}: ");
        let text = self.text();
        assert!(
            text.starts_with(&begin) && text.len() > begin.len() + 1,
            "{text:?}"
        );
        assert_eq!(text.find('\n'), Some(text.len() - 1), "one line: {text:?}");
    }

    pub(crate) async fn of(response: Response<Incoming>) -> Self {
        let (head, mut body) = response.into_parts();
        let mut read = Vec::new();
        let mut trailers = None;
        let cut = loop {
            match body.frame().await {
                None => break None,
                Some(Err(error)) => break Some(error),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => read.extend_from_slice(&data),
                    Err(frame) => trailers = frame.into_trailers().ok(),
                },
            }
        };
        let read = Bytes::from(read);
        let body = match cut {
            None => Ok(read),
            Some(error) => Err(Cut { read, error }),
        };
        Self {
            status: head.status,
            headers: head.headers,
            body,
            trailers,
        }
    }
}

impl Client {
    pub(crate) async fn connect(http: Http, addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let io = TokioIo::new(stream);
        match http {
            Http::One => {
                let (sender, connection) = http1::handshake(io).await.unwrap();
                let connection = spawn(async move { drop(connection.await) });
                Self {
                    sender: Requests::One(sender),
                    connection,
                }
            }
            Http::Two => {
                let mut builder = http2::Builder::new(TokioExecutor::new());
                // Two hundred streams at once must not wait for the server's first settings.
                builder.initial_max_send_streams(256);
                let (sender, connection) = builder.handshake(io).await.unwrap();
                let connection = spawn(async move { drop(connection.await) });
                Self {
                    sender: Requests::Two(sender),
                    connection,
                }
            }
        }
    }

    /// Sends a request and waits for the response's head.
    ///
    /// A request that is made by [`request`] or [`upload`] fits both protocols.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        match &mut self.sender {
            Requests::One(sender) => {
                let authority = request.uri().authority().unwrap().to_string();
                request
                    .headers_mut()
                    .insert("host", authority.parse().unwrap());
                let path = request.uri().path_and_query().unwrap().as_str().to_owned();
                *request.uri_mut() = path.parse().unwrap();
                *request.version_mut() = Version::HTTP_11;
                sender.ready().await?;
                sender.send_request(request).await
            }
            Requests::Two(sender) => {
                *request.version_mut() = Version::HTTP_2;
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }

    /// Sends a request and reads its whole response, which must at least begin.
    pub(crate) async fn ask(&mut self, request: Request<Body>) -> Answer {
        Answer::of(self.send(request).await.unwrap()).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.ask(request("GET", path)).await
    }

    /// A second handle on the same HTTP/2 connection.
    pub(crate) fn stream(&self) -> http2::SendRequest<Body> {
        match &self.sender {
            Requests::One(_) => panic!("HTTP/1 has no streams"),
            Requests::Two(sender) => sender.clone(),
        }
    }
}

/// A request without a body.
pub(crate) fn request(method: &str, path: &str) -> Request<Body> {
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    Request::builder()
        .method(method)
        .uri(format!("http://{AUTHORITY}{path}"))
        .body(body)
        .unwrap()
}

/// A POST whose body the test writes as it goes; its length is not declared.
pub(crate) fn upload(path: &str) -> (Upload, Request<Body>) {
    let (sender, body) = Channel::new(1);
    let mut post = request("POST", path);
    *post.body_mut() = body.boxed_unsync();
    (sender, post)
}

/// A POST with a declared length.
pub(crate) fn post(path: &str, body: impl Into<Bytes>) -> Request<Body> {
    let mut post = request("POST", path);
    *post.body_mut() = Full::new(body.into())
        .map_err(|never| match never {})
        .boxed_unsync();
    post
}
