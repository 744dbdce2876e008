//! The example guests, which must answer the same bytes from WASI 0.2 and 0.3.

use std::io::Write;

use tokio::io::AsyncReadExt;

use crate::support::{Http, TestHost, Wasi, request, spawn};

const TEXT: &str = "text/plain; charset=utf-8";

/// Targets with the status and the body that a GET gets.
const ANSWERS: &[(&str, u16, &str)] = &[
    ("/", 200, "Hello, World!"),
    ("/?q", 200, "Hello, World!"),
    ("/hello/testuser", 200, "{\"Test\":\"Hello testuser\"}\n"),
    ("/hello/your", 200, "{\"Test\":\"Hello your\"}\n"),
    ("/hello/your?x=/a/b", 200, "{\"Test\":\"Hello your\"}\n"),
    ("/hello/a%2Fb+c", 200, "{\"Test\":\"Hello a/b+c\"}\n"),
    ("/hello/%E2%82%ac", 200, "{\"Test\":\"Hello €\"}\n"),
    (
        "/hello/%22%0a%5C",
        200,
        "{\"Test\":\"Hello \\\"\\n\\\\\"}\n",
    ),
    ("/hello/%ff", 400, "the user is not percent-encoded UTF-8\n"),
    ("/hello/%zz", 400, "the user is not percent-encoded UTF-8\n"),
    ("/hello", 404, "not found\n"),
    ("/hello/", 404, "not found\n"),
    ("/hello/a/b", 404, "not found\n"),
    ("/nope", 404, "not found\n"),
];

async fn exact_answers(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.hello()).start().await;
    let mut client = host.client(http).await;
    for &(path, status, body) in ANSWERS {
        let got = client.get(path).await;
        assert_eq!((got.status.as_u16(), got.text()), (status, body), "{path}");
        assert_eq!(got.header("content-type"), Some(TEXT), "{path}");
        assert_eq!(
            got.header("content-length"),
            Some(body.len().to_string().as_str()),
            "{path}"
        );
        assert!(got.headers.contains_key("date"), "{path}");
        assert_eq!(got.headers.len(), 3, "{path} {:?}", got.headers);
    }
}

async fn head_is_get_without_its_body(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.hello()).start().await;
    let mut client = host.client(http).await;
    for &(path, status, body) in ANSWERS {
        let got = client.ask(request("HEAD", path)).await;
        assert_eq!((got.status.as_u16(), got.text()), (status, ""), "{path}");
        assert_eq!(got.header("content-type"), Some(TEXT), "{path}");
        assert_eq!(
            got.header("content-length"),
            Some(body.len().to_string().as_str()),
            "{path}"
        );
    }
}

async fn other_methods_are_told_what_is_allowed(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.hello()).start().await;
    let mut client = host.client(http).await;
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let got = client.ask(request(method, "/hello/testuser")).await;
        assert_eq!(
            (got.status.as_u16(), got.text()),
            (405, "method not allowed\n"),
            "{method}"
        );
        assert_eq!(got.header("allow"), Some("GET, HEAD"), "{method}");
    }
    assert_eq!(client.get("/").await.header("allow"), None);
}

/// What stands on the wire from the status line to the body, without the date.
async fn wire(host: &TestHost, request: &str) -> String {
    let mut raw = host.raw().await;
    raw.send(request).await;
    let all = String::from_utf8(raw.rest().await).unwrap();
    let lines: Vec<_> = all.split_inclusive('\n').collect();
    let dated = lines
        .iter()
        .filter(|line| line.starts_with("date: "))
        .count();
    assert_eq!(dated, 1, "{all}");
    lines
        .into_iter()
        .filter(|line| !line.starts_with("date: "))
        .collect()
}

async fn both_versions_look_the_same_on_the_wire() {
    let p2 = TestHost::guest(Wasi::P2.hello()).start().await;
    let p3 = TestHost::guest(Wasi::P3.hello()).start().await;
    for method in ["GET", "HEAD", "POST"] {
        for (path, ..) in ANSWERS {
            let asked = format!("{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            let (one, other) = (wire(&p2, &asked).await, wire(&p3, &asked).await);
            assert!(one.starts_with("HTTP/1.1 "), "{one}");
            assert_eq!(one, other, "{asked}");
        }
    }
}

/// A burst of new connections uses up what tokio lets the accept loop do at once, and a task that it starts
/// then may begin with nothing left: its channels would look empty to it.
async fn bursts_of_new_connections_are_all_answered(wasi: Wasi) {
    let host = TestHost::guest(wasi.hello()).start().await;
    // One of them leaves just so much that the request is still read.
    for size in 30..90 {
        let address = host.addr();
        // Nothing is awaited in it, so that the host finds all of them at once, with their requests.
        let burst = spawn(async move {
            let connect = |_| {
                let mut client = std::net::TcpStream::connect(address).unwrap();
                let asked = b"GET /hello/your HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
                client.write_all(asked).unwrap();
                client.set_nonblocking(true).unwrap();
                tokio::net::TcpStream::from_std(client).unwrap()
            };
            (0..size).map(connect).collect::<Vec<_>>()
        });
        for mut client in burst.await.unwrap() {
            let mut got = String::new();
            client.read_to_string(&mut got).await.unwrap();
            assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
            assert!(got.ends_with("{\"Test\":\"Hello your\"}\n"), "{got}");
        }
    }
}

/// With one thread for all tasks, the host does not run before a burst is there as a whole.
#[test]
fn bursts_on_one_thread() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        bursts_of_new_connections_are_all_answered(Wasi::P2).await;
        bursts_of_new_connections_are_all_answered(Wasi::P3).await;
    });
}

matrix! {
    exact_answers
    head_is_get_without_its_body
    other_methods_are_told_what_is_allowed
}

single! { both_versions_look_the_same_on_the_wire }
