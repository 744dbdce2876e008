//! What a run measured.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// The percentiles that tables and JSON show.
pub const PERCENTILES: [f64; 5] = [50.0, 75.0, 90.0, 99.0, 99.9];

/// The numbers of one run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests that got the expected answer.
    pub requests: u64,
    /// Requests that did not, by kind.
    pub failures: BTreeMap<String, u64>,
    /// The recorded time; with a limit on requests, until the last of them ended.
    pub elapsed: Duration,
    /// Bytes read from the sockets in the recorded time.
    pub bytes_in: u64,
    /// Bytes written to the sockets in the recorded time.
    pub bytes_out: u64,
    /// Connections opened in place of ended ones. That a server ends a connection between requests is no failure.
    pub reconnects: u64,
    /// Latency in **nanoseconds** of the requests that got the expected answer, to three digits. Closed loop:
    /// from the start of the request; open loop: from the instant for which it was scheduled.
    pub latency: Histogram<u64>,
}

impl Outcome {
    /// Answered requests per second of the recorded time.
    pub fn rate(&self) -> f64 {
        per_second(self.requests, self.elapsed)
    }

    /// The latency that `percent` of 100 requests stayed within.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.latency.value_at_percentile(percent))
    }

    /// The mean latency.
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.latency.mean() / 1e9)
    }

    /// The longest latency.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.latency.max())
    }

    /// All failures together.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// The numbers as JSON: times in microseconds, rates per second.
    pub fn to_json(&self) -> Value {
        let mut latency = serde_json::Map::new();
        for percent in PERCENTILES {
            latency.insert(
                format!("p{percent}"),
                micros(self.percentile(percent)).into(),
            );
        }
        latency.insert("max".to_owned(), micros(self.max()).into());
        latency.insert("mean".to_owned(), micros(self.mean()).into());
        json!({
            "requests": self.requests,
            "failed": self.failed(),
            "failures": self.failures,
            "elapsed_seconds": self.elapsed.as_secs_f64(),
            "requests_per_second": self.rate(),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "bytes_in_per_second": per_second(self.bytes_in, self.elapsed),
            "reconnects": self.reconnects,
            "latency_microseconds": latency,
        })
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[allow(
    clippy::cast_precision_loss,
    reason = "counts of one run are far below 2^53"
)]
fn per_second(count: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() {
        0.0
    } else {
        count as f64 / elapsed.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(latencies: &[u64]) -> Outcome {
        let mut latency = Histogram::new(3).unwrap();
        latencies
            .iter()
            .for_each(|nanos| latency.record(*nanos).unwrap());
        Outcome {
            requests: latency.len(),
            failures: [("timeout".to_owned(), 2), ("status 503".to_owned(), 1)].into(),
            elapsed: Duration::from_secs(2),
            bytes_in: 4000,
            bytes_out: 0,
            reconnects: 0,
            latency,
        }
    }

    #[test]
    fn json_has_rates_and_percentiles_in_order() {
        let text = outcome(&[1_000, 2_000, 3_000, 1_000_000])
            .to_json()
            .to_string();
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["requests_per_second"], 2.0);
        assert_eq!(json["bytes_in_per_second"], 2000.0);
        assert_eq!(
            (&json["failed"], &json["failures"]["timeout"]),
            (&json!(3), &json!(2))
        );
        let at = |key: &str| json["latency_microseconds"][key].as_f64().unwrap();
        let keys = ["p50", "p75", "p90", "p99", "p99.9", "max"];
        assert!(
            keys.windows(2).all(|pair| at(pair[0]) <= at(pair[1])),
            "{text}"
        );
        assert!(
            (at("p50") - 2.0).abs() < 0.01 && (at("max") - 1000.0).abs() < 1.0,
            "{text}"
        );
    }

    #[test]
    fn nothing_measured_is_zero_and_no_fault() {
        let mut nothing = outcome(&[]);
        nothing.elapsed = Duration::ZERO;
        assert_eq!(
            (nothing.rate(), nothing.max(), nothing.mean()),
            (0.0, Duration::ZERO, Duration::ZERO)
        );
        assert_eq!(nothing.to_json()["latency_microseconds"]["p99.9"], 0.0);
    }
}
