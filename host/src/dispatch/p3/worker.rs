//! The life of a worker, which is one instance: what it accepts, when it is stopped, and what becomes of the
//! responses that it has not finished.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::task::task_tracker::TaskTrackerToken;
use wasmtime::component::GuestTaskId;
use wasmtime::{Store, StoreContextMut};
use wasmtime_wasi_http::WasiHttpView;
use wasmtime_wasi_http::handler::{
    HandlerState, Instance, Proxy, ShouldAccept, WorkerExpiration, WorkerState, WorkerStatus,
};

use super::{BROKEN, Exchange, OverloadedError, VANISHED};
use crate::capability::State;
use crate::component::Ready;
use crate::config::Reuse;
use crate::guest::Guest;
use crate::limits::admission::Permit;
use crate::task::Tasks;

/// Makes the workers of one guest.
#[derive(Debug)]
pub(super) struct Factory {
    guest: Arc<Guest>,
    tasks: Tasks,
}

impl Factory {
    pub(super) fn new(guest: Arc<Guest>, tasks: Tasks) -> Self {
        Self { guest, tasks }
    }
}

impl HandlerState for Factory {
    type StoreData = State;
    type WorkerExpiration = Life;
    type WorkerState = Worker;

    async fn instantiate(&self) -> wasmtime::Result<Instance<State, Life, Worker>> {
        let (mut store, slot) = self.guest.store().await.map_err(OverloadedError::from)?;
        let proxy = match &self.guest.ready {
            Ready::P3(pre) => Proxy::P3(pre.instantiate_async(&mut store).await?),
            Ready::P2(pre) => Proxy::P2(pre.instantiate_async(&mut store).await?),
        };
        let shared = Arc::new(Shared::default());
        Ok(Instance {
            store,
            proxy,
            view: State::http,
            expiration: Life::new(&self.guest, Arc::clone(&shared), self.tasks.clone()),
            state: Worker {
                guest: Arc::clone(&self.guest.name),
                reuse: self.guest.limits.reuse,
                shared,
                tasks: self.tasks.clone(),
                slot: Mutex::new(Some(slot)),
            },
        })
    }
}

/// What a worker, its exchanges and its clients share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    exchanges: Mutex<Vec<Weak<Exchange>>>,
    /// Exchanges whose client is gone while the guest may still work on them: they keep their permits.
    orphans: Mutex<Orphans>,
    waker: AtomicWaker,
    notify: Notify,
    stopped: AtomicBool,
    idle: AtomicBool,
}

#[derive(Debug, Default)]
struct Orphans {
    exchanges: Vec<Arc<Exchange>>,
    /// The worker is gone: an exchange kept from now on would never be released.
    closed: bool,
}

impl Shared {
    /// An exchange has ended in one way or another.
    pub(super) fn changed(&self) {
        self.waker.wake();
        self.notify.notify_waiters();
    }

    /// Keeps a vanished exchange's permits until the instance is idle or gone.
    pub(super) fn adopt(&self, exchange: &Arc<Exchange>) {
        let mut orphans = lock(&self.orphans);
        if !orphans.closed {
            orphans.exchanges.push(Arc::clone(exchange));
            drop(orphans);
            self.waker.wake();
        }
    }

    fn live(&self) -> Vec<Arc<Exchange>> {
        self.live_ones().iter().filter_map(Weak::upgrade).collect()
    }

    /// How many responses of this worker somebody waits for.
    fn live_count(&self) -> usize {
        self.live_ones().len()
    }

