//! The host's log on stderr. Lines are written by a thread of their own, so that a slow or closed reader
//! never stops a request, and are held back until the host has said where it listens.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object for each line.
    Json,
}

/// The running log. Dropping it writes what is left.
#[derive(Debug)]
pub struct Log {
    gate: Gate,
    _guard: WorkerGuard,
}

impl Log {
    /// Lets the lines out that were held back, and all that follow.
    pub fn open(&self) {
        self.gate.open();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.gate.open();
    }
}

/// Installs the process's log.
///
/// # Errors
/// One line when `filter` is no filter (`info`, `warn,guest=debug`, ...), or a log is already installed.
pub fn install(filter: &str, format: LogFormat) -> Result<Log, String> {
    let filter = EnvFilter::builder().parse(filter).map_err(|error| {
        format!("`{filter}` is no log filter ({error}); try info or warn,guest=info")
    })?;
    let gate = Gate::default();
    // A full queue drops lines rather than stopping requests.
    let (writer, guard): (NonBlocking, WorkerGuard) = NonBlockingBuilder::default()
        .lossy(true)
        .thread_name("log")
        .finish(gate.clone());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer);
    let installed = match format {
        LogFormat::Text => builder
            .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
            .try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    installed.map_err(|error| error.to_string())?;
    Ok(Log {
        gate,
        _guard: guard,
    })
}

/// Holds lines until it is opened.
#[derive(Clone, Debug, Default)]
struct Gate(Arc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    open: AtomicBool,
    held: Mutex<Vec<u8>>,
}

/// What a start may log before it is known whether the host listens.
const LONGEST_HOLD: usize = 1 << 20;

impl Gate {
    fn open(&self) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.0.open.swap(true, Ordering::AcqRel) {
            // Nobody can be told that stderr is gone.
            let _ = io::stderr().write_all(&held);
            held.clear();
        }
    }
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.0.open.load(Ordering::Acquire) {
            let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.0.open.load(Ordering::Acquire) {
                if held.len() < LONGEST_HOLD {
                    held.extend_from_slice(bytes);
                }
                return Ok(bytes.len());
            }
        }
        // A closed pipe must not end the thread that empties the queue.
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
