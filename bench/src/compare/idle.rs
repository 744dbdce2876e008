//! Memory of idle keep-alive connections, and what is left of the throughput beside them.

use std::time::Duration;

use super::measure::{MeasureError, Measurement, Taken, measured};
use crate::load::{self, Plan, Progress, idle};
use crate::scenario::Metric;
use crate::server::Server;

/// Load before the first look at the memory, so that what a server allocates once is not counted as part of its
/// idle connections.
const FIRST_LOAD: Duration = Duration::from_millis(200);

impl Measurement<'_> {
    /// Memory first and throughput without idle connections last: what earlier load leaves behind would hide what
    /// they take.
    #[allow(clippy::cast_precision_loss, reason = "bytes are far below 2^53")]
    pub(super) fn idle(&self, connections: usize) -> Result<Taken, MeasureError> {
        let mut server = self.start()?;
        let plan = self.plan(server.address(), self.load.connections)?;
        let first = Plan {
            warmup: Duration::ZERO,
            duration: FIRST_LOAD,
            ..plan.clone()
        };
        load::run(&first, &Progress::hidden())?;
        let before = server.memory()?;
        let held = self.hold(&mut server, &plan, connections)?;
        let memory = server.memory()?;
        let beside = measured(&mut server, &plan)?;
        let alive = held.alive();
        drop(held);
        if alive < connections {
            let lost = connections - alive;
            let what = format!("the server closed {lost} of {connections} idle connections");
            return Err(MeasureError::Other(what));
        }
        let mut alone = measured(&mut server, &plan)?;
        server.stop()?;
        let rate = |taken: &Taken| taken.sample.figures.get(&Metric::Rate).copied();
        let rate_beside = rate(&beside).unwrap_or_default();
        let kept = rate_beside / rate(&alone).unwrap_or(f64::NAN);
        let more = memory.rss.saturating_sub(before.rss) as f64;
        alone.sample.figures.extend([
            (Metric::RssPerConnection, more / connections.max(1) as f64),
            (Metric::Rss, memory.rss as f64),
            (Metric::RateBeside, rate_beside),
            (Metric::Kept, kept),
        ]);
        for (kind, count) in beside.sample.failures {
            *alone.sample.failures.entry(kind).or_default() += count;
        }
        alone.sample.log = alone.sample.log.or(beside.sample.log);
        Ok(Taken {
            latency: None,
            ..alone
        })
    }

    fn hold(
        &self,
        server: &mut Server,
        plan: &Plan,
        connections: usize,
    ) -> Result<idle::Held, MeasureError> {
        let first = plan.requests.first();
        let template =
            first.ok_or_else(|| MeasureError::Other("there is no request".to_owned()))?;
        let held = idle::hold(server.address(), connections, template);
        server.check()?;
        held.map_err(|error| {
            let log = server.log();
            let line = log.lines().last().unwrap_or_default();
            MeasureError::Other(format!("{error}; the server's last line was: {line}"))
        })
    }
}
