//! One measurement: a server is started, loaded, and stopped. What goes wrong is its result.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::{Comparison, Sample};
use crate::external::{self, Call, ExternalError};
use crate::load::{self, LoadError, Outcome, Pace, Plan, Progress};
use crate::scenario::{Client, Contestant, Load, Measure, Metric, Scenario};
use crate::server::{Cpu, Server, ServerError};

/// Who is measured, and how.
#[derive(Debug)]
pub(super) struct Measurement<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) scenario: &'a Scenario,
    pub(super) contestant: &'a Contestant,
    pub(super) load: Load,
    /// Requests per second, for an open loop.
    pub(super) rate: Result<f64, String>,
}

/// What was measured, at one point of the axis if there is one.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) point: Option<usize>,
    pub(super) sample: Sample,
    pub(super) latency: Option<Histogram<u64>>,
}

/// Why a measurement has no figures.
#[derive(Debug, thiserror::Error)]
pub(super) enum MeasureError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    External(#[from] ExternalError),
    #[error("{what}")]
    Connection {
        what: String,
        source: std::io::Error,
    },
    #[error("{0}")]
    Other(String),
}

impl MeasureError {
    pub(super) fn connection(what: &str) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.to_owned();
        move |source| Self::Connection { what, source }
    }

    /// With its causes, on one line.
    fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

impl Measurement<'_> {
    /// Measures. A failure is a sample that says so.
    pub(super) fn take(&self) -> Vec<Taken> {
        match self.try_take() {
            Ok(taken) => taken,
            Err(error) => {
                let failed = |point| Taken {
                    point,
                    sample: Sample::failed(error.chain()),
                    latency: None,
                };
                match &self.scenario.kind {
                    Measure::Scaling { connections } => {
                        connections.iter().copied().map(Some).map(failed).collect()
                    }
                    _ => vec![failed(None)],
                }
            }
        }
    }

    fn try_take(&self) -> Result<Vec<Taken>, MeasureError> {
        let taken = match &self.scenario.kind {
            Measure::Throughput {
                client: Client::Own,
            } => self.throughput()?,
            Measure::Throughput { client } => self.external(*client)?,
            Measure::Rate { .. } => self.open_loop()?,
            Measure::Scaling { connections } => return self.scaling(connections),
            Measure::Idle { connections } => self.idle(*connections)?,
            Measure::Sleepers { requests } => self.sleepers(*requests)?,
            Measure::Start { times, .. } => self.starts(*times)?,
        };
        Ok(vec![taken])
    }

    /// Requests per second in a closed loop.
    pub(super) fn maximum(&self) -> Result<f64, String> {
        let taken = self.throughput().map_err(|error| error.chain())?;
        let rate = taken.sample.figures.get(&Metric::Rate).copied();
        match rate {
            Some(rate) if taken.sample.is_sound() => Ok(rate),
            _ => Err("requests failed".to_owned()),
        }
    }

    fn throughput(&self) -> Result<Taken, MeasureError> {
        let mut server = self.start()?;
        let plan = self.plan(server.address(), self.load.connections)?;
        let taken = measured(&mut server, &plan)?;
        server.stop()?;
        Ok(taken)
    }

    fn open_loop(&self) -> Result<Taken, MeasureError> {
        let rate = self.rate.clone().map_err(MeasureError::Other)?;
        let mut server = self.start()?;
        let mut plan = self.plan(server.address(), self.load.connections)?;
        plan.pace = Pace::Open { rate };
        let taken = measured(&mut server, &plan)?;
        server.stop()?;
        Ok(taken)
    }

    fn scaling(&self, connections: &[usize]) -> Result<Vec<Taken>, MeasureError> {
        let mut server = self.start()?;
        let mut all = Vec::new();
        for point in connections.iter().copied() {
            let plan = self.plan(server.address(), point)?;
            let taken = measured(&mut server, &plan)?;
            all.push(Taken {
                point: Some(point),
                ..taken
            });
        }
        server.stop()?;
        Ok(all)
    }

    fn external(&self, client: Client) -> Result<Taken, MeasureError> {
        let mut server = self.start()?;
        let plan = self.plan(server.address(), self.load.connections)?;
        warm_up(&plan)?;
        let mut call = Call {
            target: server.address(),
            path: self.path(),
            connections: self.load.connections,
            duration: Duration::from_secs(1),
        };
        call.duration = self.load.duration;
        let before = server.cpu()?;
        let table = external::run(
            client,
            &call,
            &self.comparison.places,
            &self.comparison.family,
        );
        let after = server.cpu()?;
        let table = table?;
        server.stop()?;
        let mut figures = BTreeMap::from([(Metric::Rate, table.rate)]);
        for (metric, percent) in [(Metric::P50, 50.0), (Metric::P99, 99.0)] {
            let mut latencies = table.latencies.iter();
            if let Some((_, value)) = latencies.find(|(at, _)| *at == percent) {
                figures.insert(metric, *value);
            }
        }
        insert_cpu(&mut figures, before, after, table.requests);
        Ok(Taken {
            point: None,
            sample: Sample {
                figures,
                requests: table.requests,
                failures: table.failures.into_iter().collect(),
                table: Some(table.text),
                ..Sample::default()
            },
            latency: None,
        })
    }

    pub(super) fn start(&self) -> Result<Server, ServerError> {
        let launch = self.contestant.launch(self.scenario.code());
        let comparison = self.comparison;
        Server::start(&launch, &comparison.places, &comparison.family)
    }

    pub(super) fn plan(
        &self,
        target: SocketAddr,
        connections: usize,
    ) -> Result<Plan, MeasureError> {
        let templates = self.scenario.templates().map_err(MeasureError::Other)?;
        Ok(Plan {
            protocol: self.load.protocol,
            connections,
            streams: self.load.streams,
            warmup: self.load.warmup,
            duration: self.load.duration,
            ..Plan::new(target, templates)
        })
    }

    /// The path of the first request.
    pub(super) fn path(&self) -> &str {
        let first = self.scenario.requests.first();
        first.map_or("/", |request| request.path())
    }
}

