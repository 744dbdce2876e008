//! The comparison: scenario by scenario, rounds A B A B, every server started anew for each measurement and ended
//! after it. `rounds` has the order, `measure` starts a server and measures it, `stats` and `results` draw
//! the conclusions. What is sent comes from `scenario`, how it looks is up to `report`. Start at [`Comparison`].

mod idle;
mod measure;
mod raw;
mod results;
mod rounds;
mod sleepers;
mod start;
mod stats;

pub use self::results::{Results, Row, Sample, ScenarioResults};
pub use self::rounds::order;
pub use self::stats::{Summary, median, ratios};

use std::time::Duration;

use hdrhistogram::Histogram;
use indicatif::ProgressBar;

use self::measure::{Measurement, Taken};
use crate::scenario::{Contestant, Load, Measure, Metric, Scenario};
use crate::server::{Family, Kind, Places, ServerError};

/// What can be set for all scenarios.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Rounds of each scenario.
    pub rounds: u32,
    /// The recorded time of each measurement, if not the scenario's own.
    pub duration: Option<Duration>,
    /// Short times.
    pub quick: bool,
}

/// Runs scenarios.
#[derive(Debug)]
pub struct Comparison {
    /// Where things are.
    pub places: Places,
    /// Every process that it starts.
    pub family: Family,
    /// For all scenarios.
    pub options: Options,
    /// Position and length are set in milliseconds.
    pub bar: ProgressBar,
    /// The command that runs one scenario, up to its name.
    pub command: String,
}

/// The longest recorded time with `--quick`.
const QUICK_DURATION: Duration = Duration::from_millis(1500);
const QUICK_WARMUP: Duration = Duration::from_millis(500);

/// What starting, connecting and stopping take beside the load, for the progress bar.
const AROUND: Duration = Duration::from_millis(300);

impl Comparison {
    /// How long some scenarios will take, about.
    #[must_use]
    pub fn expected(&self, scenarios: &[Scenario]) -> Duration {
        scenarios
            .iter()
            .map(|scenario| {
                let (present, _) = self.present(scenario);
                let one = self.expected_each(scenario) * u32::try_from(present.len()).unwrap_or(1);
                let leader = match scenario.kind {
                    Measure::Rate { .. } => self.expected_each(scenario),
                    _ => Duration::ZERO,
                };
                (one + leader) * self.options.rounds
            })
            .sum()
    }

    fn expected_each(&self, scenario: &Scenario) -> Duration {
        let load = self.load(scenario);
        let once = load.warmup + load.duration + AROUND;
        match &scenario.kind {
            Measure::Throughput { .. } | Measure::Rate { .. } => once,
            Measure::Scaling { connections } => {
                once * u32::try_from(connections.len()).unwrap_or(1)
            }
            Measure::Idle { .. } => once * 2 + Duration::from_secs(2),
            Measure::Sleepers { .. } => Duration::from_secs(9),
            Measure::Start { times, .. } => Duration::from_millis(100) * *times,
        }
    }

    /// The load of a scenario with what is set for all.
    fn load(&self, scenario: &Scenario) -> Load {
        let mut load = scenario.load.clone();
        if self.options.quick {
            load.duration = load.duration.min(QUICK_DURATION);
            load.warmup = load.warmup.min(QUICK_WARMUP);
        }
        load.duration = self.options.duration.unwrap_or(load.duration);
        load
    }

    /// Runs one scenario. What fails is in the results.
    ///
    /// # Errors
    /// Only that the run is being ended.
    pub fn run(&self, scenario: &Scenario) -> Result<ScenarioResults, ServerError> {
        let (present, missing) = self.present(scenario);
        let mut results = self.empty(scenario, missing);
        let mut histograms = Vec::new();
        for round in 1..=self.options.rounds {
            let at_rate = self.rate_of_round(scenario, round);
            for place in order(round, present.len()) {
                let Some(contestant) = present.get(place).copied() else {
                    continue;
                };
                self.show(scenario, &contestant.name, round);
                let measurement = Measurement {
                    comparison: self,
                    scenario,
                    contestant,
                    load: self.load(scenario),
                    rate: at_rate.clone(),
                };
                let taken = measurement.take();
                if self.family.is_ended() {
                    return Err(ServerError::Interrupted);
                }
                for taken in taken {
                    keep(
                        &mut results,
                        &mut histograms,
                        &contestant.name,
                        round,
                        taken,
                    );
                }
                self.bar.inc(millis(self.expected_each(scenario)));
            }
        }
        finish(&mut results, &present, &histograms);
        Ok(results)
    }

    /// The rate that all contestants get in this round, for scenarios with an open loop.
    fn rate_of_round(&self, scenario: &Scenario, round: u32) -> Result<f64, String> {
        let Measure::Rate { of, fraction } = &scenario.kind else {
            return Ok(0.0);
        };
        let name = format!("maximum of {of}");
        self.show(scenario, &name, round);
        let leader = scenario.contestants.iter().find(|one| one.name == *of);
        let leader = leader.ok_or_else(|| format!("there is no contestant `{of}`"))?;
        let measurement = Measurement {
            comparison: self,
            scenario,
            contestant: leader,
            load: self.load(scenario),
            rate: Ok(0.0),
        };
        let maximum = measurement.maximum();
        self.bar.inc(millis(self.expected_each(scenario)));
        match maximum {
            Ok(rate) => Ok(rate * fraction),
            Err(error) => Err(format!("no {name}: {error}")),
        }
    }

