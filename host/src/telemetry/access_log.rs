//! One line for each request, written when its response body ends or breaks off.

use http::{Method, StatusCode, Uri};
use tokio::time::Instant;

use super::request_id::RequestId;

/// What is known of a request when it arrives.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) request: RequestId,
    pub(crate) peer: std::net::SocketAddr,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) begin: Instant,
}

/// A line in the making: written when it is dropped, with what happened until then.
#[derive(Debug)]
pub(crate) struct Line {
    access: Access,
    status: StatusCode,
    sent: u64,
    complete: bool,
}

impl Line {
    /// The response head is on its way.
    pub(crate) fn new(access: Access, status: StatusCode) -> Self {
        Self {
            access,
            status,
            sent: 0,
            complete: false,
        }
    }

    /// More of the body went out.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// The body has reached its end.
    pub(crate) fn complete(&mut self) {
        self.complete = true;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let access = &self.access;
        tracing::info!(
            target: "access",
            request = %access.request,
            peer = %access.peer,
            method = %access.method,
            uri = %access.uri,
            status = self.status.as_u16(),
            bytes = self.sent,
            complete = self.complete,
            milliseconds = access.begin.elapsed().as_secs_f64() * 1e3,
            "request"
        );
    }
}
