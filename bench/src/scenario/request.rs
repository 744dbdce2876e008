//! The requests of a scenario and the answers that they expect.

use bytes::Bytes;
use bytesize::ByteSize;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde::Deserialize;

use crate::load::{Expect, ExpectBody, Template};

/// One kind of request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// GET, unless there is a body: then POST.
    method: Option<String>,
    path: String,
    #[serde(default)]
    body: Content,
    #[serde(default)]
    expect: Content,
    #[serde(default = "one")]
    weight: u32,
}

/// A body.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Content {
    /// None as a request, any as an answer.
    #[default]
    Any,
    Text(String),
    /// So many bytes `x`.
    Filler(ByteSize),
    /// A JSON order of so many bytes; as an answer, the one that follows it.
    Order(usize),
}

impl Request {
    /// Path and query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn template(&self) -> Result<Template, String> {
        if !self.path.starts_with('/') {
            return Err(format!("`request.path`: `{}` has no slash", self.path));
        }
        let body = self.body.bytes(ORDER_ID);
        let mut headers = HeaderMap::new();
        if matches!(self.body, Content::Order(_)) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let method = match &self.method {
            Some(method) => Method::from_bytes(method.as_bytes())
                .map_err(|_invalid| format!("`request.method`: `{method}` is none"))?,
            None if body.is_empty() => Method::GET,
            None => Method::POST,
        };
        let expected = match &self.expect {
            Content::Any => ExpectBody::Any,
            Content::Filler(size) => ExpectBody::Length(size.as_u64()),
            other => ExpectBody::Bytes(other.bytes(ORDER_ID + 1)),
        };
        Ok(Template {
            method,
            path: self.path.clone(),
            headers,
            body,
            weight: self.weight,
            expect: Expect {
                status: 200,
                body: expected,
            },
        })
    }
}

/// The id of the order that is sent.
const ORDER_ID: u64 = 41;

impl Content {
    fn bytes(&self, id: u64) -> Bytes {
        match self {
            Self::Any => Bytes::new(),
            Self::Text(text) => Bytes::from(text.clone()),
            Self::Filler(size) => {
                Bytes::from(vec![b'x'; usize::try_from(size.as_u64()).unwrap_or(0)])
            }
            Self::Order(size) => order(id, *size),
        }
    }
}

/// A JSON document of exactly so many bytes, if there are enough for its frame.
fn order(id: u64, size: usize) -> Bytes {
    let head =
        format!(r#"{{"id":{id},"name":"Ada Lovelace","tags":["bench","json","echo"],"text":""#);
    let end = r#""}"#;
    let filling = "All happy families are alike. "
        .chars()
        .cycle()
        .take(size.saturating_sub(head.len() + end.len()));
    head.chars()
        .chain(filling)
        .chain(end.chars())
        .collect::<String>()
        .into()
}

fn one() -> u32 {
    1
}