    fn show(&self, scenario: &Scenario, contestant: &str, round: u32) {
        let rounds = self.options.rounds;
        self.bar.set_message(format!(
            "{} · {contestant} · round {round}/{rounds}",
            scenario.name
        ));
    }

    /// Who can run here, and why the others cannot.
    fn present<'a>(&self, scenario: &'a Scenario) -> (Vec<&'a Contestant>, Vec<(String, String)>) {
        let mut present = Vec::new();
        let mut missing = Vec::new();
        for contestant in &scenario.contestants {
            let launch = contestant.launch(scenario.code());
            match launch.check(&self.places, &self.family) {
                Ok(()) => present.push(contestant),
                Err(reason) => missing.push((contestant.name.clone(), reason.to_string())),
            }
        }
        (present, missing)
    }

    fn empty(&self, scenario: &Scenario, missing: Vec<(String, String)>) -> ScenarioResults {
        let leaders = scenario
            .contestants
            .iter()
            .filter(|contestant| contestant.server == Kind::Cloudgo);
        ScenarioResults {
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            about: scenario.about.clone(),
            load: scenario.words(&self.load(scenario)),
            command: format!("{} --scenario {}", self.command, scenario.name),
            metrics: metrics(&scenario.kind).to_vec(),
            axis: matches!(scenario.kind, Measure::Scaling { .. })
                .then(|| "connections".to_owned()),
            leaders: leaders.map(|contestant| contestant.name.clone()).collect(),
            reaches: scenario.reaches.clone(),
            rows: Vec::new(),
            missing,
        }
    }
}

/// The columns of a scenario's tables.
fn metrics(kind: &Measure) -> &'static [Metric] {
    use Metric::{
        Cpu, FirstAnswer, Kept, P50, P90, P99, P999, Pss, Rate, RateBeside, Rss, RssPerConnection,
    };
    match kind {
        Measure::Throughput { .. } | Measure::Scaling { .. } => &[Rate, P50, P99, Cpu],
        Measure::Rate { .. } => &[P99, P50, P90, P999, Rate, Cpu],
        Measure::Idle { .. } => &[RssPerConnection, Kept, RateBeside, Rate, Rss],
        Measure::Sleepers { .. } => &[Rss, Pss],
        Measure::Start { .. } => &[FirstAnswer, Rss],
    }
}

/// The latencies of one row over its sound rounds.
#[derive(Debug)]
struct Latencies {
    contestant: String,
    point: Option<usize>,
    sum: Histogram<u64>,
}

fn keep(
    results: &mut ScenarioResults,
    histograms: &mut Vec<Latencies>,
    contestant: &str,
    round: u32,
    taken: Taken,
) {
    let sample = Sample {
        round,
        ..taken.sample
    };
    if let Some(latency) = taken.latency
        && sample.is_sound()
    {
        let mut sums = histograms.iter_mut();
        match sums.find(|one| one.contestant == contestant && one.point == taken.point) {
            // Both grow as needed, so that adding cannot fail.
            Some(known) => known.sum.add(&latency).unwrap_or_default(),
            None => histograms.push(Latencies {
                contestant: contestant.to_owned(),
                point: taken.point,
                sum: latency,
            }),
        }
    }
    let mut rows = results.rows.iter_mut();
    let row = rows.find(|row| row.contestant == contestant && row.point == taken.point);
    match row {
        Some(row) => row.samples.push(sample),
        None => results.rows.push(Row {
            contestant: contestant.to_owned(),
            point: taken.point,
            samples: vec![sample],
            curve: Vec::new(),
        }),
    }
}

/// Sorts the rows and adds the curves.
fn finish(results: &mut ScenarioResults, present: &[&Contestant], histograms: &[Latencies]) {
    let place = |row: &Row| {
        let place = present.iter().position(|one| one.name == row.contestant);
        (place, row.point)
    };
    results.rows.sort_by_key(place);
    for row in &mut results.rows {
        let mut sums = histograms.iter();
        let sum = sums.find(|one| one.contestant == row.contestant && one.point == row.point);
        row.curve = sum.map(|one| curve(&one.sum)).unwrap_or_default();
    }
}

/// Ten points for each decade of `1 / (1 - p)`, as far as there are requests.
#[allow(clippy::cast_precision_loss, reason = "latencies are far below 2^53")]
fn curve(latency: &Histogram<u64>) -> Vec<(f64, f64)> {
    (0..=50)
        .map(|step| 10_f64.powf(f64::from(step) / 10.0))
        .take_while(|inverse| *inverse <= latency.len() as f64)
        .map(|inverse| {
            let value = latency.value_at_quantile(1.0 - 1.0 / inverse);
            (inverse, value as f64 / 1000.0)
        })
        .collect()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
