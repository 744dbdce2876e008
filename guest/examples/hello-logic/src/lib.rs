//! What the hello guests answer, as a pure function from method and path to [`Answer`].
//!
//! Nothing here calls the host, so the same bytes come out of the WASI 0.2 and the WASI 0.3 guest, and
//! `cargo test` checks them natively. Start at [`answer`].

use std::borrow::Cow;
use std::sync::LazyLock;

use matchit::Router;
use percent_encoding::percent_decode_str;
use serde::Serialize;

const TEXT: &str = "text/plain; charset=utf-8";
const ALLOWED: &str = "GET, HEAD";

/// The methods that make a difference here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Other,
}

/// A response head and its body. For HEAD the body is empty while the headers describe that of GET.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Cow<'static, [u8]>,
}

#[derive(Clone, Copy)]
enum Route {
    Root,
    Hello,
}

#[derive(Serialize)]
struct Greeting {
    #[serde(rename = "Test")]
    test: String,
}

// Built on first use and kept, so that a reused instance does not pay for it again.
static ROUTES: LazyLock<Router<Route>> = LazyLock::new(|| {
    let mut routes = Router::new();
    for (pattern, route) in [("/", Route::Root), ("/hello/{user}", Route::Hello)] {
        let inserted = routes.insert(pattern, route);
        debug_assert!(
            inserted.is_ok(),
            "the patterns are constants that do not overlap"
        );
    }
    routes
});

/// Answers one request; `target` is its path with or without a query.
pub fn answer(method: Method, target: &str) -> Answer {
    let path = target.split('?').next().unwrap_or_default();
    let Ok(found) = ROUTES.at(path) else {
        return text(method, 404, "not found\n");
    };
    if method == Method::Other {
        let mut refused = text(method, 405, "method not allowed\n");
        refused.headers.push(header("allow", ALLOWED));
        return refused;
    }
    match found.value {
        Route::Root => text(method, 200, "Hello, World!"),
        Route::Hello => hello(method, found.params.get("user").unwrap_or_default()),
    }
}

fn hello(method: Method, segment: &str) -> Answer {
    let Some(user) = decode(segment) else {
        return text(method, 400, "the user is not percent-encoded UTF-8\n");
    };
    let greeting = Greeting {
        test: format!("Hello {user}"),
    };
    match serde_json::to_vec(&greeting) {
        Ok(mut json) => {
            json.push(b'\n');
            respond(method, 200, json.into())
        }
        Err(_) => text(method, 500, "internal error\n"),
    }
}

/// Strict where the percent-encoding crate is lenient: it passes a malformed escape on as it stands.
fn decode(segment: &str) -> Option<Cow<'_, str>> {
    let mut escapes = segment.split('%');
    escapes.next();
    let well_formed = escapes.all(|escape| {
        let mut digits = escape.bytes();
        let mut hex = || digits.next().is_some_and(|byte| byte.is_ascii_hexdigit());
        hex() && hex()
    });
    if !well_formed {
        return None;
    }
    percent_decode_str(segment).decode_utf8().ok()
}

fn text(method: Method, status: u16, body: &'static str) -> Answer {
    respond(method, status, body.as_bytes().into())
}

fn respond(method: Method, status: u16, body: Cow<'static, [u8]>) -> Answer {
    let headers = vec![
        header("content-type", TEXT),
        header("content-length", &body.len().to_string()),
    ];
    let body = if method == Method::Head {
        Cow::default()
    } else {
        body
    };
    Answer {
        status,
        headers,
        body,
    }
}

fn header(name: &str, value: &str) -> (String, Vec<u8>) {
    (name.to_owned(), value.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(target: &str) -> (u16, String) {
        let answer = answer(Method::Get, target);
        let length = value(&answer, "content-length");
        assert_eq!(length, Some(answer.body.len().to_string()));
        assert_eq!(value(&answer, "content-type"), Some(TEXT.to_owned()));
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        (answer.status, body)
    }

    fn value(answer: &Answer, name: &str) -> Option<String> {
        let found = answer.headers.iter().find(|(key, _)| key == name)?;
        Some(String::from_utf8_lossy(&found.1).into_owned())
    }

    #[test]
    fn greets_the_user_in_json() {
        for (target, body) in [
            ("/hello/testuser", "{\"Test\":\"Hello testuser\"}\n"),
            ("/hello/your?x=/a/b", "{\"Test\":\"Hello your\"}\n"),
            ("/hello/a%2Fb+c", "{\"Test\":\"Hello a/b+c\"}\n"),
            ("/hello/%E2%82%ac", "{\"Test\":\"Hello €\"}\n"),
            ("/hello/%22%0a%5C", "{\"Test\":\"Hello \\\"\\n\\\\\"}\n"),
            ("/hello/%25zz", "{\"Test\":\"Hello %zz\"}\n"),
        ] {
            assert_eq!(get(target), (200, body.to_owned()), "{target}");
        }
        assert_eq!(get("/hello/testuser").1.len(), 26);
        assert_eq!(get("/hello/your").1.len(), 22);
    }

    #[test]
    fn root_is_thirteen_bytes() {
        assert_eq!(get("/"), (200, "Hello, World!".to_owned()));
        assert_eq!(get("/?q"), (200, "Hello, World!".to_owned()));
    }

    #[test]
    fn refuses_broken_escapes() {
        for user in ["%zz", "%4", "%", "a%", "%4%41", "%ff", "%c3", "%é1"] {
            let (status, body) = get(&format!("/hello/{user}"));
            assert_eq!(status, 400, "{user}");
            assert!(body.ends_with('\n'));
        }
    }

    #[test]
    fn anything_else_is_not_found() {
        for target in [
            "/hello",
            "/hello/",
            "/hello/a/b",
            "/nope",
            "*",
            "",
            "?",
            "//",
            "/hello/?a",
        ] {
            assert_eq!(get(target).0, 404, "{target}");
        }
        assert_eq!(answer(Method::Other, "/nope").status, 404);
    }

    #[test]
    fn head_keeps_the_headers_of_get() {
        for target in ["/", "/hello/testuser", "/hello/%zz", "/nope"] {
            let (full, head) = (answer(Method::Get, target), answer(Method::Head, target));
            assert_eq!((full.status, full.headers), (head.status, head.headers));
            assert!(head.body.is_empty());
        }
    }

    #[test]
    fn other_methods_are_told_what_is_allowed() {
        for target in ["/", "/hello/x", "/hello/%zz"] {
            let refused = answer(Method::Other, target);
            assert_eq!(refused.status, 405);
            assert_eq!(value(&refused, "allow").as_deref(), Some("GET, HEAD"));
        }
        assert_eq!(value(&answer(Method::Get, "/"), "allow"), None);
    }
}
