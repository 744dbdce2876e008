//! The arguments that say which request goes where.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use bytesize::ByteSize;
use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use cloudgo_bench::address::Address;
use cloudgo_bench::load::{Expect, ExpectBody, Template};

use crate::cli::Fault;

/// A request and its target.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where the requests go, as in http://127.0.0.1:8080/hello/you
    url: Address,
    /// The method; POST if there is a body, else GET
    #[arg(short = 'X', long)]
    method: Option<Method>,
    /// A header, as in 'accept: text/plain'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<Header>,
    /// Send the bytes of this file as the body
    #[arg(long, value_name = "FILE", conflicts_with = "body_size")]
    body_file: Option<PathBuf>,
    /// Send so many bytes as the body, as in 1MiB
    #[arg(long, value_name = "SIZE")]
    body_size: Option<ByteSize>,
    /// The status that counts as success
    #[arg(long, default_value_t = 200, value_name = "CODE")]
    status: u16,
    /// Only answers with the bytes of this file as their body count as success
    #[arg(long, value_name = "FILE")]
    expect_file: Option<PathBuf>,
    /// The longest that one request may take, as in 10s
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    pub(super) timeout: Duration,
}

impl Args {
    /// The address that answers, and the request.
    pub(super) fn resolve(&self) -> Result<(SocketAddr, Template), Fault> {
        let name = self.url.host();
        let target = self
            .url
            .resolve()
            .map_err(|error| format!("cannot find {name}: {error}"))?;
        let body = self.body()?;
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(name)?);
        for Header(name, value) in &self.headers {
            if name == HOST {
                headers.remove(HOST);
            }
            headers.append(name.clone(), value.clone());
        }
        let method = self.method.clone().unwrap_or(if body.is_empty() {
            Method::GET
        } else {
            Method::POST
        });
        let body_expected = match &self.expect_file {
            Some(path) => ExpectBody::Bytes(read(path)?),
            None => ExpectBody::Any,
        };
        let expect = Expect {
            status: self.status,
            body: body_expected,
        };
        let template = Template {
            method,
            headers,
            body,
            expect,
            ..Template::get(self.url.path.as_str())
        };
        Ok((target, template))
    }

    fn body(&self) -> Result<Bytes, Fault> {
        match (&self.body_file, self.body_size) {
            (Some(path), _) => read(path),
            (None, Some(size)) => Ok(vec![b'x'; usize::try_from(size.as_u64())?].into()),
            (None, None) => Ok(Bytes::new()),
        }
    }
}

fn read(path: &PathBuf) -> Result<Bytes, Fault> {
    let read = fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    Ok(read?.into())
}

/// `name: value`.
#[derive(Clone, Debug)]
struct Header(HeaderName, HeaderValue);

impl FromStr for Header {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let (name, value) = text
            .split_once(':')
            .ok_or("a header is written as 'name: value'")?;
        Ok(Self(name.trim().parse()?, value.trim().parse()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let Header(name, value) = "X-A: b: c ".parse().unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("x-a", &b"b: c"[..]));
        assert!("no colon".parse::<Header>().is_err());
    }
}