/// Warms up and measures. The two are separate runs, so that processor time is only that of the second.
pub(super) fn measured(server: &mut Server, plan: &Plan) -> Result<Taken, MeasureError> {
    warm_up(plan)?;
    let plan = Plan {
        warmup: Duration::ZERO,
        ..plan.clone()
    };
    let before = server.cpu()?;
    let outcome = load::run(&plan, &Progress::hidden());
    // That the server has died explains whatever the client saw.
    let after = server.cpu()?;
    let mut taken = taken(outcome?, before, after);
    if !taken.sample.is_sound() {
        taken.sample.log = Some(server.log());
    }
    Ok(taken)
}

fn warm_up(plan: &Plan) -> Result<(), MeasureError> {
    if plan.warmup.is_zero() {
        return Ok(());
    }
    let warmup = Plan {
        warmup: Duration::ZERO,
        duration: plan.warmup,
        ..plan.clone()
    };
    load::run(&warmup, &Progress::hidden())?;
    Ok(())
}

fn taken(outcome: Outcome, before: Cpu, after: Cpu) -> Taken {
    let micros = |percent| outcome.percentile(percent).as_secs_f64() * 1e6;
    let mut figures = BTreeMap::from([
        (Metric::Rate, outcome.rate()),
        (Metric::P50, micros(50.0)),
        (Metric::P90, micros(90.0)),
        (Metric::P99, micros(99.0)),
        (Metric::P999, micros(99.9)),
        (Metric::Max, outcome.max().as_secs_f64() * 1e6),
    ]);
    let served = outcome.requests + outcome.failed();
    insert_cpu(&mut figures, before, after, served);
    let mut sample = Sample {
        figures,
        requests: outcome.requests,
        failures: outcome.failures,
        ..Sample::default()
    };
    if sample.requests == 0 && sample.failures.is_empty() {
        sample.error = Some("there was no answer at all".to_owned());
    }
    Taken {
        point: None,
        sample,
        latency: Some(outcome.latency),
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn insert_cpu(figures: &mut BTreeMap<Metric, f64>, before: Cpu, after: Cpu, requests: u64) {
    if requests == 0 {
        return;
    }
    let used = after.total().saturating_sub(before.total());
    figures.insert(Metric::Cpu, used.as_secs_f64() * 1e6 / requests as f64);
}