    fn live_ones(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Exchange>>> {
        let mut exchanges = lock(&self.exchanges);
        exchanges.retain(|weak| weak.upgrade().is_some_and(|exchange| exchange.is_live()));
        exchanges
    }

    fn has_orphans(&self) -> bool {
        !lock(&self.orphans).exchanges.is_empty()
    }

    fn release_orphans(&self, closed: bool) {
        let mut orphans = lock(&self.orphans);
        orphans.closed |= closed;
        let released = std::mem::take(&mut orphans.exchanges);
        drop(orphans);
        drop(released);
    }

    async fn until_ended(&self) {
        loop {
            let mut changed = std::pin::pin!(self.notify.notified());
            changed.as_mut().enable();
            if self.live_count() == 0 {
                return;
            }
            changed.await;
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker's rules.
#[derive(Debug)]
pub(super) struct Worker {
    guest: Arc<str>,
    reuse: Reuse,
    shared: Arc<Shared>,
    tasks: Tasks,
    /// The place in the pool, until the store is gone.
    slot: Mutex<Option<Permit>>,
}

impl WorkerState for Worker {
    type StoreData = State;
    type RequestData = Arc<Exchange>;

    fn should_accept_request(&self, concurrent: usize, total: usize) -> ShouldAccept {
        // An instance with an orphan takes nothing new, so that it soon ends and the orphan with it.
        if total >= self.reuse.p3_requests || self.shared.has_orphans() {
            ShouldAccept::Never
        } else if concurrent.max(self.shared.live_count()) >= self.reuse.p3_concurrent {
            // wasmtime counts a request until its response head, this until the end of its body.
            ShouldAccept::No
        } else {
            ShouldAccept::Yes
        }
    }

    fn on_request_start(
        &self,
        store: StoreContextMut<'_, State>,
        exchange: Arc<Exchange>,
        _task: GuestTaskId,
    ) -> Pin<Box<dyn Future<Output = ()> + 'static + Send + Sync>> {
        *lock(&exchange.tag) = Some(store.data().log().tag(exchange.id));
        lock(&self.shared.exchanges).push(Arc::downgrade(&exchange));
        // Nothing else sets it: an exchange enters one worker once.
        let _ = exchange.worker.set(Arc::clone(&self.shared));
        if exchange.has(VANISHED) {
            self.shared.adopt(&exchange);
        }
        super::vanished(exchange)
    }

    fn drop(&self, store: Store<State>, result: wasmtime::Result<()>) {
        let live = self.shared.live();
        if let Err(error) = &result {
            self.report(&live, error);
        }
        self.shared.release_orphans(true);
        if live.is_empty() {
            return;
        }
        // No guest code runs any more. While the store lives, a body that the guest has finished still ends
        // cleanly; one that waits for more is told here that nothing will come. Dropping the store first
        // would make both look finished.
        for exchange in &live {
            exchange.set(BROKEN);
        }
        let shared = Arc::clone(&self.shared);
        let slot = lock(&self.slot).take();
        self.tasks.spawn(async move {
            shared.until_ended().await;
            drop(store);
            drop(slot);
        });
    }
}

impl Worker {
    fn report(&self, live: &[Arc<Exchange>], error: &wasmtime::Error) {
        if self.shared.stopped.load(Ordering::Acquire) {
            tracing::debug!(guest = %self.guest, "instance stopped: nobody waits for it");
        } else if self.shared.idle.load(Ordering::Acquire) {
            tracing::debug!(guest = %self.guest, "idle instance dropped");
        } else if !is_clean_exit(error) {
            let requests: Vec<_> = live
                .iter()
                .map(|exchange| exchange.id.to_string())
                .collect();
            tracing::warn!(
                guest = %self.guest,
                requests = requests.join(","),
                error = format!("{error:?}"),
                "guest failed"
            );
        }
    }
}

fn is_clean_exit(error: &wasmtime::Error) -> bool {
    matches!(
        error.downcast_ref::<wasmtime_wasi::I32Exit>(),
        Some(wasmtime_wasi::I32Exit(0))
    )
}

/// Decides, from outside the guest's event loop, when a worker is stopped.
#[derive(Debug)]
pub(super) struct Life {
    shared: Arc<Shared>,
    wall: Option<Duration>,
    idle: Duration,
    tasks: Tasks,
    /// While the guest works; an idle instance does not hold up the drain.
    working: Option<TaskTrackerToken>,
    /// Since when the guest has worked without anybody waiting for it.
    unattended_since: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Life {
    fn new(guest: &Guest, shared: Arc<Shared>, tasks: Tasks) -> Self {
        Self {
            shared,
            wall: guest.limits.wall,
            idle: guest.limits.reuse.idle,
            working: Some(tasks.token()),
            tasks,
            unattended_since: None,
            sleep: None,
        }
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, end: Option<Instant>) -> Poll<()> {
        let Some(end) = end else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if sleep.deadline() != end {
            sleep.as_mut().reset(end);
        }
        sleep.as_mut().poll(cx)
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.working.is_none() {
            self.working = Some(self.tasks.token());
        }
        if self.shared.live_count() > 0 {
            self.unattended_since = None;
            return Poll::Pending;
        }
        if self.shared.has_orphans() {
            return Poll::Ready(());
        }
        let since = *self.unattended_since.get_or_insert_with(Instant::now);
        self.poll_until(cx, self.wall.map(|wall| since + wall))
    }
}

#[allow(clippy::disallowed_types, reason = "the trait's own signature")]
impl WorkerExpiration for Life {
    fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        status: WorkerStatus,
        start: std::time::Instant,
    ) -> Poll<()> {
        self.shared.waker.register(cx.waker());
        self.shared
            .idle
            .store(status == WorkerStatus::Idle, Ordering::Release);
        match status {
            WorkerStatus::Idle => {
                self.working = None;
                self.unattended_since = None;
                self.shared.release_orphans(false);
                let end = Instant::from_std(start).checked_add(self.idle);
                self.poll_until(cx, end)
            }
            WorkerStatus::Requests | WorkerStatus::PostReturn => {
                let over = self.poll_work(cx);
                if over.is_ready() {
                    self.shared.stopped.store(true, Ordering::Release);
                }
                over
            }
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // What is left of the exchanges must not keep their permits.
        self.shared.release_orphans(true);
    }
}
