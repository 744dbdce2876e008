use std::collections::BTreeSet;

use super::*;
use crate::load::ExpectBody;

const GOOD: &str = r#"
title = "T"
about = "A."
quick = true

[kind.throughput]
client = "wrk"

[load]
connections = 8
protocol = "http2"
duration = "250ms"

[[request]]
path = "/json"
body = { order = 1024 }
expect = { order = 1024 }

[[contestant]]
name = "a"
server = "cloudgo"
guest = "hello"
reuse = 1000
flags = ["--queue", "5"]

[[contestant]]
name = "b"
server = "hyper"

[[reach]]
row = 1
what = "x"
against = "y"
metric = "rate"
of = "a"
to = "b"
at_least = 0.5
"#;

fn refused(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    Scenario::parse("s", &GOOD.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn what_a_file_says_arrives() {
    let scenario = Scenario::parse("s", GOOD).unwrap();
    assert_eq!(scenario.name, "s");
    assert!(scenario.quick);
    assert!(matches!(
        scenario.kind,
        Measure::Throughput {
            client: Client::Wrk
        }
    ));
    assert_eq!(scenario.load.connections, 8);
    assert_eq!(scenario.load.protocol, Protocol::Http2);
    assert_eq!(scenario.load.duration, Duration::from_millis(250));
    assert_eq!(scenario.load.warmup, Duration::from_secs(1));
    let launch = scenario.contestants[0].launch(Code::Compiled);
    assert_eq!(launch.reuse, Some(1000));
    assert_eq!(launch.flags, ["--queue", "5"]);
    assert_eq!(launch.code, Code::Compiled);
    assert_eq!(scenario.reaches[0].at_least, Some(0.5));
}

#[test]
fn orders_have_their_size_and_their_successor() {
    let scenario = Scenario::parse("s", GOOD).unwrap();
    let templates = scenario.templates().unwrap();
    let [template] = templates.as_slice() else {
        panic!("one request");
    };
    assert_eq!(template.method, http::Method::POST);
    assert_eq!(template.body.len(), 1024);
    let sent: serde_json::Value = serde_json::from_slice(&template.body).unwrap();
    assert_eq!(sent["id"], 41);
    let ExpectBody::Bytes(expected) = &template.expect.body else {
        panic!("bytes are expected");
    };
    let expected: serde_json::Value = serde_json::from_slice(expected).unwrap();
    assert_eq!(expected["id"], 42);
    assert_eq!(expected["text"], sent["text"]);
}

#[test]
fn unknown_keys_are_named() {
    for (from, to, key) in [
        ("quick = true", "quikc = true", "quikc"),
        ("client = \"wrk\"", "clint = \"wrk\"", "clint"),
        ("connections = 8", "conections = 8", "conections"),
        (
            "path = \"/json\"",
            "path = \"/json\"\nmehtod = \"PUT\"",
            "mehtod",
        ),
        ("reuse = 1000", "reuze = 1000", "reuze"),
        ("at_least = 0.5", "at_leats = 0.5", "at_leats"),
        ("[kind.throughput]", "[kind.thruput]", "thruput"),
        ("server = \"hyper\"", "server = \"hypr\"", "hypr"),
        ("metric = \"rate\"", "metric = \"speed\"", "speed"),
    ] {
        let problem = refused(from, to);
        assert!(problem.contains(key), "{key}: {problem}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    for (from, to, key) in [
        ("of = \"a\"", "of = \"c\"", "`reach.of`"),
        ("to = \"b\"", "to = \"c\"", "`reach.to`"),
        ("at_least = 0.5", "at_least = 0.5\nat_most = 1.0", "at_most"),
        ("guest = \"hello\"", "", "needs a guest"),
        ("path = \"/json\"", "path = \"json\"", "`request.path`"),
        (
            "duration = \"250ms\"",
            "duration = \"250 parsecs\"",
            "duration",
        ),
        ("connections = 8", "connections = -8", "connections"),
        (
            "[kind.throughput]\nclient = \"wrk\"",
            "[kind.rate]\nof = \"a\"\nfraction = 1.5",
            "`kind.rate.fraction`",
        ),
    ] {
        let problem = refused(from, to);
        assert!(problem.contains(key), "{key}: {problem}");
    }
}

#[test]
fn a_broken_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("broken.toml"), "title = 5").unwrap();
    let error = Scenario::read_all(folder.path()).unwrap_err().to_string();
    assert!(error.contains("broken.toml"), "{error}");
    assert!(error.contains("title"), "{error}");
}

#[test]
fn every_scenario_of_the_repository_is_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let all = Scenario::read_all(&folder).unwrap();
    assert!(all.iter().any(|scenario| scenario.quick));
    let rows: BTreeSet<u32> = all
        .iter()
        .flat_map(|scenario| scenario.reaches.iter().map(|reach| reach.row))
        .collect();
    assert_eq!(rows, (1..=11).collect(), "the rows of the Reach table");
    let error = Scenario::choose(all, &["hallo".to_owned()])
        .unwrap_err()
        .to_string();
    assert!(error.contains("hello-reuse"), "{error}");
}

#[test]
fn figures_are_shown_with_units() {
    assert_eq!(Metric::Rate.show(1_234_567.4), "1\u{202f}234\u{202f}567");
    assert_eq!(Metric::Rate.show(999.6), "1\u{202f}000");
    assert_eq!(Metric::P99.show(4.567), "4.57 µs");
    assert_eq!(Metric::P99.show(45_670.0), "45.7 ms");
    assert_eq!(Metric::FirstAnswer.show(12.3), "12.3 ms");
    assert_eq!(Metric::Rss.show(3.5 * 1_048_576.0), "3.50 MiB");
    assert_eq!(Metric::RssPerConnection.show(2048.0), "2.00 KiB");
    assert_eq!(Metric::Kept.show(0.834), "0.83");
}
