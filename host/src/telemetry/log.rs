//! The host's log on stderr. Lines are written by a thread of their own, so that a slow or closed reader
//! never stops a request, and are held back until the host has said where it listens.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Lines that wait for the writing thread. The queue's places are all made at the start: the default of 128 000
/// takes 5 MiB and a millisecond of it.
const QUEUE: usize = 16_384;

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
    let filter = parse(filter)?;
    let gate = Gate::default();
    // A full queue drops lines rather than stopping requests.
    let (writer, guard): (NonBlocking, WorkerGuard) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(QUEUE)
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

/// Holds the writing thread until it is opened; lines wait in its queue.
#[derive(Clone, Debug, Default)]
struct Gate(Arc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.opened.notify_all();
    }

    fn wait(&self) {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = self
                .0
                .opened
                .wait(open)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait();
        // A closed pipe must not end the thread that empties the queue.
        let _ = if bytes.contains(&b'\r') {
            // The one control character that the text format leaves: a guest could write over its own line.
            let text = String::from_utf8_lossy(bytes).replace('\r', "\\r");
            io::stderr().write_all(text.as_bytes())
        } else {
            io::stderr().write_all(bytes)
        };
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a filter. A word that is no level would be taken for a target, and silence everything else.
fn parse(text: &str) -> Result<EnvFilter, String> {
    let wrong = |why: &str| {
        format!("`{text}` is no log filter ({why}); try info, debug or warn,guest=info")
    };
    for part in text.split(',').filter(|part| !part.contains('=')) {
        if part.trim().is_empty() || part.trim().parse::<LevelFilter>().is_err() {
            return Err(wrong(&format!("`{part}` is no level")));
        }
    }
    EnvFilter::builder()
        .parse(text)
        .map_err(|error| wrong(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters() {
        for text in [
            "info",
            "off",
            "WARN",
            "warn,guest=info",
            "cloudgo_host::server=trace",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in ["verbose", "", "info,guest", "guest=loud", "info,"] {
            let error = parse(text).unwrap_err();
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
