//! The Reach table: what was to be reached, what was, and the command that shows it.

use super::table::{Table, spread};
use crate::compare::{Results, ScenarioResults};
use crate::scenario::{Reach, Scenario, three_digits};

/// One row that a scenario asks for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The scenario.
    pub scenario: String,
    /// The command that runs it alone.
    pub command: String,
    /// The row.
    pub reach: Reach,
}

impl Asked {
    /// All rows of some scenarios, in the order of the table. `command` is what runs one, up to its name.
    #[must_use]
    pub fn by(scenarios: &[Scenario], command: &str) -> Vec<Self> {
        let rows = scenarios.iter().flat_map(|scenario| {
            scenario.reaches.iter().map(|reach| Self {
                scenario: scenario.name.clone(),
                command: format!("{command} --scenario {}", scenario.name),
                reach: reach.clone(),
            })
        });
        let mut rows: Vec<Self> = rows.collect();
        rows.sort_by_key(|asked| asked.reach.row);
        rows
    }

    fn bound(&self) -> String {
        match (self.reach.at_least, self.reach.at_most) {
            (Some(bound), _) => format!("≥ {bound:?}"),
            (None, Some(bound)) => format!("≤ {bound:?}"),
            (None, None) => String::new(),
        }
    }

    fn is_good(&self, value: f64) -> bool {
        self.reach.at_least.is_none_or(|bound| value >= bound)
            && self.reach.at_most.is_none_or(|bound| value <= bound)
    }

    fn cells(&self, results: &Results) -> Vec<String> {
        let mut scenarios = results.scenarios.iter();
        let scenario = scenarios.find(|one| one.name == self.scenario);
        let mut cells = vec![
            self.reach.row.to_string(),
            self.reach.what.clone(),
            self.reach.against.clone(),
            self.bound(),
        ];
        let reached = scenario.and_then(|scenario| scenario.reached(&self.reach));
        let Some((summary, valid)) = reached else {
            let why = scenario.map_or("not run", |scenario| self.reason(scenario));
            cells.extend(["–", "–", "–", why].map(str::to_owned));
            return cells;
        };
        let verdict = match (valid, self.is_good(summary.median)) {
            (false, _) => "not valid: rounds failed",
            (true, true) => "reached",
            (true, false) => "missed",
        };
        cells.push(format!("**{}**", three_digits(summary.median)));
        cells.push(format!(
            "{} … {}",
            three_digits(summary.min),
            three_digits(summary.max)
        ));
        cells.push(spread(summary));
        cells.push(verdict.to_owned());
        cells
    }

    fn reason(&self, scenario: &ScenarioResults) -> &'static str {
        let names = [Some(&self.reach.of), self.reach.to.as_ref()];
        let mut names = names.into_iter().flatten();
        let is_missing =
            |name: &String| scenario.missing.iter().any(|(missing, _)| missing == name);
        if names.any(is_missing) {
            "peer missing"
        } else {
            "not valid: every round failed"
        }
    }
}

/// The table, each row with its verdict: `reached`, `missed`, or why there is none.
#[must_use]
pub fn verdicts(results: &Results, asked: &[Asked]) -> Table {
    let head = [
        "row",
        "what",
        "against",
        "to reach",
        "median",
        "min … max",
        "spread",
        "verdict",
    ];
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: asked.iter().map(|asked| asked.cells(results)).collect(),
    }
}
