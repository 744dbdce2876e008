//! What people and programs read on standard output, and faults on standard error.

use std::error::Error;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::time::Duration;

use bytesize::ByteSize;
use serde_json::Value;

use cloudgo_bench::compare::ScenarioResults;
use cloudgo_bench::load::{Outcome, PERCENTILES, Pace, Plan, Protocol};
use cloudgo_bench::report::scenario_table;

/// One line. A reader that has seen enough, such as `head`, is no fault.
pub(super) fn line(text: impl Display) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// JSON that people can read too.
pub(super) fn json(value: &Value) -> io::Result<()> {
    line(format_args!("{value:#}"))
}

/// What ended a command, with its causes.
pub(super) fn fault(fault: &(dyn Error + 'static)) {
    let mut text = format!("error: {fault}");
    let mut cause = fault.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    // Without standard error there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The table of a scenario, and what was wrong.
pub(super) fn scenario(found: &ScenarioResults) -> io::Result<()> {
    line(format_args!("{}: {}", found.name, found.load))?;
    line(scenario_table(found).plain())?;
    for (name, reason) in &found.missing {
        line(format_args!("left out: {name}, because {reason}"))?;
    }
    for row in &found.rows {
        for problem in row.problems() {
            line(format_args!("✗ {} {problem}", row.contestant))?;
        }
    }
    Ok(())
}

/// The result of a run of load.
pub(super) fn outcome(plan: &Plan, outcome: &Outcome) -> io::Result<()> {
    line(Table { plan, outcome })
}

struct Table<'a> {
    plan: &'a Plan,
    outcome: &'a Outcome,
}

impl Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, outcome } = self;
        self.title(f)?;
        let (answered, elapsed) = (outcome.requests, outcome.elapsed.as_secs_f64());
        writeln!(
            f,
            "requests/s  {:>12.2}   {answered} answered in {elapsed:.2} s",
            outcome.rate()
        )?;
        write!(
            f,
            "transfer    {} in, {} out",
            self.each_second(outcome.bytes_in),
            self.each_second(outcome.bytes_out)
        )?;
        if outcome.reconnects > 0 {
            write!(f, "; {} connections opened again", outcome.reconnects)?;
        }
        writeln!(f)?;
        let from = if plan.pace == Pace::Closed {
            "its start"
        } else {
            "its scheduled instant"
        };
        writeln!(f, "latency of a request from {from}")?;
        for percent in PERCENTILES {
            let label = format!("p{percent}");
            writeln!(f, "  {label:<8}{:>14}", Short(outcome.percentile(percent)))?;
        }
        writeln!(f, "  max     {:>14}", Short(outcome.max()))?;
        writeln!(f, "  mean    {:>14}", Short(outcome.mean()))?;
        write!(f, "failures    {:>12}", outcome.failed())?;
        for (kind, count) in &outcome.failures {
            write!(f, "\n  {count} {kind}")?;
        }
        Ok(())
    }
}

impl Table<'_> {
    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        write!(f, "{} connections to {}", plan.connections, plan.target)?;
        match plan.protocol {
            Protocol::Http1 => f.write_str(", HTTP/1.1")?,
            Protocol::Http1PerRequest => f.write_str(", HTTP/1.1, one for each request")?,
            Protocol::Http2 => write!(f, ", HTTP/2 with {} streams each", plan.streams)?,
        }
        if let Pace::Open { rate } = plan.pace {
            write!(f, ", {rate} requests/s by schedule")?;
        }
        writeln!(f, ", {} client threads", plan.threads)
    }

    fn each_second(&self, bytes: u64) -> impl Display + use<> {
        let nanos = self.outcome.elapsed.as_nanos().max(1);
        let rate = u128::from(bytes) * 1_000_000_000 / nanos;
        format!("{}/s", ByteSize::b(u64::try_from(rate).unwrap_or(u64::MAX)))
    }
}

/// A time in the unit that suits it.
struct Short(Duration);

impl Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_secs_f64() * 1e6;
        let text = match micros {
            small if small < 1e3 => format!("{small:.1} µs"),
            middle if middle < 1e6 => format!("{:.3} ms", middle / 1e3),
            large => format!("{:.3} s", large / 1e6),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_suits_them() {
        let shown = |micros| Short(Duration::from_micros(micros)).to_string();
        assert_eq!(
            [shown(999), shown(1_000), shown(2_500_000)],
            ["999.0 µs", "1.000 ms", "2.500 s"]
        );
    }
}
