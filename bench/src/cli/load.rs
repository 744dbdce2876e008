//! `cloudgo-bench load`.

use std::process::ExitCode;
use std::time::Duration;

use cloudgo_bench::load::{self, Pace, Plan, Progress, Protocol};

use crate::cli::{Fault, request, show};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    request: request::Args,
    /// Connections at a time
    #[arg(short, long, default_value_t = 64, value_name = "N")]
    connections: usize,
    /// The recorded time
    #[arg(short, long, default_value = "5s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// Load before the recorded time
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration)]
    warmup: Duration,
    /// Requests per second by a fixed schedule, whatever the server does; latency counts from the scheduled instant
    #[arg(long, value_name = "R")]
    rate: Option<f64>,
    /// HTTP/2 with prior knowledge
    #[arg(long, conflicts_with = "per_request")]
    h2: bool,
    /// HTTP/2: requests at a time on each connection
    #[arg(long, default_value_t = 1, value_name = "N", requires = "h2")]
    streams: usize,
    /// A new connection for each request
    #[arg(long)]
    per_request: bool,
    /// End after so many requests, if the duration has not ended before
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Threads of the client
    #[arg(long, default_value_t = 1, value_name = "N")]
    threads: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Succeeds if any request did.
    pub(super) fn run(&self) -> Result<ExitCode, Fault> {
        let plan = self.plan()?;
        let outcome = load::run(&plan, &Progress::on_terminal())?;
        if self.json {
            show::json(&outcome.to_json())?;
        } else {
            show::outcome(&plan, &outcome)?;
        }
        Ok(if outcome.requests > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    fn plan(&self) -> Result<Plan, Fault> {
        let (target, template) = self.request.resolve()?;
        let protocol = match (self.h2, self.per_request) {
            (true, _) => Protocol::Http2,
            (_, true) => Protocol::Http1PerRequest,
            _ => Protocol::Http1,
        };
        Ok(Plan {
            protocol,
            connections: self.connections,
            streams: self.streams,
            pace: self.rate.map_or(Pace::Closed, |rate| Pace::Open { rate }),
            warmup: self.warmup,
            duration: self.duration,
            requests_limit: self.requests,
            timeout: self.request.timeout,
            threads: self.threads,
            ..Plan::new(target, vec![template])
        })
    }
}
