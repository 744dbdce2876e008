//! A native server on axum, written the way its documentation does: a router, extractors, `axum::serve`.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use native_peers::body::{Reply, count};
use native_peers::{content, start};
use tokio::net::TcpListener;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    start::run(serve)
}

async fn serve(listener: TcpListener) -> std::io::Result<()> {
    let router = Router::new()
        .route("/", get(async || text("Hello, World!")))
        .route("/hello/{user}", get(hello))
        .route("/json", post(next_order))
        .route("/upload", post(upload))
        .route("/download/{bytes}", get(download))
        .route("/stream/{chunks}", get(stream))
        .route("/slow/{ms}", get(slow))
        .fallback(async || (StatusCode::NOT_FOUND, text("not found\n")))
        .method_not_allowed_fallback(refuse);
    // Without it, small chunks wait for the client's acknowledgement.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, router).await
}

async fn hello(Path(user): Path<String>) -> Response {
    match content::greeting(&user) {
        Some(json) => text(json),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn next_order(body: Bytes) -> Response {
    match content::next_order(&body) {
        Some(json) => typed(content::JSON, json),
        None => (StatusCode::BAD_REQUEST, text("the body is no order\n")).into_response(),
    }
}

async fn upload(body: Body) -> Response {
    match count(body).await {
        Ok(bytes) => text(format!("{bytes}\n")),
        Err(_) => (StatusCode::BAD_REQUEST, text("the body broke off\n")).into_response(),
    }
}

async fn download(Path(bytes): Path<u64>) -> Response {
    typed(content::OCTETS, Body::new(Reply::Fill(bytes)))
}

async fn stream(Path(chunks): Path<u64>) -> Response {
    typed(content::OCTETS, Body::new(Reply::chunks(chunks)))
}

async fn slow(Path(ms): Path<u64>) -> Response {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    text(format!("slow {ms}\n"))
}

async fn refuse() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, text("method not allowed\n")).into_response()
}

fn text(body: impl IntoResponse) -> Response {
    typed(content::TEXT, body)
}

fn typed(kind: HeaderValue, body: impl IntoResponse) -> Response {
    ([(CONTENT_TYPE, kind)], body).into_response()
}
