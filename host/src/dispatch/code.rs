//! `wasi:http/types.error-code`, as a guest answers it, becomes a status: 504 and 502 where it tells of an
//! upstream, else 500.

use http::StatusCode;
use wasmtime_wasi_http::{p2, p3};

use crate::error::RequestError;

macro_rules! status {
    ($code:expr, $types:path) => {{
        use $types as types;
        match $code {
            types::DnsTimeout
            | types::ConnectionTimeout
            | types::ConnectionReadTimeout
            | types::ConnectionWriteTimeout
            | types::HttpResponseTimeout => StatusCode::GATEWAY_TIMEOUT,
            types::DnsError(_)
            | types::DestinationNotFound
            | types::DestinationUnavailable
            | types::DestinationIpProhibited
            | types::DestinationIpUnroutable
            | types::ConnectionRefused
            | types::ConnectionTerminated
            | types::ConnectionLimitReached
            | types::TlsProtocolError
            | types::TlsCertificateError
            | types::TlsAlertReceived(_)
            | types::HttpResponseIncomplete
            | types::HttpResponseHeaderSectionSize(_)
            | types::HttpResponseHeaderSize(_)
            | types::HttpResponseBodySize(_)
            | types::HttpResponseTrailerSectionSize(_)
            | types::HttpResponseTrailerSize(_)
            | types::HttpResponseTransferCoding(_)
            | types::HttpResponseContentCoding(_)
            | types::HttpProtocolError
            | types::LoopDetected => StatusCode::BAD_GATEWAY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }};
}

/// A WASI 0.2 guest's error code.
pub(super) fn from_p2(code: &p2::bindings::http::types::ErrorCode) -> RequestError {
    let status = status!(code, p2::bindings::http::types::ErrorCode);
    RequestError::Code {
        code: format!("{code:?}"),
        status,
    }
}

/// A WASI 0.3 guest's error code.
pub(super) fn from_p3(code: &p3::bindings::http::types::ErrorCode) -> RequestError {
    let status = status!(code, p3::bindings::http::types::ErrorCode);
    RequestError::Code {
        code: format!("{code:?}"),
        status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_upstreams_are_gateways() {
        use p2::bindings::http::types::ErrorCode as P2;
        use p3::bindings::http::types::ErrorCode as P3;
        assert_eq!(
            from_p2(&P2::ConnectionRefused).status(),
            StatusCode::BAD_GATEWAY
        );
        assert_eq!(
            from_p3(&P3::ConnectionTimeout).status(),
            StatusCode::GATEWAY_TIMEOUT
        );
        assert_eq!(
            from_p2(&P2::InternalError(None)).status(),
            StatusCode::INTERNAL_SERVER_ERROR
        );
        assert_eq!(
            from_p3(&P3::HttpRequestDenied).status(),
            StatusCode::INTERNAL_SERVER_ERROR
        );
    }
}
