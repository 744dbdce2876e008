//! A native server on hyper alone, made as fast as hyper allows without giving up anything usual:
//! HTTP/1.1 and HTTP/2 on one port, one task for each connection, routes matched by hand.

use std::convert::Infallible;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use native_peers::body::{Reply, count};
use native_peers::{content, start};
use tokio::net::TcpListener;
use work_logic::{Answer, Plan};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    start::run(serve)
}

async fn serve(listener: TcpListener) -> std::io::Result<()> {
    let builder = auto::Builder::new(TokioExecutor::new());
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                eprintln!("cannot accept: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let builder = builder.clone();
        tokio::spawn(async move {
            // Without it, small chunks wait for the client's acknowledgement.
            let _ = stream.set_nodelay(true);
            let connection = builder.serve_connection(TokioIo::new(stream), service_fn(handle));
            // A client that goes away is none of our business.
            let _ = connection.await;
        });
    }
}

async fn handle(request: Request<Incoming>) -> Result<Response<Reply>, Infallible> {
    let path = request.uri().path();
    if request.method() == Method::GET
        && let Some(user) = content::user(path)
        && let Some(json) = content::greeting(&user)
    {
        return Ok(ok(content::TEXT, Reply::whole(json)));
    }
    let method = match *request.method() {
        Method::GET => work_logic::Method::Get,
        Method::HEAD => work_logic::Method::Head,
        Method::POST => work_logic::Method::Post,
        _ => work_logic::Method::Other,
    };
    Ok(match Plan::of(method, path) {
        Plan::Answer(answer) => convert(answer),
        Plan::Json => next_order(request.into_body()).await,
        Plan::Upload => match count(request.into_body()).await {
            Ok(bytes) => ok(content::TEXT, Reply::whole(format!("{bytes}\n"))),
            Err(_) => broken(),
        },
        Plan::Download { bytes } => ok(content::OCTETS, Reply::Fill(bytes)),
        Plan::Stream { chunks } => ok(content::OCTETS, Reply::chunks(chunks)),
        Plan::Slow { ms } => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            ok(content::TEXT, Reply::whole(format!("slow {ms}\n")))
        }
    })
}

async fn next_order(body: Incoming) -> Response<Reply> {
    let Ok(body) = body.collect().await else {
        return broken();
    };
    let body = body.to_bytes();
    match content::next_order(&body) {
        Some(json) => ok(content::JSON, Reply::whole(json)),
        None => convert(work_logic::next_order(&body)),
    }
}

fn ok(kind: HeaderValue, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A body that broke off leaves nobody to read this.
fn broken() -> Response<Reply> {
    let mut response = ok(content::TEXT, Reply::whole("the body broke off\n"));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

fn convert(answer: Answer) -> Response<Reply> {
    let body = answer.body.into_owned();
    let mut response = Response::new(Reply::whole(body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or_default();
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}
