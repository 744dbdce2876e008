//! The example guests, which must answer the same bytes from WASI 0.2 and 0.3.

use crate::support::{Http, TestHost, Wasi, request};

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

matrix! {
    exact_answers
    head_is_get_without_its_body
    other_methods_are_told_what_is_allowed
}

single! { both_versions_look_the_same_on_the_wire }
