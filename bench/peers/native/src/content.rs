//! What is answered, where the guests' own logic would cost a native server more than it has to.
//!
//! `work-logic` makes header lists for wasi:http; a native server has constants for them instead.

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderValue;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use work_logic::Order;

pub const TEXT: HeaderValue = HeaderValue::from_static(work_logic::TEXT);
pub const JSON: HeaderValue = HeaderValue::from_static(work_logic::JSON);
pub const OCTETS: HeaderValue = HeaderValue::from_static(work_logic::BYTES);

#[derive(Serialize)]
struct Greeting {
    #[serde(rename = "Test")]
    test: String,
}

/// The user of `/hello/{user}`, if `path` is that and there is nothing to refuse about it.
pub fn user(path: &str) -> Option<Cow<'_, str>> {
    let segment = path.strip_prefix("/hello/")?;
    if segment.is_empty() || segment.contains('/') {
        return None;
    }
    if !segment.contains('%') {
        return Some(segment.into());
    }
    let user = percent_decode_str(segment).decode_utf8().ok()?;
    // What still has a `%` was perhaps not well formed: `work-logic` looks closer.
    (!user.contains('%')).then_some(user)
}

/// None only if serialising failed.
pub fn greeting(user: &str) -> Option<Bytes> {
    let test = format!("Hello {user}");
    let mut json = serde_json::to_vec(&Greeting { test }).ok()?;
    json.push(b'\n');
    Some(json.into())
}

/// The order with the next id, if `json` is one.
pub fn next_order(json: &[u8]) -> Option<Bytes> {
    let next = Order::parse(json).ok()?.next();
    next.to_json().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use work_logic::{Method, Plan};

    use super::*;

    #[test]
    fn greets_as_the_guests_do() {
        for path in ["/hello/testuser", "/hello/a%2Fb+c", "/hello/%E2%82%ac"] {
            let Plan::Answer(answer) = Plan::of(Method::Get, path) else {
                panic!("{path} is no answer");
            };
            let ours = user(path).and_then(|user| greeting(&user));
            assert_eq!(ours.as_deref(), Some(&*answer.body), "{path}");
        }
    }

    #[test]
    fn leaves_the_rest_to_the_logic() {
        for path in [
            "/",
            "/hello",
            "/hello/",
            "/hello/a/b",
            "/hello/%zz",
            "/hello/%25",
            "/hello/%ff",
        ] {
            assert_eq!(user(path), None, "{path}");
        }
    }
}
