//! Checked configuration values. Text is parsed in `units`; flags arrive as a `ConfigOverlay` and meet the
//! defaults in `overlay`. What is in a [`Config`] is valid: nothing downstream checks it again.
//! Start with [`ConfigOverlay::into_config`].

mod overlay;
pub mod units;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use overlay::{ConfigOverlay, Error};

/// Everything a host is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen.
    pub listener: ListenerConfig,
    /// What to serve.
    pub guest: GuestConfig,
    /// How many requests at once, and how long others wait.
    pub admission: AdmissionConfig,
    /// The longest time that a drain may take; `None` waits for the last request.
    pub drain: Option<Duration>,
    /// Compiled code on disk.
    pub cache: CacheConfig,
    /// One log line for each request.
    pub access_log: bool,
}

/// One listening socket and the timers of its connections.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// The address; port 0 lets the system choose.
    pub address: SocketAddr,
    /// How many connections are open at once; further ones wait in the kernel's backlog.
    pub connections: usize,
    /// From the first byte of a head (or the accept) to its end.
    pub head: Option<Duration>,
    /// The idle time between two requests of a connection.
    pub keep_alive: Option<Duration>,
    /// The longest silence inside a request body.
    pub body_idle: Option<Duration>,
    /// The longest time for which a client may take nothing of a response.
    pub write_idle: Option<Duration>,
}

/// One guest: its file and its limits.
#[derive(Clone, Debug)]
pub struct GuestConfig {
    /// The name in logs.
    pub name: String,
    /// The component's file.
    pub component: PathBuf,
    /// Whether a precompiled `.cwasm` file may be loaded: it runs as native code, unchecked.
    pub allow_precompiled: bool,
    /// What one instance and one request may use.
    pub limits: GuestLimits,
}

/// What one instance and one request may use.
#[derive(Clone, Copy, Debug)]
pub struct GuestLimits {
    /// Bytes of one linear memory.
    pub memory: u64,
    /// Elements of one table.
    pub table_elements: usize,
    /// Time from dispatch to the response head, less what the client spends uploading. It also bounds
    /// the work that goes on after a response.
    pub wall: Option<Duration>,
    /// The longest silence of the guest inside a response body.
    pub response_idle: Option<Duration>,
    /// Bytes of one request body.
    pub body: Option<u64>,
    /// Requests inside this guest at once.
    pub concurrency: usize,
    /// When an instance is used again.
    pub reuse: Reuse,
}

/// When an instance is used again.
#[derive(Clone, Copy, Debug)]
pub struct Reuse {
    /// Requests in the life of a WASI 0.2 instance.
    pub p2_requests: usize,
    /// Requests in the life of a WASI 0.3 instance.
    pub p3_requests: usize,
    /// Requests at one time in a WASI 0.3 instance.
    pub p3_concurrent: usize,
    /// How long an idle instance is kept.
    pub idle: Duration,
}

/// How many requests at once, and how long others wait.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionConfig {
    /// Requests inside guests at once; also the number of instances in the pool.
    pub requests: usize,
    /// Requests that may wait for a permit.
    pub queue: usize,
    /// How long they wait; `None` for as long as it takes.
    pub wait: Option<Duration>,
}

/// Compiled code on disk.
#[derive(Clone, Debug)]
pub enum CacheConfig {
    /// Compile at every start.
    Off,
    /// As [`CacheConfig::Off`], for want of a folder.
    Unset,
    /// Keep compiled components in this folder.
    Folder(PathBuf),
}

impl CacheConfig {
    /// Whether nothing is cached although nobody has asked for that.
    pub fn is_unset(&self) -> bool {
        matches!(self, Self::Unset)
    }
}
