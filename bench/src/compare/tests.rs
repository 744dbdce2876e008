use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

/// A server in shell: it says that it listens, on a port where somebody does, and goes on as told.
fn fake(root: &Path, name: &str, address: &str, then: &str) {
    let folder = root.join("target/peers/bin");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    let script = format!("#!/bin/sh\necho 'listening on http://{address}/' >&2\n{then}\n");
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn comparison(root: &Path) -> Comparison {
    Comparison {
        places: Places {
            root: root.to_owned(),
            scratch: root.to_owned(),
            search: OsString::new(),
        },
        family: Family::default(),
        options: Options {
            rounds: 2,
            duration: Some(Duration::from_millis(20)),
            quick: true,
        },
        bar: ProgressBar::hidden(),
        command: "compare".to_owned(),
    }
}

fn scenario(root: &Path, kind: &str, contestants: &[&str]) -> Scenario {
    let mut text = format!(
        "title = \"T\"\nabout = \"A\"\n[kind.{kind}]\n[load]\nwarmup = \"0s\"\nconnections = 2\n[[request]]\npath = \"/\"\n"
    );
    for name in contestants {
        text.push_str(&format!(
            "[[contestant]]\nname = \"{name}\"\nserver = \"{name}\"\n"
        ));
    }
    let file = root.join("s.toml");
    fs::write(&file, text).unwrap();
    Scenario::read(&file).unwrap()
}

/// Answers every request of every connection until the process ends.
fn answers() -> String {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            std::thread::spawn(move || {
                let mut writer = stream.try_clone().unwrap();
                let lines = BufReader::new(stream).lines().map_while(Result::ok);
                for _end in lines.filter(String::is_empty) {
                    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    if writer.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_server_that_dies_spoils_its_rounds_and_the_others_go_on() {
    let root = tempfile::tempdir().unwrap();
    let address = answers();
    fake(root.path(), "peer-hyper", &address, "exec sleep 600");
    fake(
        root.path(),
        "peer-axum",
        &address,
        "echo 'out of luck' >&2; exit 3",
    );
    let scenario = scenario(root.path(), "throughput", &["axum", "hyper", "fasthttp"]);
    let results = comparison(root.path()).run(&scenario).unwrap();
    let [axum, hyper] = results.rows.as_slice() else {
        panic!("two rows, in the order of the scenario: {:?}", results.rows);
    };
    assert!(!axum.is_valid());
    let problems = axum.problems().join("\n");
    assert!(
        problems.contains("rounds 1, 2: peer-axum ended by itself"),
        "{problems}"
    );
    assert!(problems.contains("out of luck"), "{problems}");
    assert!(hyper.is_valid(), "{:?}", hyper.problems());
    assert!(hyper.summary(Metric::Rate).unwrap().min > 0.0);
    assert!(!hyper.curve.is_empty());
    let [(name, reason)] = results.missing.as_slice() else {
        panic!("one is missing: {:?}", results.missing);
    };
    assert_eq!(name, "fasthttp");
    assert!(reason.contains("make bench-peers"), "{reason}");
}

#[test]
fn the_first_answer_is_timed_from_the_start_of_the_process() {
    let root = tempfile::tempdir().unwrap();
    fake(root.path(), "peer-hyper", &answers(), "exec sleep 600");
    let text = "title = \"T\"\nabout = \"A\"\n[kind.start]\ncode = \"cache\"\ntimes = 2\n[[request]]\npath = \"/\"\n[[contestant]]\nname = \"h\"\nserver = \"hyper\"\n";
    let file = root.path().join("s.toml");
    fs::write(&file, text).unwrap();
    let scenario = Scenario::read(&file).unwrap();
    let results = comparison(root.path()).run(&scenario).unwrap();
    let row = &results.rows[0];
    assert!(row.is_valid(), "{:?}", row.problems());
    assert_eq!(row.samples.len(), 2);
    assert!(row.summary(Metric::FirstAnswer).unwrap().min > 0.0);
    assert!(row.summary(Metric::Rss).unwrap().min > 0.0);
}

#[test]
fn an_ended_run_says_so() {
    let root = tempfile::tempdir().unwrap();
    fake(root.path(), "peer-hyper", "127.0.0.1:1", "exec sleep 600");
    let scenario = scenario(root.path(), "throughput", &["hyper"]);
    let comparison = comparison(root.path());
    comparison.family.end();
    let error = comparison.run(&scenario).unwrap_err();
    assert!(matches!(error, ServerError::Interrupted), "{error}");
}

#[test]
fn curves_go_as_far_as_there_are_requests() {
    let mut latency = Histogram::<u64>::new(3).unwrap();
    for value in 1..=100 {
        latency.record(value * 1000).unwrap();
    }
    let curve = curve(&latency);
    assert_eq!(curve.len(), 21, "ten points for each of two decades");
    let (inverse, slowest) = curve[20];
    assert!((inverse - 100.0).abs() < 1e-9);
    assert!((98.0..=100.5).contains(&slowest), "{slowest}");
}
