//! What every test needs: a host around one guest, clients, and macros that run one test body over
//! protocols and versions of WASI.

mod client;
#[macro_use]
mod matrix;
mod occupy;
mod raw;

use std::future::Future;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use cloudgo_host::config::ConfigOverlay;
use cloudgo_host::config::units::TimeLimit;
use cloudgo_host::{Drained, Host, RunningHost};
use serde_json::Value;
use tokio::task::JoinHandle;

pub(crate) use client::{Answer, Client, Upload, post, request, upload};
pub(crate) use matrix::{Http, Wasi, run};
pub(crate) use occupy::{occupy, until_free, until_full};
pub(crate) use raw::{End, Raw, RawAnswer, until_refused};

/// A host that serves one guest on a port of its own.
#[derive(Debug)]
pub(crate) struct TestHost {
    addr: SocketAddr,
    running: RunningHost,
}

/// A host before its start.
#[derive(Debug)]
pub(crate) struct Builder {
    overlay: ConfigOverlay,
}

impl TestHost {
    /// A host for one of the guests of `make guests`, with small defaults.
    pub(crate) fn guest(name: &str) -> Builder {
        let overlay = ConfigOverlay {
            component: guest_file(name),
            address: Some("127.0.0.1:0".parse().unwrap()),
            // The pool reserves address space for each of them.
            requests: Some(32),
            cache_dir: Some(shared_cache()),
            ..ConfigOverlay::default()
        };
        Builder { overlay }
    }

    /// A probe guest's host with the defaults.
    pub(crate) async fn probe(wasi: Wasi) -> Self {
        Self::guest(wasi.probe()).start().await
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) async fn raw(&self) -> Raw {
        Raw::connect(self.addr).await
    }

    pub(crate) async fn client(&self, http: Http) -> Client {
        Client::connect(http, self.addr).await
    }

    /// Drains with nobody to cut it short but the configured limit.
    pub(crate) async fn shutdown(self) -> Drained {
        self.running.shutdown(std::future::pending()).await
    }

    pub(crate) fn into_running(self) -> RunningHost {
        self.running
    }
}

impl Builder {
    /// Changes the configuration.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut ConfigOverlay)) -> Self {
        change(&mut self.overlay);
        self
    }

    /// One request inside at a time; `queue` others wait for as long as the test does.
    pub(crate) fn one_at_a_time(self, queue: usize) -> Self {
        self.with(|overlay| {
            overlay.requests = Some(1);
            overlay.queue = Some(queue);
            overlay.queue_wait = seconds(3600);
        })
    }

    pub(crate) async fn start(self) -> TestHost {
        let running = self.try_start().await.unwrap();
        TestHost {
            addr: running.local_addr(),
            running,
        }
    }

    pub(crate) async fn try_start(self) -> Result<RunningHost, cloudgo_host::error::StartError> {
        Host::start(self.overlay.into_config().unwrap()).await
    }
}

/// A guest's file, which must have been built.
pub(crate) fn guest_file(name: &str) -> PathBuf {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../guest/target/wasm32-wasip2/release/"
    );
    let file = PathBuf::from(folder).join(format!("{name}.wasm"));
    assert!(
        file.is_file(),
        "{} is missing: run `make guests`",
        file.display()
    );
    file
}

/// Compiled guests, so that each is compiled once for all tests and processes.
fn shared_cache() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compiled");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .unwrap();
    folder
}

pub(crate) fn millis(limit: u64) -> Option<TimeLimit> {
    Some(TimeLimit(Some(Duration::from_millis(limit))))
}

pub(crate) fn seconds(limit: u64) -> Option<TimeLimit> {
    millis(limit * 1000)
}

/// A timer that never fires.
pub(crate) fn never() -> Option<TimeLimit> {
    Some(TimeLimit(None))
}

/// Starts a task of the test itself.
#[allow(
    clippy::disallowed_methods,
    reason = "the drain of the host has nothing to do with clients"
)]
pub(crate) fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}

/// The JSON that probes answer.
pub(crate) fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(body)))
}

/// Bytes in the spelling of the probes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
