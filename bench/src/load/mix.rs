//! Requests prepared once: the bytes or parts that go out, and the fixed order in which a mix goes.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST};
use http::{HeaderValue, Method, Request, Uri, request};

use crate::load::{Expect, LoadError, Plan, Protocol, Template};

/// The longest order: weights that need more have no small common measure.
const LONGEST_ORDER: u64 = 100_000;

/// A request ready to go out.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Head and body as HTTP/1.1 has them.
    pub(super) bytes: Bytes,
    /// The head as HTTP/2 takes it.
    pub(super) parts: request::Parts,
    pub(super) body: Bytes,
    pub(super) expect: Expect,
    /// Answers to `HEAD` have no body, whatever their length says.
    pub(super) bodiless: bool,
}

impl Prepared {
    pub(super) fn new(template: &Template, plan: &Plan) -> Result<Self, LoadError> {
        let own_host = template
            .headers
            .get(HOST)
            .and_then(|host| host.to_str().ok());
        let host = own_host.map_or_else(|| plan.target.to_string(), str::to_owned);
        Ok(Self {
            bytes: head_and_body(template, &host, plan.protocol),
            parts: parts(template, &host)?,
            body: template.body.clone(),
            expect: template.expect.clone(),
            bodiless: template.method == Method::HEAD,
        })
    }
}

/// The prepared requests of a plan in the order in which each connection sends them, over and over.
pub(super) fn order(plan: &Plan) -> Result<Vec<Arc<Prepared>>, LoadError> {
    let divisor = plan
        .requests
        .iter()
        .fold(0, |divisor, template| gcd(divisor, template.weight));
    if divisor == 0 {
        return Err(LoadError::Plan(
            "the plan has no request with a weight above 0".to_owned(),
        ));
    }
    let mut choices = Vec::with_capacity(plan.requests.len());
    for template in &plan.requests {
        let prepared = Arc::new(Prepared::new(template, plan)?);
        choices.push((prepared, i64::from(template.weight / divisor), 0_i64));
    }
    let total: i64 = choices.iter().map(|(_, weight, _)| weight).sum();
    if total.unsigned_abs() > LONGEST_ORDER {
        return Err(LoadError::Plan(format!(
            "the weights need an order of {total} requests; round them"
        )));
    }
    // Smooth weighted round robin: each step credits all by weight and takes the one with most credit.
    let mut order = Vec::new();
    for _ in 0..total {
        for (_, weight, credit) in &mut choices {
            *credit += *weight;
        }
        if let Some((prepared, _, credit)) = choices
            .iter_mut()
            .rev()
            .max_by_key(|(_, _, credit)| *credit)
        {
            *credit -= total;
            order.push(Arc::clone(prepared));
        }
    }
    Ok(order)
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn head_and_body(template: &Template, host: &str, protocol: Protocol) -> Bytes {
    let mut out = BytesMut::with_capacity(512 + template.body.len());
    out.put_slice(
        format!(
            "{} {} HTTP/1.1\r\nhost: {host}\r\n",
            template.method, template.path
        )
        .as_bytes(),
    );
    for (name, value) in &template.headers {
        if ![HOST, CONTENT_LENGTH, CONNECTION].contains(name) {
            out.put_slice(name.as_str().as_bytes());
            out.put_slice(b": ");
            out.put_slice(value.as_bytes());
            out.put_slice(b"\r\n");
        }
    }
    if says_length(template) {
        out.put_slice(format!("content-length: {}\r\n", template.body.len()).as_bytes());
    }
    if protocol == Protocol::Http1PerRequest {
        out.put_slice(b"connection: close\r\n");
    }
    out.put_slice(b"\r\n");
    out.put_slice(&template.body);
    out.freeze()
}

fn parts(template: &Template, host: &str) -> Result<request::Parts, LoadError> {
    let unusable = |what: String| LoadError::Plan(format!("{what} cannot be sent"));
    let uri: Uri = format!("http://{host}{}", template.path)
        .parse()
        .map_err(|error| {
            unusable(format!(
                "the path {:?} with the host {host:?} ({error})",
                template.path
            ))
        })?;
    let mut request = Request::new(());
    *request.method_mut() = template.method.clone();
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    *headers = template.headers.clone();
    for connection_bound in [HOST, CONNECTION, CONTENT_LENGTH] {
        headers.remove(connection_bound);
    }
    if says_length(template) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(template.body.len()));
    }
    Ok(request.into_parts().0)
}

/// RFC 9110 section 8.6: a method that defines a meaning for a body says its length even when that is 0.
fn says_length(template: &Template) -> bool {
    !template.body.is_empty()
        || [Method::POST, Method::PUT, Method::PATCH].contains(&template.method)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(requests: Vec<Template>) -> Plan {
        Plan::new(([127, 0, 0, 1], 80).into(), requests)
    }

    #[test]
    fn a_mix_goes_in_a_fixed_order_in_proportion() {
        let weighted = |path: &str, weight| Template {
            weight,
            ..Template::get(path)
        };
        let order = order(&plan(vec![
            weighted("/a", 40),
            weighted("/b", 20),
            weighted("/c", 0),
        ]))
        .unwrap();
        let paths: Vec<_> = order
            .iter()
            .map(|prepared| prepared.parts.uri.path())
            .collect();
        assert_eq!(paths, ["/a", "/b", "/a"]);
    }

    #[test]
    fn a_mix_without_weight_is_an_error() {
        assert!(
            order(&plan(vec![Template {
                weight: 0,
                ..Template::get("/")
            }]))
            .is_err()
        );
        assert!(order(&plan(vec![])).is_err());
    }

    #[test]
    fn the_head_is_what_a_server_expects() {
        let mut template = Template::post("/json?x=1", "{}");
        template
            .headers
            .insert("x-a", HeaderValue::from_static("b"));
        template
            .headers
            .insert(HOST, HeaderValue::from_static("example.org"));
        template
            .headers
            .insert(CONTENT_LENGTH, HeaderValue::from_static("99"));
        let mut plan = plan(vec![]);
        let prepared = Prepared::new(&template, &plan).unwrap();
        assert_eq!(
            prepared.bytes,
            "POST /json?x=1 HTTP/1.1\r\nhost: example.org\r\nx-a: b\r\ncontent-length: 2\r\n\r\n{}"
        );
        assert_eq!(prepared.parts.uri, "http://example.org/json?x=1");
        assert_eq!(prepared.parts.headers.get(CONTENT_LENGTH).unwrap(), "2");
        plan.protocol = Protocol::Http1PerRequest;
        let prepared = Prepared::new(&Template::get("/"), &plan).unwrap();
        assert_eq!(
            prepared.bytes,
            "GET / HTTP/1.1\r\nhost: 127.0.0.1:80\r\nconnection: close\r\n\r\n"
        );
    }

    #[test]
    fn a_path_that_is_none_is_an_error() {
        assert!(Prepared::new(&Template::get("/a b"), &plan(vec![])).is_err());
    }
}
