//! A bar on a terminal, nothing elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Where the state of a run is shown.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shows nothing.
    pub fn hidden() -> Self {
        Self {
            bar: ProgressBar::hidden(),
        }
    }

    /// A bar on standard error if that is a terminal, else nothing.
    pub fn on_terminal() -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {elapsed} {msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Shows the state in a bar that belongs to somebody else: length and position are set in milliseconds.
    pub fn in_bar(bar: ProgressBar) -> Self {
        Self { bar }
    }

    pub(crate) fn visible(&self) -> bool {
        !self.bar.is_hidden()
    }

    pub(crate) fn show(&self, elapsed: Duration, total: Duration, requests: u64) {
        self.bar.set_length(millis(total));
        self.bar.set_position(millis(elapsed.min(total)));
        self.bar.set_message(format!("{requests} requests"));
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
