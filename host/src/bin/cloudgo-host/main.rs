//! The command: flags, exit codes, the log, signals. Everything else is in the library.

mod cli;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use cloudgo_host::error::StartError;
use cloudgo_host::lifecycle::signals::Signals;
use cloudgo_host::telemetry::log;
use cloudgo_host::{Drained, Host, RunningHost};

use self::cli::Cli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Something failed at run time.
const RUNTIME_ERROR: u8 = 1;
/// The command line or what it names cannot be used.
const USAGE_ERROR: u8 = 2;

/// An error that ends the process: one line, and the exit code.
struct Fatal {
    line: String,
    code: u8,
}

impl Fatal {
    fn usage(error: &dyn std::fmt::Display) -> Self {
        Self {
            line: error.to_string(),
            code: USAGE_ERROR,
        }
    }

    fn runtime(error: &dyn std::fmt::Display) -> Self {
        Self {
            line: error.to_string(),
            code: RUNTIME_ERROR,
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(code) => code,
        Err(fatal) => {
            say(&format!("error: {}", fatal.line.replace('\n', " ")));
            ExitCode::from(fatal.code)
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode, Fatal> {
    let config = cli
        .overlay()
        .into_config()
        .map_err(|error| Fatal::usage(&error))?;
    let log =
        log::install(&cli.log, cli.log_format.into()).map_err(|error| Fatal::usage(&error))?;
    if config.cache.is_unset() {
        tracing::warn!(
            "no folder for compiled components: every start compiles; set --cache-dir or HOME"
        );
    }
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Fatal::runtime(&error))?;
    let result = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| Fatal::runtime(&error))?;
        let start = Host::start(config);
        let host = tokio::select! {
            host = start => host.map_err(|error| match error {
                StartError::Load(_) => Fatal::usage(&error),
                StartError::Listen { .. } | StartError::Thread(_) => Fatal::runtime(&error),
            })?,
            name = signals.next() => {
                return Err(Fatal::runtime(&format!("{name} before the guest was ready")));
            }
        };
        say(&format!("Serving HTTP on http://{}/", host.local_addr()));
        log.open();
        Ok(serve(host, signals).await)
    });
    // Guests that are cut may sit in a blocking call; they must not hold up the exit.
    runtime.shutdown_background();
    drop(log);
    result
}

async fn serve(host: RunningHost, mut signals: Signals) -> ExitCode {
    let signal = signals.next().await;
    tracing::info!(
        signal,
        "draining: no new connections, requests in flight are finished"
    );
    let second = async {
        signals.next().await;
    };
    match host.shutdown(second).await {
        Drained::Clean => ExitCode::SUCCESS,
        Drained::Cut(_) => ExitCode::from(RUNTIME_ERROR),
    }
}

/// Every connection is a file descriptor, and the usual soft limit of 1024 is there for `select(2)`.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// A line on stderr. If nobody can read it, nothing more can be done.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
