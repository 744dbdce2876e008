use std::collections::BTreeMap;

use super::*;
use crate::compare::{Row, Sample, ScenarioResults};
use crate::machine::Machine;
use crate::scenario::{Metric, Reach};

fn row(contestant: &str, rates: &[f64]) -> Row {
    let sample = |(at, rate): (usize, &f64)| Sample {
        round: u32::try_from(at + 1).unwrap(),
        figures: BTreeMap::from([(Metric::Rate, *rate), (Metric::P99, 1500.0)]),
        requests: 1000,
        table: Some(format!("table of round {}", at + 1)),
        ..Sample::default()
    };
    Row {
        contestant: contestant.to_owned(),
        point: None,
        samples: rates.iter().enumerate().map(sample).collect(),
        curve: vec![(1.0, 100.0), (10.0, 300.0), (100.0, 1500.0)],
    }
}

fn reach(row: u32, to: &str, at_least: f64) -> Reach {
    Reach {
        row,
        what: format!("what {row}"),
        against: format!("`{to}`"),
        metric: Metric::Rate,
        of: "ours".to_owned(),
        to: Some(to.to_owned()),
        at_least: Some(at_least),
        at_most: None,
    }
}

fn asked(scenario: &str, reach: Reach) -> Asked {
    Asked {
        scenario: scenario.to_owned(),
        command: format!("compare --scenario {scenario}"),
        reach,
    }
}

fn results() -> Results {
    let mut broken = row("broken", &[50.0, 60.0, 70.0]);
    broken.samples[1]
        .failures
        .insert("status 500".to_owned(), 7);
    let rows = vec![
        row("ours", &[30_000.0, 10_000.0, 20_000.0]),
        row("slow", &[10_000.0, 5_000.0, 4_000.0]),
        broken,
    ];
    let scaling = [1, 64].map(|point| Row {
        point: Some(point),
        ..row("ours", &[1000.0, 3000.0, 2000.0])
    });
    let scenario = |name: &str, axis: Option<&str>, rows: Vec<Row>| ScenarioResults {
        name: name.to_owned(),
        title: format!("Title of {name}"),
        about: "About it.".to_owned(),
        load: "64 connections".to_owned(),
        command: format!("compare --scenario {name}"),
        metrics: vec![Metric::Rate, Metric::P99],
        axis: axis.map(str::to_owned),
        leaders: vec!["ours".to_owned()],
        reaches: Vec::new(),
        rows,
        missing: vec![("gone".to_owned(), "`gone` is missing: build it".to_owned())],
    };
    Results {
        machine: Machine {
            processor: "A Processor".to_owned(),
            cores: 2,
            memory: 8 << 30,
            kernel: "6.1".to_owned(),
            system: "A System".to_owned(),
            date: "2026-11-30T00:00:00Z".to_owned(),
            versions: vec![("ours".to_owned(), "ours 1.2".to_owned())],
            missing: vec![("gone".to_owned(), "`gone` is missing: build it".to_owned())],
        },
        command: "compare".to_owned(),
        rounds: 3,
        scenarios: vec![
            scenario("one", None, rows),
            scenario("many", Some("connections"), scaling.to_vec()),
        ],
    }
}

#[test]
fn a_table_shows_ratios_of_rounds_and_marks_what_failed() {
    let table = scenario_table(&results().scenarios[0]);
    let head = [
        "contestant",
        "ours ÷ this",
        "requests/s",
        "min … max",
        "spread",
        "p99",
    ];
    assert_eq!(table.head, head);
    let cells = ["slow", "**3.00**", "5\u{202f}000"];
    assert_eq!(table.rows[1][..3], cells, "of 3, 2 and 5");
    assert_eq!(table.rows[1][3], "4\u{202f}000 … 10\u{202f}000");
    assert_eq!(table.rows[1][4], "60 %", "quartiles are 4500 and 7500");
    assert_eq!(table.rows[1][5], "1.50 ms");
    assert_eq!(table.rows[2][0], "broken ✗");
    assert_eq!(table.rows[2][2], "60", "the median of 50 and 70");
    assert!(!table.plain().contains('*'));
    assert!(table.plain().contains("3.00"));
}

#[test]
fn verdicts_are_reached_missed_or_say_why_there_is_none() {
    let all = [
        asked("one", reach(1, "slow", 3.0)),
        asked("one", reach(2, "slow", 3.5)),
        asked("one", reach(3, "broken", 1.0)),
        asked("one", reach(4, "gone", 1.0)),
        asked("other", reach(5, "slow", 1.0)),
    ];
    let table = verdicts(&results(), &all);
    let column =
        |at: usize| -> Vec<&str> { table.rows.iter().map(|row| row[at].as_str()).collect() };
    let verdicts = [
        "reached",
        "missed",
        "not valid: rounds failed",
        "peer missing",
        "not run",
    ];
    assert_eq!(column(7), verdicts);
    assert_eq!(column(3)[..2], ["≥ 3.0", "≥ 3.5"]);
    assert_eq!(column(4)[..2], ["**3.00**", "**3.00**"]);
    assert_eq!(column(5)[0], "2.00 … 5.00");
}

#[test]
fn the_report_has_its_numbers_its_pictures_and_its_commands() {
    let folder = tempfile::tempdir().unwrap();
    let all = [
        asked("one", reach(1, "slow", 3.0)),
        asked("one", reach(2, "slow", 9.0)),
    ];
    let file = write(&results(), &all, folder.path()).unwrap();
    let text = fs::read_to_string(file).unwrap();
    for part in [
        "| 1 | what 1 | `slow` | ≥ 3.0 | **3.00** | 2.00 … 5.00 | 50 % | reached |",
        "compare --scenario one  # rows 1, 2",
        "2 × A Processor, 8 GiB of memory, A System, Linux 6.1.",
        "| ours | ours 1.2 |",
        "Left out: `gone` is missing: build it.",
        "✗ broken, round 2 (7 of 1007): failed requests: status 500",
        "![Title of one: requests/s](one-bars.svg)",
        "![Title of one: latency](one-latency.svg)",
        "![Title of many: requests/s](many-scaling.svg)",
        "ours, the round in the middle:\n\n```text\ntable of round 3\n```",
        "slow, the round in the middle:\n\n```text\ntable of round 2\n```",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let bars = fs::read_to_string(folder.path().join("one-bars.svg")).unwrap();
    assert!(
        bars.contains("20\u{202f}000") && bars.contains("60 ✗"),
        "{bars}"
    );
    let curves = fs::read_to_string(folder.path().join("one-latency.svg")).unwrap();
    assert!(curves.contains("99 %"), "{curves}");
    assert!(folder.path().join("many-scaling.svg").is_file());
    let json = fs::read_to_string(folder.path().join("results.json")).unwrap();
    let again: Results = serde_json::from_str(&json).unwrap();
    assert_eq!(again.scenarios[0].rows[0].values(Metric::Rate).len(), 3);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = write(&results(), &[], &file.join("out")).unwrap_err();
    assert!(error.to_string().contains("file/out"), "{error}");
}
