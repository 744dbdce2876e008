//! The command line. Flags and environment become a [`ConfigOverlay`]; the defaults are the library's.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use cloudgo_host::config::ConfigOverlay;
use cloudgo_host::config::units::{self, ListenAddress, SizeLimit, TimeLimit};
use cloudgo_host::telemetry::log::LogFormat as Format;

const EXAMPLES: &str = "\
Examples:
  cloudgo-host hello.wasm                          serve on port 8080 of all addresses
  cloudgo-host -p 9090 hello.wasm                  another port
  cloudgo-host --addr 127.0.0.1:0 hello.wasm       loopback only, a free port
  cloudgo-host --timeout 5s --max-memory 64MiB --max-concurrent-requests 200 hello.wasm
  cloudgo-host --max-instance-reuse-count 1000 hello.wasm
                                                   use each WASI 0.2 instance for 1000 requests

Times are 30s, 250ms, 1m or plain seconds; sizes are 64MiB, 1GB or plain bytes; 0 turns a limit off.
SIGTERM and SIGINT finish the requests in flight and end the process; a second one ends it at once.
Exit codes: 0 after a clean drain, 1 for an error at run time, 2 for a command line or component that
cannot be used.";

/// Serves a WebAssembly component (wasi:http 0.2 or 0.3) over HTTP.
#[derive(Debug, Parser)]
#[command(name = "cloudgo-host", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    /// The component: a .wasm file, WebAssembly text, or with --allow-precompiled a .cwasm file
    #[arg(value_name = "COMPONENT")]
    component: PathBuf,

    /// PORT for httpd listening [default: 8080]
    #[arg(short, long, value_name = "PORT", env = "CLOUDGO_HOST_PORT")]
    port: Option<u16>,

    /// Address to listen on: IP, IP:PORT, [IPV6]:PORT, NAME:PORT or :PORT [default: 0.0.0.0]
    #[arg(long, value_name = "ADDR", env = "CLOUDGO_HOST_ADDR")]
    addr: Option<ListenAddress>,

    #[command(flatten)]
    limits: Limits,

    #[command(flatten)]
    timers: Timers,

    #[command(flatten)]
    reuse: Reuse,

    #[command(flatten)]
    cache: Cache,

    /// What to log: error, warn, info, debug, or a list such as warn,guest=info
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        env = "CLOUDGO_HOST_LOG",
        help_heading = "Log"
    )]
    pub(crate) log: String,

    /// How log lines look
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text, env = "CLOUDGO_HOST_LOG_FORMAT", help_heading = "Log")]
    pub(crate) log_format: LogFormat,

    /// Log one line for each request
    #[arg(long, help_heading = "Log")]
    access_log: bool,
}

/// How much at once.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
struct Limits {
    /// Requests inside the guest at once; also the size of the instance pool [default: 1000]
    #[arg(long, value_name = "N")]
    max_concurrent_requests: Option<usize>,

    /// Requests that may wait for a place; further ones get 503 [default: 1000]
    #[arg(long, value_name = "N")]
    queue: Option<usize>,

    /// How long a request waits for a place before it gets 503 [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::time_limit)]
    queue_timeout: Option<TimeLimit>,

    /// Connections at once; further ones wait in the system's backlog [default: 10000]
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,

    /// Memory of one instance [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = units::size_limit)]
    max_memory: Option<SizeLimit>,

    /// Elements of one table of an instance [default: 100000]
    #[arg(long, value_name = "N")]
    max_table_elements: Option<usize>,

    /// Size of a request body; a larger one gets 413 [default: 0, no limit]
    #[arg(long, value_name = "SIZE", value_parser = units::size_limit)]
    max_request_body: Option<SizeLimit>,
}

/// How long.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Times")]
struct Timers {
    /// Time for the guest to begin its response, computing and waiting; then 504 [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::time_limit)]
    timeout: Option<TimeLimit>,

    /// Time for a client to send a request head [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::time_limit)]
    head_timeout: Option<TimeLimit>,

    /// Idle time between two requests of a connection [default: 75s]
    #[arg(long, value_name = "TIME", value_parser = units::time_limit)]
    keep_alive_timeout: Option<TimeLimit>,

    /// Silence of a client inside its request body; then 408 [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::time_limit)]
    request_body_timeout: Option<TimeLimit>,

    /// Silence of the guest inside a response body, or of a client that takes nothing of it [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::time_limit)]
    response_body_timeout: Option<TimeLimit>,

    /// Time for requests in flight after SIGTERM or SIGINT [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::time_limit)]
    drain_timeout: Option<TimeLimit>,
}

/// How often an instance is used.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Instance reuse")]
struct Reuse {
    /// Requests that one instance serves [default: 1 for WASI 0.2, 128 for WASI 0.3]
    #[arg(long, value_name = "N")]
    max_instance_reuse_count: Option<usize>,

    /// Requests that one WASI 0.3 instance serves at the same time [default: 16]
    #[arg(long, value_name = "N")]
    max_instance_concurrent_reuse_count: Option<usize>,

    /// How long an idle instance is kept [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = units::time_limit)]
    idle_instance_timeout: Option<TimeLimit>,
}

/// Compiled code.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Compiled code")]
struct Cache {
    /// Compile at every start, keep nothing on disk
    #[arg(long)]
    no_cache: bool,

    /// Where compiled components are kept [default: cloudgo-host in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR", env = "CLOUDGO_HOST_CACHE_DIR")]
    cache_dir: Option<PathBuf>,

    /// Load a precompiled .cwasm file, which runs as native code: only from a source you trust
    #[arg(long)]
    allow_precompiled: bool,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object for each line
    Json,
}

impl From<LogFormat> for Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

impl Cli {
    /// What the user gave, for the library to lay over its defaults.
    pub(crate) fn overlay(&self) -> ConfigOverlay {
        ConfigOverlay {
            component: self.component.clone(),
            address: self.addr.clone(),
            port: self.port,
            connections: self.limits.max_connections,
            head: self.timers.head_timeout,
            keep_alive: self.timers.keep_alive_timeout,
            body_idle: self.timers.request_body_timeout,
            response_idle: self.timers.response_body_timeout,
            drain: self.timers.drain_timeout,
            requests: self.limits.max_concurrent_requests,
            queue: self.limits.queue,
            queue_wait: self.limits.queue_timeout,
            memory: self.limits.max_memory,
            table_elements: self.limits.max_table_elements,
            wall: self.timers.timeout,
            body: self.limits.max_request_body,
            reuse_requests: self.reuse.max_instance_reuse_count,
            reuse_concurrent: self.reuse.max_instance_concurrent_reuse_count,
            reuse_idle: self.reuse.idle_instance_timeout,
            no_cache: self.cache.no_cache,
            cache_dir: self.cache.folder(),
            allow_precompiled: self.cache.allow_precompiled,
            access_log: self.access_log,
        }
    }
}

impl Cache {
    fn folder(&self) -> Option<PathBuf> {
        // A relative path there is invalid and to be ignored (XDG base directory specification).
        let variable = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        self.cache_dir.clone().or_else(|| {
            variable("XDG_CACHE_HOME")
                .or_else(|| variable("HOME").map(|home| home.join(".cache")))
                .map(|base| base.join("cloudgo-host"))
        })
    }
}
