//! The table of N users at once, each making M requests, each request on its own connection, twice.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::load::{self, LoadError, Outcome, Plan, Progress, Protocol, Template};

/// The numbers of users unless others are asked for.
pub const USERS: [usize; 9] = [5, 10, 20, 50, 80, 100, 150, 200, 250];

/// The longest that one row may take.
const LONGEST: Duration = Duration::from_secs(600);

/// What each user does.
#[derive(Clone, Debug)]
pub struct Users {
    /// The server.
    pub target: SocketAddr,
    /// The request.
    pub request: Template,
    /// How often each user makes it.
    pub requests: u64,
    /// The longest that one request may take.
    pub timeout: Duration,
}

/// One number of users, measured twice.
#[derive(Clone, Debug)]
pub struct Row {
    /// Users at once.
    pub users: usize,
    /// Requests of each user.
    pub requests: u64,
    /// From the first connection to the last answer, in both runs.
    pub totals: [Duration; 2],
    /// Requests of both runs that failed, by kind.
    pub failures: BTreeMap<String, u64>,
}

impl Users {
    /// Measures one number of users.
    pub fn measure(&self, users: usize, progress: &Progress) -> Result<Row, LoadError> {
        let plan = Plan {
            protocol: Protocol::Http1PerRequest,
            connections: users,
            warmup: Duration::ZERO,
            duration: LONGEST,
            requests_each: Some(self.requests),
            timeout: self.timeout,
            ..Plan::new(self.target, vec![self.request.clone()])
        };
        let runs: [Outcome; 2] = [load::run(&plan, progress)?, load::run(&plan, progress)?];
        let mut failures = BTreeMap::new();
        for (kind, count) in runs.iter().flat_map(|run| &run.failures) {
            *failures.entry(kind.clone()).or_default() += count;
        }
        Ok(Row {
            users,
            requests: self.requests,
            totals: runs.map(|run| run.elapsed),
            failures,
        })
    }
}

impl Row {
    /// The mean of both totals.
    pub fn mean_total(&self) -> Duration {
        (self.totals[0] + self.totals[1]) / 2
    }

    /// The mean total shared out over all requests of all users.
    pub fn mean_per_request(&self) -> Duration {
        let requests = self.requests.saturating_mul(self.users as u64).max(1);
        self.mean_total() / u32::try_from(requests).unwrap_or(u32::MAX)
    }

    /// The row as JSON: times in milliseconds.
    pub fn to_json(&self) -> Value {
        json!({
            "users": self.users,
            "requests_each": self.requests,
            "totals_milliseconds": self.totals.map(millis),
            "mean_total_milliseconds": millis(self.mean_total()),
            "mean_per_request_milliseconds": millis(self.mean_per_request()),
            "failures": self.failures,
        })
    }

    /// The line above the rows.
    pub const HEAD: &str =
        "users   total time 1   total time 2     mean total   mean per request   failures";
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.totals.map(millis);
        let (mean, each) = (millis(self.mean_total()), millis(self.mean_per_request()));
        let failed: u64 = self.failures.values().sum();
        write!(
            f,
            "{:>5}{first:>12.3} ms{second:>12.3} ms{mean:>12.3} ms{each:>16.4} ms{failed:>11}",
            self.users
        )
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let totals = [Duration::from_micros(47_798), Duration::from_micros(64_333)];
        Row {
            users: 5,
            requests: 20,
            totals,
            failures: BTreeMap::new(),
        }
    }

    #[test]
    fn a_row_shows_both_runs_and_their_means() {
        let text = row().to_string();
        let shown: Vec<_> = text.split_whitespace().collect();
        assert_eq!(
            shown,
            [
                "5", "47.798", "ms", "64.333", "ms", "56.066", "ms", "0.5607", "ms", "0"
            ]
        );
        assert_eq!(text.len(), Row::HEAD.len());
    }

    #[test]
    fn a_row_as_json_has_the_same_numbers() {
        let json = row().to_json();
        assert_eq!(
            json["mean_total_milliseconds"].as_f64().unwrap().round(),
            56.0
        );
        assert_eq!(json["users"], 5);
    }
}
