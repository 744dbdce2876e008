//! A request's target and Host become the absolute scheme and authority that guests see
//! (RFC 9110, 7.1 and 7.2; RFC 9112, 3.2 and 3.3).

use std::net::{Ipv6Addr, SocketAddr};

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Uri, Version, header};

/// Checks Host and target, and makes the request's URI absolute. A CONNECT keeps its bare authority.
///
/// # Errors
/// What is wrong, as it may be told to the client with a 400.
pub(super) fn make_absolute<B>(
    request: &mut Request<B>,
    local: SocketAddr,
) -> Result<(), &'static str> {
    let host = host(request.headers())?;
    if let Some(Some(authority)) = &host
        && request.uri().authority().is_none()
        && request.uri().scheme().is_none()
        && request.uri().path_and_query().is_some()
        && request.method() != Method::CONNECT
    {
        // Nearly every request; nothing of this can fail, so the target may be taken apart in place.
        let mut target = std::mem::take(request.uri_mut()).into_parts();
        target.scheme = Some(Scheme::HTTP);
        target.authority = Some(authority.clone());
        *request.uri_mut() =
            Uri::from_parts(target).map_err(|_invalid| "the request target is invalid")?;
        return Ok(());
    }
    // A refused request keeps its target, for the log.
    let mut target = request.uri().clone().into_parts();
    if target.authority.is_some() && target.scheme.is_none() && request.method() != Method::CONNECT
    {
        return Err("the request target is invalid");
    }
    let authority = match target.authority.take() {
        Some(authority) => check_authority(authority.as_str().as_bytes())?
            .ok_or("the request target has no host")?,
        None => match host {
            Some(Some(authority)) => authority,
            // An empty Host is legal for a client that has no authority to name (RFC 9110, 7.2).
            Some(None) => own_authority(local)?,
            None if request.version() < Version::HTTP_11 => own_authority(local)?,
            None => return Err("the Host header is missing"),
        },
    };
    if request.method() == Method::CONNECT && target.path_and_query.is_none() {
        *request.uri_mut() = Uri::from(authority);
        return Ok(());
    }
    let scheme = target.scheme.take().unwrap_or(Scheme::HTTP);
    if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
        return Err("the request target's scheme is neither http nor https");
    }
    target.scheme = Some(scheme);
    target.authority = Some(authority);
    target
        .path_and_query
        .get_or_insert(PathAndQuery::from_static("/"));
    *request.uri_mut() =
        Uri::from_parts(target).map_err(|_invalid| "the request target is invalid")?;
    Ok(())
}

/// The Host header: `None` if there is none, `Some(None)` if it is empty.
fn host(headers: &HeaderMap) -> Result<Option<Option<Authority>>, &'static str> {
    let mut values = headers.get_all(header::HOST).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err("there is more than one Host header");
    }
    check_authority(value.as_bytes()).map(Some)
}

fn own_authority(local: SocketAddr) -> Result<Authority, &'static str> {
    Authority::try_from(local.to_string()).map_err(|_invalid| "the Host header is missing")
}

/// `host [ ":" port ]` (RFC 3986, 3.2.2 and 3.2.3; no user information, RFC 9110, 4.2.4).
fn check_authority(text: &[u8]) -> Result<Option<Authority>, &'static str> {
    const INVALID: &str = "the Host is invalid";
    let text = str::from_utf8(text).map_err(|_not_ascii| INVALID)?;
    if text.is_empty() {
        return Ok(None);
    }
    let port = if let Some(rest) = text.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or(INVALID)?;
        address.parse::<Ipv6Addr>().map_err(|_no_address| INVALID)?;
        match after.strip_prefix(':') {
            Some(port) => port,
            None if after.is_empty() => "",
            None => return Err(INVALID),
        }
    } else {
        let (name, port) = text.split_once(':').unwrap_or((text, ""));
        if name.is_empty() || !name.bytes().all(is_reg_name) {
            return Err(INVALID);
        }
        port
    };
    if !port.bytes().all(|byte| byte.is_ascii_digit())
        || (!port.is_empty() && port.parse::<u16>().is_err())
    {
        return Err(INVALID);
    }
    Authority::try_from(text)
        .map(Some)
        .map_err(|_invalid| INVALID)
}

