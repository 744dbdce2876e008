//! Calls of WASI 0.2 guests (`wasi:http/incoming-handler.handle`). The guest runs inside the future that
//! awaits its response head and then inside the response body's `poll_frame`: no task, no queue, and
//! dropping either of them cancels the guest.

mod idle;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::Body;
use http_body_util::{BodyExt, Empty};
use wasmtime::Store;
use wasmtime_wasi::I32Exit;
use wasmtime_wasi_http::p2::bindings::http::types::{ErrorCode, Scheme};
use wasmtime_wasi_http::p2::bindings::{Proxy, ProxyPre};
use wasmtime_wasi_http::p2::body::{HostOutgoingBody, HyperOutgoingBody};
use wasmtime_wasi_http::{Error, WasiHttpView};
use wasmtime_wasi_io::IoView;

use self::idle::{IdleInstances, Instance};
use super::body::{BodyLimits, GuestBody, Producer};
use super::{Admitted, IncomingRequest, code};
use crate::capability::State;
use crate::component::Ready;
use crate::error::RequestError;
use crate::guest::Guest;
use crate::limits::deadline::{Deadline, Upload};
use crate::task::Tasks;
use crate::telemetry::request_id::RequestId;

/// How requests reach a WASI 0.2 guest.
#[derive(Debug)]
pub(super) struct Front {
    guest: Arc<Guest>,
    idle: Arc<IdleInstances>,
    tasks: Tasks,
}

/// What the guest hands to `response-outparam.set`.
type Head = Result<Response<HyperOutgoingBody>, ErrorCode>;

/// Where the head is put. Looked at after each poll of the guest, so it wakes nobody; a channel's end would be
/// polled with what is left of tokio's budget for the task, and with none left it would look empty.
type HeadSlot = Arc<Mutex<Option<Head>>>;

fn lock(slot: &Mutex<Option<Head>>) -> MutexGuard<'_, Option<Head>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a call ended.
#[derive(Debug)]
struct Ending {
    result: Result<(), RequestError>,
    /// A response body was neither finished nor dropped by the guest.
    body_leaked: bool,
}

type Call = Pin<Box<dyn Future<Output = Ending> + Send>>;

impl Front {
    pub(super) fn new(guest: Arc<Guest>, tasks: Tasks) -> Self {
        let idle = IdleInstances::new(&guest.limits.reuse);
        Self { guest, idle, tasks }
    }

    /// Runs the guest until its response head is there.
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
        let wall = self.guest.limits.wall;
        let id = admitted.id;
        let mut deadline = Deadline::new(wall, upload);
        let slot = HeadSlot::default();
        let call: Call = Box::pin(run(
            Arc::clone(&self.guest),
            Arc::clone(&self.idle),
            admitted,
            request,
            Arc::clone(&slot),
        ));
        let mut running = Running {
            call: Some(call),
            ending: None,
            origin: Origin {
                guest: Arc::clone(&self.guest.name),
                request: id,
            },
            tasks: self.tasks.clone(),
            wall,
        };
        let head: Head = poll_fn(|cx| {
            running.poll_progress(cx);
            if let Some(head) = lock(&slot).take() {
                return Poll::Ready(Ok(head));
            }
            if let Some(ending) = running.ending.take() {
                let error = ending.result.err().unwrap_or(RequestError::NoResponse);
                return Poll::Ready(Err(error));
            }
            deadline
                .poll_expired(cx)
                .map(|wall| Err(RequestError::Deadline(wall)))
        })
        .await?;
        match head {
            Err(code) => Err(code::from_p2(&code)),
            Ok(response) => {
                let (head, body) = response.into_parts();
                let length = super::content_length(&head.headers)?;
                let limits = BodyLimits::from(&self.guest.limits);
                let body = GuestBody::new(body, Producer::P2(running), limits, length);
                Ok(Response::from_parts(head, body))
            }
        }
    }
}

/// Whose work it is.
#[derive(Clone)]
struct Origin {
    guest: Arc<str>,
    request: RequestId,
}

impl Origin {
    /// Tells of a failure that no client is answered with, because its response had begun.
    fn report(&self, ending: &Ending) {
        let Self { guest, request } = self;
        match &ending.result {
            Err(error) if ending.body_leaked || !matches!(error, RequestError::Exit(0)) => {
                let error = error.to_string();
                tracing::warn!(%request, %guest, error, "guest failed after its response had begun");
            }
            _ if ending.body_leaked => {
                tracing::warn!(%request, %guest, "guest left its response body unfinished");
            }
            _ => {}
        }
    }
}

/// A guest that may still have work to do.
pub(super) struct Running {
    call: Option<Call>,
    ending: Option<Ending>,
    origin: Origin,
    tasks: Tasks,
    wall: Option<Duration>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("ended", &self.call.is_none())
            .finish_non_exhaustive()
    }
}

