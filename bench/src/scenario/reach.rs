//! What is measured, and the bounds that are to be reached.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A row of the Reach table: a ratio, or a contestant's own figure, and its bound.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// Its place in the table.
    pub row: u32,
    /// What is measured, for people.
    pub what: String,
    /// What it is held against, for people.
    pub against: String,
    /// The figure.
    pub metric: Metric,
    /// Whose.
    pub of: String,
    /// Divided by whose; none: the figure itself.
    pub to: Option<String>,
    /// The smallest that is good.
    pub at_least: Option<f64>,
    /// The largest that is good.
    pub at_most: Option<f64>,
}

/// A figure of one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Requests per second.
    Rate,
    /// Microseconds.
    P50,
    /// Microseconds.
    P90,
    /// Microseconds.
    P99,
    /// Microseconds.
    P999,
    /// Microseconds.
    Max,
    /// Microseconds of the server's processor time for each request.
    Cpu,
    /// Bytes.
    Rss,
    /// Bytes.
    Pss,
    /// Bytes for each idle connection.
    RssPerConnection,
    /// Requests per second beside idle connections.
    RateBeside,
    /// The part of the rate that is left beside idle connections.
    Kept,
    /// Milliseconds from the start of the process to the end of the first answer.
    FirstAnswer,
}

impl Metric {
    /// Every figure.
    pub const ALL: [Self; 13] = [
        Self::Rate,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::Cpu,
        Self::Rss,
        Self::Pss,
        Self::RssPerConnection,
        Self::RateBeside,
        Self::Kept,
        Self::FirstAnswer,
    ];

    /// The heading of its column.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Self::Rate => "requests/s",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::Cpu => "CPU per request",
            Self::Rss => "RSS",
            Self::Pss => "PSS",
            Self::RssPerConnection => "RSS per connection",
            Self::RateBeside => "requests/s beside them",
            Self::Kept => "rate kept",
            Self::FirstAnswer => "first answer",
        }
    }

    /// A value with its unit, to three or four digits.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Rate | Self::RateBeside => thousands(value),
            Self::P50 | Self::P90 | Self::P99 | Self::P999 | Self::Max | Self::Cpu => micros(value),
            Self::Rss | Self::Pss | Self::RssPerConnection => bytes(value),
            Self::Kept => format!("{value:.2}"),
            Self::FirstAnswer => micros(value * 1000.0),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.heading())
    }
}

/// `12 345`, with a narrow space that no line breaks.
fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    shown
}

fn micros(value: f64) -> String {
    match value {
        value if value < 1000.0 => format!("{} µs", three_digits(value)),
        value if value < 1_000_000.0 => format!("{} ms", three_digits(value / 1000.0)),
        value => format!("{} s", three_digits(value / 1_000_000.0)),
    }
}

fn bytes(value: f64) -> String {
    match value {
        value if value < 1024.0 => format!("{value:.0} B"),
        value if value < 1_048_576.0 => format!("{} KiB", three_digits(value / 1024.0)),
        value => format!("{} MiB", three_digits(value / 1_048_576.0)),
    }
}

/// Three digits that count; more only before the point.
pub(crate) fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
