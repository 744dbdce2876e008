//! How answers look that the host makes itself, and what every response must keep to on the wire.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use crate::error::RequestError;
use crate::telemetry::request_id::RequestId;

/// The header by which a client finds its failure in the host's log.
const X_REQUEST_ID: &str = "x-request-id";

/// An error as its client sees it: the status, one short line, and the request's id.
pub(crate) fn error_response(error: &RequestError, id: RequestId) -> Response<Bytes> {
    let status = error.status();
    let reason = status.canonical_reason().unwrap_or("Error");
    let text = format!("{} {reason}: {}\n", status.as_u16(), error.public_text());
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    if let Ok(id) = HeaderValue::try_from(id.to_string()) {
        headers.insert(X_REQUEST_ID, id);
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Whether a response to this request has a body on the wire (RFC 9110, 6.4.1).
pub(crate) fn has_body(method: &Method, status: StatusCode) -> bool {
    method != Method::HEAD && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Removes what RFC 9110, 8.6 forbids on a 204: a length. HEAD and 304 keep the one that a GET would have.
pub(crate) fn fix_head(status: StatusCode, headers: &mut HeaderMap) {
    if status == StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    }
}
