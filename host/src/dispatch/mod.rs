//! A request and a guest become a response: `p2` calls instances directly, `p3` through wasmtime's worker
//! scheduling, `body` is the response body that both stream. No sockets and no routes here.
//! Start with [`Target::call`].

mod body;
mod code;
mod p2;
mod p3;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Empty};
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, Error, WasiBody};

pub(crate) use body::{BrokenBody, GuestBody};

use crate::component::Ready;
use crate::error::RequestError;
use crate::guest::Guest;
use crate::limits::admission::Permit;
use crate::limits::body::{BodyFault, LimitedBody};
use crate::limits::deadline::Upload;
use crate::task::Tasks;
use crate::telemetry::request_id::RequestId;

/// What belongs to one request beside its bytes.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// The request's id.
    pub(crate) id: RequestId,
    _permits: [Permit; 2],
}

impl Admitted {
    /// The permits are released when the guest is done with the request, not when the client is.
    pub(crate) fn new(id: RequestId, permits: [Permit; 2]) -> Self {
        Self {
            id,
            _permits: permits,
        }
    }
}

/// A request as a front hands it over, with the absolute URI that guests see.
pub(crate) type IncomingRequest<B> = Box<Request<LimitedBody<B>>>;

/// A guest with the means to call it.
#[derive(Debug)]
pub(crate) struct Target {
    /// The guest.
    pub(crate) guest: Arc<Guest>,
    front: Front,
}

#[derive(Debug)]
enum Front {
    P2(p2::Front),
    P3(p3::Front),
}

impl Target {
    /// Prepares to call a guest; work that outlives its response runs in `tasks`.
    pub(crate) fn new(guest: Arc<Guest>, tasks: &Tasks) -> Self {
        let front = match guest.ready {
            Ready::P2(_) => Front::P2(p2::Front::new(Arc::clone(&guest), tasks.clone())),
            Ready::P3(_) => Front::P3(p3::Front::new(Arc::clone(&guest), tasks.clone())),
        };
        Self { guest, front }
    }

    /// Calls the guest and answers when the response head is there. Dropping the future, or the response's
    /// body before its end, tells the guest that its client is gone.
    pub(crate) async fn call<B>(
        &self,
        admitted: Admitted,
        mut request: IncomingRequest<B>,
    ) -> Result<Response<GuestBody>, RequestError>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::fmt::Display,
    {
        request
            .body_mut()
            .limit(self.guest.limits.body)
            .map_err(fault_error)?;
        let upload = request.body().upload();
        hide_connection_headers(request.headers_mut());
        let answer = match &self.front {
            Front::P2(front) => front.call(admitted, request, upload.clone()).await,
            Front::P3(front) => front.call(admitted, request, upload.clone()).await,
        };
        match answer {
            Ok(response) if response.status().is_informational() => Err(
                RequestError::InvalidResponse("an interim status is no final one"),
            ),
            Ok(response) => Ok(response),
            Err(error) => Err(blame(error, upload.as_deref())),
        }
    }
}

/// Removes the headers that wasi:http hides from guests. wasmtime would do it as well, but by a removal that
/// moves the last header to the place of the removed one.
fn hide_connection_headers(headers: &mut HeaderMap) {
    // A constant would be made anew for each header.
    static FORBIDDEN: [HeaderName; 9] = DEFAULT_FORBIDDEN_HEADERS;
    if !headers.keys().any(|name| FORBIDDEN.contains(name)) {
        return;
    }
    let mut kept = HeaderMap::with_capacity(headers.len());
    let mut keep = None;
    // Only the first value of a name comes with its name.
    for (name, value) in headers.drain() {
        if let Some(name) = name {
            keep = (!FORBIDDEN.contains(&name)).then_some(name);
        }
        if let Some(name) = &keep {
            kept.append(name, value);
        }
    }
    *headers = kept;
}

/// When a guest fails because its client's body did, the answer names the body.
fn blame(error: RequestError, upload: Option<&Upload>) -> RequestError {
    match upload.and_then(Upload::fault) {
        Some(fault) if error.status().is_server_error() => fault_error(fault),
        _ => error,
    }
}

fn fault_error(fault: BodyFault) -> RequestError {
    match fault {
        BodyFault::TooLarge(limit) => RequestError::BodyTooLarge(limit),
        BodyFault::Timeout => RequestError::BodyTimeout,
        BodyFault::Cut => RequestError::BodyCut,
    }
}

/// A request body's fault as the guest sees it.
fn wasi_error(fault: BodyFault) -> Error {
    match fault {
        BodyFault::TooLarge(limit) => Error::HttpRequestBodySize(Some(limit)),
        BodyFault::Timeout => Error::ConnectionReadTimeout,
        BodyFault::Cut => Error::ConnectionTerminated,
    }
}

/// What a response head declares as the length of its body.
fn content_length(headers: &HeaderMap) -> Result<Option<u64>, RequestError> {
    let invalid = || RequestError::InvalidResponse("its content-length is no number");
    let mut values = headers.get_all(http::header::CONTENT_LENGTH).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(RequestError::InvalidResponse(
            "it has several content-lengths",
        ));
    }
    let digits = value.as_bytes();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid());
    }
    let text = value.to_str().map_err(|_not_ascii| invalid())?;
    text.parse().map(Some).map_err(|_too_large| invalid())
}

/// Whether an instance that did not start has itself to blame. Otherwise the system or the pool lacked something.
fn is_guests_own(error: &wasmtime::Error) -> bool {
    error.is::<wasmtime::Trap>() || error.is::<wasmtime_wasi::I32Exit>()
}

/// Why an instance did not start.
fn start_error(error: wasmtime::Error) -> RequestError {
    if is_guests_own(&error) {
        RequestError::Trap(error)
    } else {
        RequestError::InstanceLimit(error)
    }
}

/// The same request as one that the guest's host functions take.
fn guest_request<B>(request: Request<LimitedBody<B>>) -> Request<WasiBody>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    request.map(|body| {
        if body.is_end_stream() {
            // Has no size, so the box is no allocation.
            Empty::new().map_err(|never| match never {}).boxed_unsync()
        } else {
            body.map_err(wasi_error).boxed_unsync()
        }
    })
}
