//! What a comparison found: every figure of every round, and what follows from them. Written to `results.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::stats::{self, Summary};
use crate::machine::Machine;
use crate::scenario::{Metric, Reach};

/// A whole run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// Where it ran.
    pub machine: Machine,
    /// The command that ran it.
    pub command: String,
    /// Rounds of each scenario.
    pub rounds: u32,
    /// In the order in which they ran.
    pub scenarios: Vec<ScenarioResults>,
}

/// One scenario.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScenarioResults {
    /// Its name.
    pub name: String,
    /// A heading.
    pub title: String,
    /// What happens.
    pub about: String,
    /// The load in words.
    pub load: String,
    /// The command that runs it alone.
    pub command: String,
    /// The figures of its tables, the first is the one that matters.
    pub metrics: Vec<Metric>,
    /// The heading of [`Row::point`], if the rows have points.
    pub axis: Option<String>,
    /// Contestants that the others are held against.
    pub leaders: Vec<String>,
    /// Its rows of the Reach table.
    pub reaches: Vec<Reach>,
    /// Contestant by contestant, and point by point within each.
    pub rows: Vec<Row>,
    /// Contestants that are not on this machine, with the reason.
    pub missing: Vec<(String, String)>,
}

/// One contestant, at one point of the axis if there is one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub contestant: String,
    /// Connections, for scenarios that vary them.
    pub point: Option<usize>,
    /// One for each round.
    pub samples: Vec<Sample>,
    /// Latencies of all sound rounds: `1 / (1 - p)` and microseconds.
    pub curve: Vec<(f64, f64)>,
}

/// One measurement.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Its round, from 1.
    pub round: u32,
    /// What was measured.
    pub figures: BTreeMap<Metric, f64>,
    /// Requests with the expected answer.
    pub requests: u64,
    /// Requests without, by kind.
    pub failures: BTreeMap<String, u64>,
    /// Why there are no figures.
    pub error: Option<String>,
    /// The last lines of the server's log, if requests failed.
    pub log: Option<String>,
    /// The table of another client.
    pub table: Option<String>,
}

impl Sample {
    /// A measurement that failed.
    #[must_use]
    pub fn failed(error: String) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }

    /// Whether it counts: every request got the expected answer.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.error.is_none() && self.failures.is_empty()
    }
}

impl Row {
    /// A figure of the sound rounds, with the rounds.
    #[must_use]
    pub fn values(&self, metric: Metric) -> Vec<(u32, f64)> {
        let sound = self.samples.iter().filter(|sample| sample.is_sound());
        sound
            .filter_map(|sample| Some((sample.round, *sample.figures.get(&metric)?)))
            .collect()
    }

    /// A figure over the sound rounds.
    #[must_use]
    pub fn summary(&self, metric: Metric) -> Option<Summary> {
        let values: Vec<f64> = self
            .values(metric)
            .iter()
            .map(|(_, value)| *value)
            .collect();
        Summary::of(&values)
    }

    /// Whether every round counts.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.samples.is_empty() && self.samples.iter().all(Sample::is_sound)
    }

    /// What went wrong, a line for each kind of it.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for sample in &self.samples {
            let round = || sample.round.to_string();
            if let Some(error) = &sample.error {
                problems.entry(error.clone()).or_default().push(round());
            }
            if let Some(line) = sample.log.as_ref().and_then(|log| log.lines().last()) {
                let what = format!("the server's last line was: {line}");
                problems.entry(what).or_default().push(round());
            }
            for (kind, count) in &sample.failures {
                let rounds = problems.entry(format!("failed requests: {kind}"));
                let of = count + sample.requests;
                let entry = format!("{} ({count} of {of})", sample.round);
                rounds.or_default().push(entry);
            }
        }
        let line = |(what, rounds): (String, Vec<String>)| {
            let s = if rounds.len() == 1 { "" } else { "s" };
            format!("round{s} {}: {what}", rounds.join(", "))
        };
        problems.into_iter().map(line).collect()
    }
}

impl ScenarioResults {
    /// A contestant's row.
    #[must_use]
    pub fn row(&self, contestant: &str, point: Option<usize>) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.contestant == contestant && row.point == point)
    }

    /// One row divided by another, round by round.
    #[must_use]
    pub fn ratio(of: &Row, to: &Row, metric: Metric) -> Option<Summary> {
        Summary::of(&stats::ratios(&of.values(metric), &to.values(metric)))
    }

    /// The figure that a row of the Reach table asks for, and whether every round behind it counts.
    #[must_use]
    pub fn reached(&self, reach: &Reach) -> Option<(Summary, bool)> {
        let of = self.row(&reach.of, None)?;
        let Some(to) = &reach.to else {
            return Some((of.summary(reach.metric)?, of.is_valid()));
        };
        let to = self.row(to, None)?;
        let ratio = Self::ratio(of, to, reach.metric)?;
        Some((ratio, of.is_valid() && to.is_valid()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(round: u32, rate: f64, failed: u64) -> Sample {
        Sample {
            round,
            figures: BTreeMap::from([(Metric::Rate, rate)]),
            requests: 10,
            failures: (failed > 0)
                .then(|| ("status 500".to_owned(), failed))
                .into_iter()
                .collect(),
            ..Sample::default()
        }
    }

    fn row(samples: Vec<Sample>) -> Row {
        Row {
            contestant: "a".to_owned(),
            point: None,
            samples,
            curve: Vec::new(),
        }
    }

    #[test]
    fn rounds_with_failures_do_not_count_and_are_named() {
        let died = Sample {
            round: 3,
            ..Sample::failed("it died".to_owned())
        };
        let row = row(vec![sample(1, 5.0, 0), sample(2, 99.0, 3), died]);
        assert_eq!(row.values(Metric::Rate), [(1, 5.0)]);
        assert!(!row.is_valid());
        let problems = [
            "round 2 (3 of 13): failed requests: status 500",
            "round 3: it died",
        ];
        assert_eq!(row.problems(), problems);
        assert_eq!(row.summary(Metric::P99), None);
    }

    #[test]
    fn a_row_without_rounds_is_not_valid() {
        assert!(!row(Vec::new()).is_valid());
    }
}
