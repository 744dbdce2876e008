//! `REPORT.md`.

use std::fmt::Write as _;

use super::plot::Picture;
use super::reach::{Asked, verdicts};
use super::table::{Table, scenario_table};
use crate::compare::{Results, ScenarioResults};
use crate::scenario::Metric;

/// How figures are to be read; the same in every report.
const READING: &str = "\
Every server is started anew for each measurement, in rounds, forwards and backwards in turn. Client and server \
share this machine, so absolute figures say little; ratios of one run say more. Each ratio is taken within a round, \
and its median over the rounds is shown. `A ÷ this` is A's figure divided by that of the row: above 1 is good for \
requests/s, below 1 is good for times and memory. Spread is the distance of the quartiles in per cent of the median. \
CPU per request is the processor time of the server with all its processes, user and system. Rounds with failed \
requests do not count, and ✗ marks rows that have some.";

pub(super) fn render(results: &Results, asked: &[Asked], pictures: &[Vec<Picture>]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# How cloudgo-host compares\n");
    let _ = writeln!(
        text,
        "`{}`, {} rounds, {}.\n\n{READING}\n",
        results.command, results.rounds, results.machine.date
    );
    let _ = writeln!(text, "## Reach\n\n{}", verdicts(results, asked).markdown());
    text.push_str(&commands(asked));
    text.push_str(&machine(results));
    for (at, scenario) in results.scenarios.iter().enumerate() {
        let pictures = pictures.get(at).map(Vec::as_slice).unwrap_or_default();
        text.push_str(&section(scenario, pictures));
    }
    text
}

/// The command of each row, one line for each scenario.
fn commands(asked: &[Asked]) -> String {
    let mut text = "The commands that print these rows:\n\n```sh\n".to_owned();
    let mut done: Vec<&str> = Vec::new();
    for Asked { command, .. } in asked {
        if done.contains(&command.as_str()) {
            continue;
        }
        done.push(command);
        let rows: Vec<String> = asked
            .iter()
            .filter(|other| other.command == *command)
            .map(|other| other.reach.row.to_string())
            .collect();
        let s = if rows.len() == 1 { "" } else { "s" };
        let _ = writeln!(text, "{command}  # row{s} {}", rows.join(", "));
    }
    text.push_str("```\n\n");
    text
}

fn machine(results: &Results) -> String {
    let machine = &results.machine;
    #[allow(clippy::cast_precision_loss, reason = "bytes are far below 2^53")]
    let memory = machine.memory as f64 / 1_073_741_824.0;
    let mut text = format!(
        "## Machine\n\n{} × {}, {memory:.0} GiB of memory, {}, Linux {}.\n\n",
        machine.cores, machine.processor, machine.system, machine.kernel
    );
    let row = |(name, value): &(String, String)| vec![name.clone(), value.clone()];
    let table = Table {
        head: vec!["program".to_owned(), "version".to_owned()],
        rows: machine.versions.iter().map(row).collect(),
    };
    text.push_str(&table.markdown());
    for (_, reason) in &machine.missing {
        let _ = write!(text, "\nLeft out: {reason}.\n");
    }
    text.push('\n');
    text
}

fn section(scenario: &ScenarioResults, pictures: &[Picture]) -> String {
    let mut text = format!(
        "## {}\n\n{}\n\n{}. `{}`\n\n",
        scenario.title, scenario.about, scenario.load, scenario.command
    );
    text.push_str(&scenario_table(scenario).markdown());
    text.push('\n');
    for (name, reason) in &scenario.missing {
        let _ = writeln!(text, "Left out: {name}, because {reason}.\n");
    }
    for row in &scenario.rows {
        let point = row.point.map(|point| format!(" at {point}"));
        for problem in row.problems() {
            let point = point.as_deref().unwrap_or_default();
            let _ = writeln!(text, "✗ {}{point}, {problem}\n", row.contestant);
        }
    }
    for picture in pictures {
        let _ = writeln!(text, "![{}]({})\n", picture.title, picture.file);
    }
    text.push_str(&tables_of_others(scenario));
    text
}

/// The tables of `wrk` and `ab` as they printed them, from the round in the middle.
fn tables_of_others(scenario: &ScenarioResults) -> String {
    let mut text = String::new();
    for row in &scenario.rows {
        let Some(median) = row.summary(Metric::Rate).map(|rate| rate.median) else {
            continue;
        };
        let distance = |rate: f64| (rate - median).abs();
        let rates = row.values(Metric::Rate);
        let nearest = rates
            .iter()
            .min_by(|left, right| distance(left.1).total_cmp(&distance(right.1)));
        let mut samples = row.samples.iter();
        let table = nearest
            .and_then(|(round, _)| samples.find(|sample| sample.round == *round))
            .and_then(|sample| sample.table.as_ref());
        if let Some(table) = table {
            let name = &row.contestant;
            let _ = writeln!(
                text,
                "{name}, the round in the middle:\n\n```text\n{table}\n```\n"
            );
        }
    }
    text
}
