//! Time from the start of the process to the end of the first answer.

use super::measure::{MeasureError, Measurement, Taken};
use super::raw::Raw;
use super::{Sample, stats};
use crate::scenario::{Measure, Metric};
use crate::server::Code;

impl Measurement<'_> {
    /// The median of some starts. With a cache, one more start before them fills it.
    pub(super) fn starts(&self, times: u32) -> Result<Taken, MeasureError> {
        let times = if self.comparison.options.quick {
            times.min(5)
        } else {
            times
        };
        if !matches!(
            self.scenario.kind,
            Measure::Start {
                code: Code::Compiled,
                ..
            }
        ) {
            self.first_answer()?;
        }
        let mut seconds = Vec::new();
        let mut memory = Vec::new();
        for _ in 0..times.max(1) {
            let (time, rss) = self.first_answer()?;
            seconds.push(time);
            memory.push(rss);
        }
        let figures = [
            (Metric::FirstAnswer, stats::median(&seconds)),
            (Metric::Rss, stats::median(&memory)),
        ];
        let figures = figures
            .into_iter()
            .filter_map(|(metric, value)| Some((metric, value?)));
        Ok(Taken {
            point: None,
            sample: Sample {
                figures: figures.collect(),
                requests: u64::from(times),
                ..Sample::default()
            },
            latency: None,
        })
    }

    /// Milliseconds, and bytes after the answer.
    #[allow(clippy::cast_precision_loss, reason = "bytes are far below 2^53")]
    fn first_answer(&self) -> Result<(f64, f64), MeasureError> {
        let failed = MeasureError::connection;
        let mut server = self.start()?;
        let mut connection =
            Raw::connect(server.address()).map_err(failed("cannot open a connection"))?;
        connection
            .ask(self.path())
            .map_err(failed("cannot send a request"))?;
        let answer = connection.answer();
        let time = server.started().elapsed().as_secs_f64() * 1000.0;
        server.check()?;
        let (status, _) = answer.map_err(failed("no answer"))?;
        if status != 200 {
            return Err(MeasureError::Other(format!(
                "the first answer is a {status}"
            )));
        }
        let rss = server.memory()?.rss as f64;
        drop(connection);
        server.stop()?;
        Ok((time, rss))
    }
}
