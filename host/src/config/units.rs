//! Text to checked values: durations, sizes, addresses. What has passed here is never checked again.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Reads a time limit: `30s`, `1m 30s`, `250ms`; a bare number means seconds. `0` turns the limit off.
///
/// # Errors
/// One line that names the text and shows what is accepted.
pub fn time_limit(text: &str) -> Result<TimeLimit, String> {
    let text = text.trim();
    let parsed = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => humantime::parse_duration(text)
            .map_err(|error| format!("`{text}` is no duration ({error}); try 30s, 250ms or 0"))?,
    };
    // A year is "no limit" for every timer here; more would overflow the clock's arithmetic.
    if parsed > Duration::from_secs(366 * 24 * 3600) {
        return Err(format!(
            "`{text}` is longer than a year; 0 turns the limit off"
        ));
    }
    Ok(TimeLimit((!parsed.is_zero()).then_some(parsed)))
}

/// Reads a size in bytes: `64MiB`, `1 GB`, `65536`. `0` turns the limit off.
///
/// # Errors
/// One line that names the text and shows what is accepted.
pub fn size_limit(text: &str) -> Result<SizeLimit, String> {
    let size = text
        .trim()
        .parse::<bytesize::ByteSize>()
        .map_err(|error| format!("`{text}` is no size ({error}); try 64MiB, 1GB or 65536"))?
        .as_u64();
    Ok(SizeLimit((size != 0).then_some(size)))
}

/// A time limit; `None` means that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit(pub Option<Duration>);

/// A size limit in bytes; `None` means that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimit(pub Option<u64>);

/// Where to listen, as the user wrote it: host and port may each be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    host: String,
    /// The port, if the text had one.
    pub port: Option<u16>,
}

impl ListenAddress {
    /// Finds the socket address; `port` stands in where the text had none.
    ///
    /// # Errors
    /// One line when the host name does not resolve.
    pub fn resolve(&self, port: u16) -> Result<SocketAddr, String> {
        let port = self.port.unwrap_or(port);
        if self.host.is_empty() {
            return Ok(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port));
        }
        if let Ok(ip) = self.host.parse::<IpAddr>() {
            return Ok(SocketAddr::new(ip, port));
        }
        (self.host.as_str(), port)
            .to_socket_addrs()
            .map_err(|error| format!("`{}` does not resolve: {error}", self.host))?
            .next()
            .ok_or_else(|| format!("`{}` resolves to no address", self.host))
    }
}

impl std::str::FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "`{text}` is no listen address ({why}); try 127.0.0.1:8080, [::1]:8080 or :8080"
            )
        };
        let port = |digits: &str| {
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(wrong("the port must be a number"));
            }
            digits
                .parse::<u16>()
                .map_err(|_out_of_range| wrong("the port must be 0 to 65535"))
        };
        if let Some(rest) = text.strip_prefix('[') {
            let (inner, after) = rest
                .split_once(']')
                .ok_or_else(|| wrong("`]` is missing"))?;
            inner
                .parse::<std::net::Ipv6Addr>()
                .map_err(|_no_address| wrong("no IPv6 address in the brackets"))?;
            let port = match after.strip_prefix(':') {
                Some(digits) => Some(port(digits)?),
                None if after.is_empty() => None,
                None => return Err(wrong("only `:PORT` may follow `]`")),
            };
            return Ok(Self {
                host: inner.to_owned(),
                port,
            });
        }
        if text.parse::<std::net::Ipv6Addr>().is_ok() {
            return Ok(Self {
                host: text.to_owned(),
                port: None,
            });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, digits)) => (host, Some(port(digits)?)),
            None => (text, None),
        };
        if host.is_empty() && port.is_none() {
            return Err(wrong("it is empty"));
        }
        if !host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
        {
            return Err(wrong("the host has characters that no host name has"));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(text: &str) -> Result<SocketAddr, String> {
        text.parse::<ListenAddress>()?.resolve(8080)
    }

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("[::1]:0", "[::1]:0"),
            ("[::]:0", "[::]:0"),
            ("[::1]", "[::1]:8080"),
            ("::1", "[::1]:8080"),
            ("127.0.0.1", "127.0.0.1:8080"),
            ("127.0.0.1:9", "127.0.0.1:9"),
            (":9090", "0.0.0.0:9090"),
        ] {
            assert_eq!(listen(text), Ok(expected.parse().unwrap()), "{text}");
        }
        assert!(listen("localhost:0").unwrap().ip().is_loopback());
        for text in [
            "",
            "1.2.3.4:99999",
            "1.2.3.4:",
            "1.2.3.4:x",
            "[::1",
            "[::1]x",
            "[x]:1",
            "a b",
            "a:+1",
            "http://x",
            "unix:/x",
        ] {
            let error = listen(text).unwrap_err();
            assert!(!error.contains('\n') && error.contains(text), "{error}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(
            time_limit("30"),
            Ok(TimeLimit(Some(Duration::from_secs(30))))
        );
        assert_eq!(
            time_limit("250ms"),
            Ok(TimeLimit(Some(Duration::from_millis(250))))
        );
        assert_eq!(
            time_limit("1m 30s"),
            Ok(TimeLimit(Some(Duration::from_secs(90))))
        );
        assert_eq!(time_limit("0"), Ok(TimeLimit(None)));
        assert_eq!(time_limit("0s"), Ok(TimeLimit(None)));
        for text in ["", "x", "-1", "1e3", "18446744073709551615", "99999999999s"] {
            assert!(time_limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size_limit("64MiB"), Ok(SizeLimit(Some(64 << 20))));
        assert_eq!(size_limit("64 MiB"), Ok(SizeLimit(Some(64 << 20))));
        assert_eq!(size_limit("65536"), Ok(SizeLimit(Some(65536))));
        assert_eq!(size_limit("0"), Ok(SizeLimit(None)));
        for text in ["", "x", "-1", "MiB"] {
            assert!(size_limit(text).is_err(), "{text}");
        }
    }
}
