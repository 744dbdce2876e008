//! What a long compilation shows: a spinner on a terminal, one log line everywhere.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

/// Compilations that are over before this show nothing on the terminal.
const PATIENCE: Duration = Duration::from_millis(300);

/// A compilation under way; ends with [`Compiling::done`] or by being dropped.
#[derive(Debug)]
pub(crate) struct Compiling {
    file: String,
    size: usize,
    begin: Instant,
    bar: ProgressBar,
}

impl Compiling {
    /// Begins to show that `path`, of `size` bytes, is being compiled.
    pub(crate) fn begin(path: &Path, size: usize) -> Self {
        let file = path.display().to_string();
        // Drawing goes to stderr, and only when that is a terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(format!(
            "compiling {file}, {}",
            bytesize::ByteSize(size as u64)
        ));
        bar.enable_steady_tick(PATIENCE);
        Self {
            file,
            size,
            begin: Instant::now(),
            bar,
        }
    }

    /// Tells how long it took.
    pub(crate) fn done(&self) {
        self.bar.finish_and_clear();
        tracing::info!(
            file = self.file,
            bytes = self.size,
            seconds = self.begin.elapsed().as_secs_f32(),
            "compiled"
        );
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