impl Running {
    /// Runs a guest whose response has begun as far as it gets.
    pub(super) fn poll_on(&mut self, cx: &mut Context<'_>) {
        let was_running = self.call.is_some();
        self.poll_progress(cx);
        if let Some(ending) = &self.ending
            && was_running
        {
            self.origin.report(ending);
        }
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>) {
        if let Some(call) = &mut self.call
            && let Poll::Ready(ending) = call.as_mut().poll(cx)
        {
            self.call = None;
            self.ending = Some(ending);
        }
    }

    /// Whether a body that has ended was ended by the guest, and not only by the end of the guest.
    pub(super) fn body_was_finished(&self) -> bool {
        self.ending
            .as_ref()
            .is_none_or(|ending| !ending.body_leaked)
    }

    /// Lets the guest work on after its response, for as long as it may take for a response.
    pub(super) fn finish_in_background(&mut self) {
        let Some(call) = self.call.take() else { return };
        let (wall, origin) = (self.wall, self.origin.clone());
        self.tasks.spawn(async move {
            let ending = match wall {
                None => call.await,
                Some(wall) => match tokio::time::timeout(wall, call).await {
                    Ok(ending) => ending,
                    Err(_elapsed) => {
                        let Origin { guest, request } = origin;
                        tracing::warn!(%request, %guest, ?wall, "guest stopped: its work after the response took too long");
                        return;
                    }
                },
            };
            origin.report(&ending);
        });
    }
}

/// One call from an instance to its end. Whoever drops this cancels the guest.
async fn run<B>(
    guest: Arc<Guest>,
    idle: Arc<IdleInstances>,
    admitted: Admitted,
    request: IncomingRequest<B>,
    slot: HeadSlot,
) -> Ending
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    let failed = |error| Ending {
        result: Err(error),
        body_leaked: false,
    };
    let mut instance = match idle.take() {
        Some(instance) => instance,
        None => match fresh(&guest).await {
            Ok(instance) => instance,
            Err(error) => return failed(error),
        },
    };
    let tagged = instance.store.data().log().tag(admitted.id);
    let result = invoke(&mut instance, request, slot).await;
    let body_leaked = has_open_body(&mut instance.store);
    let result = result.map_err(|error| match error.downcast_ref::<I32Exit>() {
        Some(I32Exit(status)) => RequestError::Exit(*status),
        None => RequestError::Trap(error),
    });
    drop(tagged);
    if result.is_ok() && !body_leaked {
        idle.give_back(instance);
    }
    Ending {
        result,
        body_leaked,
    }
}

/// A new instance in a new store.
async fn fresh(guest: &Guest) -> Result<Instance, RequestError> {
    let (mut store, slot) = guest
        .store()
        .await
        .map_err(|_overloaded| RequestError::Overloaded)?;
    let proxy = pre(guest)?
        .instantiate_async(&mut store)
        .await
        .map_err(super::start_error)?;
    Ok(Instance::new(store, proxy, slot))
}

fn pre(guest: &Guest) -> Result<&ProxyPre<State>, RequestError> {
    match &guest.ready {
        Ready::P2(pre) => Ok(pre),
        Ready::P3(_) => Err(RequestError::InvalidResponse(
            "the guest is not a WASI 0.2 one",
        )),
    }
}

async fn invoke<B>(
    instance: &mut Instance,
    request: IncomingRequest<B>,
    slot: HeadSlot,
) -> wasmtime::Result<()>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    let scheme = match request.uri().scheme() {
        Some(scheme) if *scheme == http::uri::Scheme::HTTPS => Scheme::Https,
        _ => Scheme::Http,
    };
    let Instance { store, proxy, .. } = instance;
    let mut http = store.data_mut().http();
    let request = if request.body().is_end_stream() {
        let empty = request.map(|_empty| Empty::new().map_err(|never| -> Error { match never {} }));
        http.new_incoming_request(scheme, empty)?
    } else {
        let request = request.map(|body| body.map_err(super::wasi_error));
        http.new_incoming_request(scheme, request)?
    };
    let outparam = http.new_response_outparam_from_callback(move |head| {
        *lock(&slot) = Some(head);
    })?;
    handle(proxy, store, request, outparam).await
}

async fn handle(
    proxy: &Proxy,
    store: &mut Store<State>,
    request: wasmtime::component::Resource<wasmtime_wasi_http::p2::types::HostIncomingRequest>,
    outparam: wasmtime::component::Resource<wasmtime_wasi_http::p2::types::HostResponseOutparam>,
) -> wasmtime::Result<()> {
    proxy
        .wasi_http_incoming_handler()
        .call_handle(store, request, outparam)
        .await
}

/// Whether the guest still owns an outgoing body. wasmtime ends such a body when the store is dropped, and
/// then it looks the same as one that the guest has finished.
fn has_open_body(store: &mut Store<State>) -> bool {
    store
        .data_mut()
        .table()
        .iter_mut()
        .any(|entry| entry.is::<HostOutgoingBody>())
}
