//! Tables of text, for terminals and for Markdown.

use crate::compare::{Row, ScenarioResults, Summary};
use crate::scenario::{Metric, three_digits};

/// Headings and rows of the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The headings.
    pub head: Vec<String>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// With columns as wide as they need to be; the first to the left, the others to the right. Without the marks
    /// of Markdown.
    #[must_use]
    pub fn plain(&self) -> String {
        let unmarked = |row: &Vec<String>| -> Vec<String> {
            row.iter()
                .map(|cell| cell.replace(['*', '`'], ""))
                .collect()
        };
        let lines: Vec<Vec<String>> = [&self.head]
            .into_iter()
            .chain(&self.rows)
            .map(unmarked)
            .collect();
        let width = |at: usize| {
            let cells = lines.iter().filter_map(|row| row.get(at));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut text = String::new();
        for row in &lines {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let width = width(at);
                let padded = match at {
                    0 => format!("{cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                };
                line.push_str(&padded);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// As Markdown; the first column to the left, the others to the right.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |row: &[String]| {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = line(&self.head);
        let marks = (0..self.head.len()).map(|at| if at == 0 { "---|" } else { "---:|" });
        text.push('|');
        text.extend(marks);
        text.push('\n');
        text.extend(self.rows.iter().map(|row| line(row)));
        text
    }
}

/// The table of a scenario: ratios first, then the figure that matters with its spread, then the others.
#[must_use]
pub fn scenario_table(scenario: &ScenarioResults) -> Table {
    let mut head = vec!["contestant".to_owned()];
    head.extend(scenario.axis.clone());
    let leaders: Vec<&String> = scenario
        .leaders
        .iter()
        .filter(|leader| scenario.rows.iter().any(|row| row.contestant == **leader))
        .collect();
    head.extend(leaders.iter().map(|leader| format!("{leader} ÷ this")));
    for (at, metric) in scenario.metrics.iter().enumerate() {
        head.push(metric.heading().to_owned());
        if at == 0 {
            head.extend(["min … max".to_owned(), "spread".to_owned()]);
        }
    }
    let rows = scenario.rows.iter().map(|row| {
        let mark = if row.is_valid() { "" } else { " ✗" };
        let mut cells = vec![format!("{}{mark}", row.contestant)];
        cells.extend(row.point.map(|point| point.to_string()));
        for leader in &leaders {
            cells.push(ratio_cell(scenario, leader, row));
        }
        for (at, metric) in scenario.metrics.iter().enumerate() {
            metric_cells(&mut cells, row, *metric, at == 0);
        }
        cells
    });
    let rows = rows.collect();
    Table { head, rows }
}

fn ratio_cell(scenario: &ScenarioResults, leader: &str, row: &Row) -> String {
    if row.contestant == leader {
        return "1".to_owned();
    }
    let metric = scenario.metrics.first().copied().unwrap_or(Metric::Rate);
    let ratio = scenario
        .row(leader, row.point)
        .and_then(|leader| ScenarioResults::ratio(leader, row, metric));
    ratio.map_or_else(nothing, |ratio| {
        format!("**{}**", three_digits(ratio.median))
    })
}

fn metric_cells(cells: &mut Vec<String>, row: &Row, metric: Metric, with_spread: bool) {
    let summary = row.summary(metric);
    cells.push(summary.map_or_else(nothing, |summary| metric.show(summary.median)));
    if with_spread {
        cells.push(summary.map_or_else(nothing, |summary| range(summary, metric)));
        cells.push(summary.map_or_else(nothing, spread));
    }
}

fn range(summary: Summary, metric: Metric) -> String {
    format!(
        "{} … {}",
        metric.show(summary.min),
        metric.show(summary.max)
    )
}

/// The distance of the quartiles in per cent of the median.
pub(super) fn spread(summary: Summary) -> String {
    format!("{:.0} %", summary.spread * 100.0)
}

fn nothing() -> String {
    "–".to_owned()
}
