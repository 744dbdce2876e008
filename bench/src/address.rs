//! `http://host:port/path` as a person types it.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, Scheme};

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    authority: Authority,
    /// Path and query, beginning with `/`.
    pub path: String,
}

/// Text that is no address.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AddressError {
    /// The text is not a URL.
    #[error("not a URL like http://127.0.0.1:8080/path")]
    NoUrl,
    /// The scheme is not `http`.
    #[error("only http:// can be loaded")]
    Scheme,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let full = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let uri: Uri = full.parse().map_err(|_error| AddressError::NoUrl)?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(AddressError::Scheme);
        }
        let parts = uri.into_parts();
        let path = parts
            .path_and_query
            .map_or_else(|| "/".to_owned(), |path| path.to_string());
        Ok(Self {
            authority: parts.authority.ok_or(AddressError::NoUrl)?,
            path,
        })
    }
}

impl Address {
    /// The value of the `host` header.
    pub fn host(&self) -> &str {
        self.authority.as_str()
    }

    /// The socket address: of several that the name has, the first that answers.
    pub fn resolve(&self) -> io::Result<SocketAddr> {
        let name = self.authority.host().trim_matches(['[', ']']);
        let found: Vec<_> = (name, self.authority.port_u16().unwrap_or(80))
            .to_socket_addrs()?
            .collect();
        let answers = |address: &&SocketAddr| {
            TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok()
        };
        let chosen = found.iter().find(answers).or(found.first());
        chosen
            .copied()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_understood() {
        let parsed = |text: &str| {
            text.parse::<Address>()
                .map(|address| (address.host().to_owned(), address.path))
        };
        assert_eq!(
            parsed("http://127.0.0.1:81/a?b=c").unwrap(),
            ("127.0.0.1:81".to_owned(), "/a?b=c".to_owned())
        );
        assert_eq!(
            parsed("localhost:8080").unwrap(),
            ("localhost:8080".to_owned(), "/".to_owned())
        );
        assert!(matches!(
            parsed("https://example.org/"),
            Err(AddressError::Scheme)
        ));
        assert!(matches!(parsed("http://"), Err(AddressError::NoUrl)));
        let v6 = "http://[::1]:80".parse::<Address>().unwrap();
        assert_eq!(v6.resolve().unwrap(), "[::1]:80".parse().unwrap());
    }
}
