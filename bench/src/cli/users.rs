//! `cloudgo-bench users`.

use std::process::ExitCode;

use cloudgo_bench::load::Progress;
use cloudgo_bench::users::{Row, USERS, Users};

use crate::cli::{Fault, request, show};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    request: request::Args,
    /// Numbers of users at once, one row for each
    #[arg(long, value_delimiter = ',', default_values_t = USERS, value_name = "N,N,…")]
    users: Vec<usize>,
    /// Requests of each user, one after the other, each on its own connection
    #[arg(long, default_value_t = 20, value_name = "M")]
    requests: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Succeeds if no request failed.
    pub(super) fn run(&self) -> Result<ExitCode, Fault> {
        let (target, request) = self.request.resolve()?;
        let job = Users {
            target,
            request,
            requests: self.requests,
            timeout: self.request.timeout,
        };
        if !self.json {
            show::line(Row::HEAD)?;
        }
        let mut rows = Vec::new();
        for users in &self.users {
            let row = job.measure(*users, &Progress::on_terminal())?;
            if !self.json {
                show::line(&row)?;
            }
            rows.push(row);
        }
        if self.json {
            show::json(&rows.iter().map(Row::to_json).collect())?;
        }
        let failed = rows.iter().any(|row| !row.failures.is_empty());
        Ok(if failed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}
