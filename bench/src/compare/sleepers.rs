//! Memory while many requests sleep in their guests.

use std::time::Duration;

use super::Sample;
use super::measure::{MeasureError, Measurement, Taken};
use super::raw::Raw;
use crate::load::ExpectBody;
use crate::scenario::Metric;
use crate::server::Server;

/// All requests sleep when the server has computed for less than a tenth of so long.
const QUIET: Duration = Duration::from_millis(100);

impl Measurement<'_> {
    #[allow(clippy::cast_precision_loss, reason = "bytes are far below 2^53")]
    pub(super) fn sleepers(&self, requests: usize) -> Result<Taken, MeasureError> {
        let mut server = self.start()?;
        let plan = self.plan(server.address(), requests)?;
        let expected = plan.requests.first().map(|first| first.expect.body.clone());
        let failed = MeasureError::connection;
        let mut sleepers = (0..requests)
            .map(|_| Raw::connect(server.address()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed("cannot open a connection"))?;
        for sleeper in &mut sleepers {
            sleeper
                .ask(self.path())
                .map_err(failed("cannot send a request"))?;
        }
        until_quiet(&mut server)?;
        let memory = server.memory()?;
        for sleeper in &mut sleepers {
            if sleeper.is_silent().map_err(failed("a connection broke"))? {
                continue;
            }
            let came = match sleeper.answer() {
                Ok((status, _)) => format!("status {status}"),
                Err(error) => error.to_string(),
            };
            let log = server.log();
            let line = log.lines().next().unwrap_or_default();
            let what = format!(
                "an answer came before all requests slept: {came}; the server's log has: {line}"
            );
            return Err(MeasureError::Other(what));
        }
        let mut sample = Sample::default();
        sample.figures.extend([
            (Metric::Rss, memory.rss as f64),
            (Metric::Pss, memory.pss as f64),
        ]);
        for sleeper in &mut sleepers {
            let kind = match sleeper.answer() {
                Err(error) => error.to_string(),
                Ok((200, body)) if is_expected(expected.as_ref(), &body) => {
                    sample.requests += 1;
                    continue;
                }
                Ok((200, _)) => "another body".to_owned(),
                Ok((status, _)) => format!("status {status}"),
            };
            *sample.failures.entry(kind).or_default() += 1;
        }
        server.stop()?;
        Ok(Taken {
            point: None,
            sample,
            latency: None,
        })
    }
}

fn until_quiet(server: &mut Server) -> Result<(), MeasureError> {
    let mut before = server.cpu()?.total();
    loop {
        server.watch(QUIET)?;
        let now = server.cpu()?.total();
        if now.saturating_sub(before) <= QUIET / 10 {
            return Ok(());
        }
        before = now;
    }
}

fn is_expected(expected: Option<&ExpectBody>, body: &[u8]) -> bool {
    match expected {
        Some(ExpectBody::Bytes(bytes)) => bytes == body,
        Some(ExpectBody::Length(length)) => *length == body.len() as u64,
        Some(ExpectBody::Any) | None => true,
    }
}
