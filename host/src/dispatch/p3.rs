//! Calls of WASI 0.3 guests (`wasi:http/handler.handle`) through wasmtime's `ProxyHandler`: workers that each
//! own one instance and serve several requests at a time. `worker` decides how long a worker lives.
//! The only place that names `ProxyHandler`.

mod worker;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http::Response;
use http_body::Body;
use wasmtime_wasi_http::handler::{
    ExpirationError, InstantiationError, ProxyHandler, TrapOrPanicError,
};
use wasmtime_wasi_http::p3::bindings::http::types::ErrorCode;

use self::worker::{Factory, Shared, lock};
use super::body::{BodyLimits, GuestBody, Producer};
use super::{Admitted, IncomingRequest, code};
use crate::error::RequestError;
use crate::guest::Guest;
use crate::limits::admission::Overloaded;
use crate::limits::deadline::{Deadline, Upload};
use crate::task::Tasks;
use crate::telemetry::guest_log::Tagged;
use crate::telemetry::request_id::RequestId;

/// How requests reach a WASI 0.3 guest.
pub(super) struct Front {
    guest: Arc<Guest>,
    handler: ProxyHandler<Factory>,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front")
            .field("guest", &self.guest)
            .finish_non_exhaustive()
    }
}

impl Front {
    pub(super) fn new(guest: Arc<Guest>, tasks: Tasks) -> Self {
        let handler = ProxyHandler::new(Factory::new(Arc::clone(&guest), tasks));
        Self { guest, handler }
    }

    /// Hands the request to a worker and waits for the response head.
    pub(super) async fn call<B>(
        &self,
        admitted: Admitted,
        request: IncomingRequest<B>,
        upload: Option<Arc<Upload>>,
    ) -> Result<Response<GuestBody>, RequestError>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::fmt::Display,
    {
        let mut deadline = Deadline::new(self.guest.limits.wall, upload);
        let awaited = Awaited(Exchange::new(admitted));
        let mut answer = pin!(
            self.handler
                .handle(Arc::clone(&awaited.0), super::guest_request(*request))
        );
        let answer = poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer.map_err(request_error));
            }
            deadline
                .poll_expired(cx)
                .map(|wall| Err(RequestError::Deadline(wall)))
        })
        .await;
        match answer {
            Ok(response) => {
                let (head, body) = response.into_parts();
                let length = super::content_length(&head.headers)?;
                let limits = BodyLimits::from(&self.guest.limits);
                let body = GuestBody::new(body, Producer::P3(awaited), limits, length);
                Ok(Response::from_parts(head, body))
            }
            Err(RequestError::Deadline(wall)) => Err(RequestError::Deadline(wall)),
            Err(error) => {
                // The guest itself has ended this request; nobody is left to be told.
                awaited.0.set(ENDED);
                Err(error)
            }
        }
    }
}

fn request_error(error: wasmtime::Error) -> RequestError {
    if let Some(code) = error.downcast_ref::<ErrorCode>() {
        return code::from_p3(code);
    }
    if error.is::<TrapOrPanicError>() || error.is::<ExpirationError>() {
        // The worker tells why, for all the requests that were in it.
        return RequestError::Trap(wasmtime::format_err!(
            "its instance ended before the response began"
        ));
    }
    match error.downcast::<InstantiationError<Arc<Exchange>>>() {
        Ok(failed) if failed.error.is::<OverloadedError>() => RequestError::Overloaded,
        Ok(failed) => {
            let text = wasmtime::format_err!("{:#}", failed.error);
            if super::is_guests_own(&failed.error) {
                RequestError::Trap(text)
            } else {
                RequestError::InstanceLimit(text)
            }
        }
        Err(error) => RequestError::Trap(error),
    }
}

/// The place of [`Overloaded`] in an error chain.
#[derive(Debug, thiserror::Error)]
#[error("no place in the instance pool")]
struct OverloadedError;

impl From<Overloaded> for OverloadedError {
    fn from(_: Overloaded) -> Self {
        Self
    }
}

/// The response, body and all, has been handed over, or the guest has failed to make one.
const ENDED: u8 = 1;
/// The client is gone, or has been told that it waited for too long.
const VANISHED: u8 = 2;
/// No guest code runs any more, and the response has not ended.
const BROKEN: u8 = 4;

/// One request on its way through a worker.
#[derive(Debug)]
pub(super) struct Exchange {
    id: RequestId,
    flags: AtomicU8,
    vanished: AtomicWaker,
    broken: AtomicWaker,
    worker: OnceLock<Arc<Shared>>,
    tag: Mutex<Option<Tagged>>,
    /// Released with the exchange: when the client and the worker are both done with it.
    _admitted: Admitted,
}

impl Exchange {
    fn new(admitted: Admitted) -> Arc<Self> {
        Arc::new(Self {
            id: admitted.id,
            flags: AtomicU8::new(0),
            vanished: AtomicWaker::new(),
            broken: AtomicWaker::new(),
            worker: OnceLock::new(),
            tag: Mutex::default(),
            _admitted: admitted,
        })
    }

    fn set(&self, flag: u8) {
        self.flags.fetch_or(flag, Ordering::AcqRel);
        if flag == BROKEN {
            self.broken.wake();
        } else {
            lock(&self.tag).take();
            self.vanished.wake();
            if let Some(worker) = self.worker.get() {
                worker.changed();
            }
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Acquire) & flag != 0
    }

    /// Whether somebody still waits for this response.
    fn is_live(&self) -> bool {
        !self.has(ENDED | VANISHED)
    }

    fn poll_vanished(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.vanished.register(cx.waker());
        if self.has(VANISHED) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// The client's end of an exchange. Dropping it before the end means that the client is gone.
#[derive(Debug)]
pub(super) struct Awaited(Arc<Exchange>);

impl Awaited {
    /// Ready when nothing more will come from the guest. What it has sent before is still to be read.
    pub(super) fn poll_broken(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.broken.register(cx.waker());
        if self.0.has(BROKEN) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// The response has been handed over as a whole; what the guest still does is nobody's answer.
    pub(super) fn complete(&self) {
        self.0.set(ENDED);
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if self.0.is_live() {
            self.0.set(VANISHED);
            if let Some(worker) = self.0.worker.get() {
                worker.adopt(&self.0);
            }
        }
    }
}

/// Resolves when an exchange's client is gone, and keeps the exchange until then.
fn vanished(exchange: Arc<Exchange>) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>> {
    Box::pin(poll_fn(move |cx| exchange.poll_vanished(cx)))
}