/// Unreserved characters and sub-delims (RFC 3986, 2.2 and 2.3). A percent sign is in no DNS name.
fn is_reg_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absolute(target: &str, version: Version, hosts: &[&[u8]]) -> Result<String, &'static str> {
        let mut request = Request::builder().uri(target).version(version);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        let mut request = request.body(()).unwrap();
        make_absolute(&mut request, "127.0.0.1:8080".parse().unwrap())?;
        Ok(request.uri().to_string())
    }

    #[test]
    fn targets_become_absolute() {
        let v11 = Version::HTTP_11;
        for (target, version, host, expected) in [
            ("/a?b", v11, Some("h"), "http://h/a?b"),
            (
                "/a%2Fb//c?x=%20&e=&e=",
                v11,
                Some("h:81"),
                "http://h:81/a%2Fb//c?x=%20&e=&e=",
            ),
            (
                "http://a.example/p?q",
                v11,
                Some("b.example"),
                "http://a.example/p?q",
            ),
            ("http://a.example", v11, None, "http://a.example/"),
            ("https://a.example/", v11, None, "https://a.example/"),
            ("/x", Version::HTTP_10, None, "http://127.0.0.1:8080/x"),
            ("/x", v11, Some(""), "http://127.0.0.1:8080/x"),
            ("/x", v11, Some("[::1]:80"), "http://[::1]:80/x"),
            ("/x", v11, Some("h:"), "http://h:/x"),
        ] {
            let hosts: Vec<_> = host.iter().map(|host| host.as_bytes()).collect();
            assert_eq!(
                absolute(target, version, &hosts),
                Ok(expected.to_owned()),
                "{target} {host:?}"
            );
        }
    }

    #[test]
    fn invalid_hosts_are_refused() {
        let hosts: &[&[u8]] = &[
            b"a b",
            b"user@h",
            b"h:99999",
            b"h:x",
            b"h:+1",
            b"h:1:2",
            b"\xe9.example",
            b":80",
            b"[::1",
            b"[::1]x",
            b"[h]",
            b"h/p",
            b"h?q",
            b"h#f",
            b"h\\x",
            b"%41",
        ];
        for host in hosts {
            assert!(
                absolute("/", Version::HTTP_11, &[*host]).is_err(),
                "{host:?}"
            );
            assert!(
                absolute("http://ok/", Version::HTTP_11, &[*host]).is_err(),
                "{host:?}"
            );
        }
        assert!(absolute("/", Version::HTTP_11, &[]).is_err());
        assert!(absolute("/", Version::HTTP_11, &[b"a", b"a"]).is_err());
        assert!(absolute("/", Version::HTTP_10, &[b"a", b"b"]).is_err());
        assert!(absolute("http://user@h/", Version::HTTP_11, &[b"h"]).is_err());
        assert!(absolute("ftp://h/", Version::HTTP_11, &[b"h"]).is_err());
        assert!(absolute("a:80", Version::HTTP_11, &[b"h"]).is_err());
    }

    #[test]
    fn connect_and_asterisk_keep_their_form() {
        let mut connect = Request::builder()
            .method(Method::CONNECT)
            .uri("a.example:443")
            .header("host", "a.example:443");
        let mut connect = std::mem::take(&mut connect).body(()).unwrap();
        make_absolute(&mut connect, "127.0.0.1:80".parse().unwrap()).unwrap();
        assert_eq!(connect.uri().to_string(), "a.example:443");
        let mut options = Request::builder()
            .method(Method::OPTIONS)
            .uri("*")
            .header("host", "h")
            .body(())
            .unwrap();
        make_absolute(&mut options, "127.0.0.1:80".parse().unwrap()).unwrap();
        assert_eq!(options.uri().path(), "*");
        assert_eq!(options.uri().authority().unwrap(), "h");
    }
}
