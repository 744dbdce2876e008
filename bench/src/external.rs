//! `wrk` and `ab` as clients: called, their tables read and kept as they are.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::scenario::Client;
use crate::server::{Family, Places, ServerError, complete};

/// What a client of others measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Requests per second.
    pub rate: f64,
    /// Answers that count.
    pub requests: u64,
    /// Percentile and microseconds, as far as it prints them.
    pub latencies: Vec<(f64, f64)>,
    /// Failures by kind, without the kinds that did not occur.
    pub failures: Vec<(String, u64)>,
    /// Its own output.
    pub text: String,
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum ExternalError {
    /// The program is missing, or it failed.
    #[error(transparent)]
    Run(#[from] ServerError),
    /// It printed something that is no table.
    #[error("{client} printed no `{line}` line")]
    Table {
        /// The program.
        client: Client,
        /// The line that is missing.
        line: &'static str,
    },
}

/// Runs a client of others for so long: one thread, keep-alive.
///
/// # Errors
/// It is missing, fails, or prints no table.
pub fn run(
    client: Client,
    call: &Call<'_>,
    places: &Places,
    family: &Family,
) -> Result<Table, ExternalError> {
    let name = client.to_string();
    let program = places.find(&name).ok_or_else(|| ServerError::Missing {
        what: format!("`{name}`"),
        hint: match client {
            Client::Ab => "install apache2-utils".to_owned(),
            Client::Own | Client::Wrk => format!("install {name}"),
        },
    })?;
    let mut command = Command::new(program);
    let seconds = call.duration.as_secs().max(1);
    let url = format!("http://{}{}", call.target, call.path);
    match client {
        Client::Ab => {
            // `-t` alone stops after 50 000 requests; the number must come after it.
            command.args(["-q", "-k", "-c", &call.connections.to_string()]);
            command.args(["-t", &seconds.to_string(), "-n", "5000000"]);
        }
        Client::Own | Client::Wrk => {
            command.args(["-t1", "--latency", &format!("-c{}", call.connections)]);
            command.arg(format!("-d{seconds}s"));
        }
    }
    let (text, _) = complete(&name, command.arg(url), family)?;
    match client {
        Client::Ab => ab(&text),
        Client::Own | Client::Wrk => wrk(&text),
    }
}

/// What is asked of a client.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The server.
    pub target: SocketAddr,
    /// Path and query of the one request.
    pub path: &'a str,
    /// Connections at a time.
    pub connections: usize,
    /// How long, in whole seconds, at least one.
    pub duration: Duration,
}

/// Reads the output of `wrk --latency`.
///
/// # Errors
/// A line that it always prints is missing.
pub fn wrk(text: &str) -> Result<Table, ExternalError> {
    let missing = |line| ExternalError::Table {
        client: Client::Wrk,
        line,
    };
    let rate = after(text, "Requests/sec:").and_then(number);
    let requests = text
        .lines()
        .find_map(|line| line.split_once(" requests in "))
        .and_then(|(count, _)| count.trim().parse().ok());
    let requests: u64 = requests.ok_or(missing("requests in"))?;
    let mut failures = Vec::new();
    if let Some(count) = after(text, "Non-2xx or 3xx responses:").and_then(number_whole) {
        failures.push(("status".to_owned(), count));
    }
    for part in after(text, "Socket errors:").unwrap_or_default().split(',') {
        if let Some((kind, count)) = part.trim().split_once(' ')
            && let Ok(count) = count.parse()
        {
            failures.push((kind.to_owned(), count));
        }
    }
    failures.retain(|(_, count)| *count > 0);
    let bad: u64 = failures
        .iter()
        .filter_map(|(kind, count)| (kind == "status").then_some(count))
        .sum();
    Ok(Table {
        rate: rate.ok_or(missing("Requests/sec"))?,
        requests: requests.saturating_sub(bad),
        latencies: percentiles(text, wrk_time),
        failures,
        text: text.trim_end().to_owned(),
    })
}

/// Reads the output of `ab`.
///
/// # Errors
/// A line that it always prints is missing.
pub fn ab(text: &str) -> Result<Table, ExternalError> {
    let missing = |line| ExternalError::Table {
        client: Client::Ab,
        line,
    };
    let rate = after(text, "Requests per second:").and_then(number);
    let complete = after(text, "Complete requests:").and_then(number_whole);
    let failed = after(text, "Failed requests:").and_then(number_whole);
    let complete: u64 = complete.ok_or(missing("Complete requests"))?;
    let failed = failed.ok_or(missing("Failed requests"))?;
    let status = after(text, "Non-2xx responses:").and_then(number_whole);
    let mut failures = vec![
        ("failed".to_owned(), failed),
        ("status".to_owned(), status.unwrap_or(0)),
    ];
    failures.retain(|(_, count)| *count > 0);
    let bad: u64 = failures.iter().map(|(_, count)| count).sum();
    let milliseconds = |text: &str| text.parse::<f64>().ok().map(|value| value * 1000.0);
    Ok(Table {
        rate: rate.ok_or(missing("Requests per second"))?,
        requests: complete.saturating_sub(bad),
        latencies: percentiles(text, milliseconds),
        failures,
        text: table_of_ab(text),
    })
}

/// Without the greeting, which is the same each time.
fn table_of_ab(text: &str) -> String {
    let start = text.find("Server Software:").unwrap_or(0);
    text.get(start..).unwrap_or(text).trim_end().to_owned()
}

fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(label));
    line.map(str::trim)
}

fn number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

fn number_whole(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Lines such as `  50%  2.72ms`.
fn percentiles(text: &str, time: impl Fn(&str) -> Option<f64>) -> Vec<(f64, f64)> {
    let line = |line: &str| {
        let (percent, rest) = line.trim().split_once('%')?;
        let value = rest.split_whitespace().next()?;
        Some((percent.parse().ok()?, time(value)?))
    };
    text.lines().filter_map(line).collect()
}

/// `233.00us`, `2.72ms`, `1.10s`, `1.50m` as microseconds.
fn wrk_time(text: &str) -> Option<f64> {
    let unit = text.find(|one: char| one.is_ascii_alphabetic())?;
    let (value, unit) = text.split_at_checked(unit)?;
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        "h" => 3600e6,
        _ => return None,
    };
    value.parse::<f64>().ok().map(|value| value * factor)
}

#[cfg(test)]
mod tests;
