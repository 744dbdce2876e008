//! What the host tells on stderr: the guests' output as records, failures by the id that their clients
//! have, one access line for each request, and silence where it is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::thread;

use serde_json::Value;

use crate::client::{Client, get};
use crate::support::{Exit, Launch, Process};

const GUESTS: [&str; 2] = ["probe_p2", "probe_p3"];

/// Starts a guest with a log of JSON lines.
pub(crate) fn serve_json(guest: &str, args: &[&str]) -> (Process, SocketAddr) {
    Launch::guest(guest)
        .args(["--log-format", "json"])
        .args(args)
        .serve()
}

/// The log of a host that has ended: every line but the first is a JSON object.
pub(crate) fn records(exit: &Exit) -> Vec<Value> {
    let parse = |line: &String| -> Value {
        let record = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(matches!(record, Value::Object(_)), "{line}");
        record
    };
    exit.stderr.iter().skip(1).map(parse).collect()
}

/// The records of one kind.
pub(crate) fn of_target(records: &[Value], target: &str) -> Vec<Value> {
    records
        .iter()
        .filter(|record| record["target"] == target)
        .cloned()
        .collect()
}

/// Ends the host and gives what its guest has printed.
pub(crate) fn printed(host: &mut Process) -> Vec<Value> {
    of_target(&records(&host.terminate()), "guest")
}

/// A field that is text.
pub(crate) fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field]
        .as_str()
        .unwrap_or_else(|| panic!("no text in `{field}`: {record}"))
}

fn messages(records: &[Value]) -> Vec<&str> {
    records
        .iter()
        .map(|record| text(record, "message"))
        .collect()
}

#[test]
fn fc_106_each_line_of_a_guest_is_a_record() {
    for name in GUESTS {
        for stream in ["stdout", "stderr"] {
            let (mut host, address) = serve_json(name, &["--access-log"]);
            let target = format!("/print?stream={stream}&text=one%0Atwo%0D%0A%0Afour%0A");
            assert_eq!(get(address, &target).ok(), "printed\n");
            let records = records(&host.terminate());
            let lines = of_target(&records, "guest");
            assert_eq!(messages(&lines), ["one", "two", "", "four"], "{name}");
            let access = of_target(&records, "access");
            let expected = "guest instance level message request stream target timestamp";
            for line in &lines {
                let fields: Vec<_> = line
                    .as_object()
                    .unwrap()
                    .keys()
                    .map(String::as_str)
                    .collect();
                assert_eq!(
                    BTreeSet::from_iter(fields),
                    expected.split(' ').collect(),
                    "{line}"
                );
                assert_eq!(text(line, "guest"), name, "{line}");
                assert_eq!(text(line, "stream"), stream, "{line}");
                assert_eq!(text(line, "level"), "INFO", "{line}");
                assert_eq!(line["request"], access[0]["request"], "{line}");
                assert!(line["instance"].is_u64(), "{line}");
            }
        }
    }
}

#[test]
fn fc_106_requests_have_ids_of_their_own() {
    for name in GUESTS {
        let (mut host, address) = serve_json(name, &[]);
        for text in ["a", "b", "c"] {
            get(address, &format!("/print?text={text}%0A")).ok();
        }
        let lines = printed(&mut host);
        assert_eq!(messages(&lines), ["a", "b", "c"], "{name}");
        let ids: BTreeSet<_> = lines.iter().map(|line| text(line, "request")).collect();
        assert_eq!(ids.len(), 3, "{name}: {lines:?}");
    }
}

#[test]
fn fc_106_an_unfinished_last_line_is_not_lost() {
    for name in GUESTS {
        let (mut host, address) = serve_json(name, &[]);
        get(address, "/print?stream=stdout&text=whole%0Aunfinished").ok();
        let lines = printed(&mut host);
        assert_eq!(messages(&lines), ["whole", "unfinished"], "{name}");
        assert_eq!(text(&lines[1], "stream"), "stdout", "{name}");
    }
}

#[test]
fn fc_106_an_unfinished_last_line_has_its_request() {
    for name in GUESTS {
        let (mut host, address) = serve_json(name, &[]);
        get(address, "/print?text=whole%0Aunfinished").ok();
        let lines = printed(&mut host);
        assert_eq!(messages(&lines), ["whole", "unfinished"], "{name}");
        assert_eq!(
            lines[1]["request"], lines[0]["request"],
            "{name}: {lines:?}"
        );
    }
}

#[test]
fn fc_106_lines_of_parallel_requests_are_never_mixed() {
    const LINES: usize = 50;
    for name in GUESTS {
        let (mut host, address) = serve_json(name, &[]);
        let words: Vec<_> = (0..20)
            .map(|n| format!("word-{n:02}-").repeat(30))
            .collect();
        thread::scope(|scope| {
            for word in &words {
                scope.spawn(move || {
                    get(address, &format!("/print?text={word}%0A&times={LINES}")).ok();
                });
            }
        });
        let mut count = BTreeMap::new();
        let mut owners = BTreeMap::<_, BTreeSet<_>>::new();
        let lines = printed(&mut host);
        for line in &lines {
            *count.entry(text(line, "message")).or_insert(0) += 1;
            if let Some(request) = line.get("request") {
                owners
                    .entry(request.to_string())
                    .or_default()
                    .insert(text(line, "message"));
            }
        }
        assert_eq!(
            count,
            words.iter().map(|word| (word.as_str(), LINES)).collect(),
            "{name}"
        );
        assert!(
            owners.values().all(|words| words.len() == 1),
            "{name}: {owners:?}"
        );
        if name == "probe_p2" {
            assert_eq!(owners.len(), words.len());
        }
    }
}

#[test]
fn fc_106_odd_bytes_do_not_break_a_record() {
    for name in GUESTS {
        let (mut host, address) = serve_json(name, &[]);
        let odd = "%FF%00%1B[31m%22%5C%09%0D%7F%C2%85%E2%80%A8%7B%7D";
        get(
            address,
            &format!("/print?stream=stderr&text={odd}end%0Anext%0A"),
        )
        .ok();
        let lines = printed(&mut host);
        let expected = "\u{fffd}\0\u{1b}[31m\"\\\t\r\u{7f}\u{85}\u{2028}{}end";
        assert_eq!(messages(&lines), [expected, "next"], "{name}");
    }
}

/// A guest must not be able to write into the operator's terminal what looks like the host's own lines.
#[test]
fn fc_106_control_characters_do_not_reach_a_terminal() {
    let (mut host, address) = Launch::guest("probe_p2").serve();
    get(
        address,
        "/print?text=begin%1B[2J%1B]0;title%07%08%0Dforged%9B%C2%9Bend%0A",
    )
    .ok();
    let exit = host.terminate();
    let line = exit
        .stderr
        .iter()
        .find(|line| line.contains("begin"))
        .expect("the guest's line");
    assert!(line.contains("forged") && line.contains("end"), "{line:?}");
    let control: Vec<_> = line.chars().filter(|char| char.is_control()).collect();
    assert!(control.is_empty(), "{control:?} in {line:?}");
}

#[test]
fn a_failed_request_is_found_by_its_id() {
    for name in GUESTS {
        for (how, status) in [
            ("trap", 500),
            ("exit1", 500),
            ("error&code=internal-error", 500),
        ] {
            let (mut host, address) = serve_json(name, &[]);
            let response = get(address, &format!("/fail?how={how}"));
            assert_eq!(response.head.status, status, "{name} {how}");
            let id = response
                .head
                .value("x-request-id")
                .expect("an id")
                .to_owned();
            let records = records(&host.terminate());
            let failed: Vec<_> = records
                .iter()
                .filter(|record| record["message"] == "request failed")
                .collect();
            assert_eq!(failed.len(), 1, "{name} {how}: {records:?}");
            assert_eq!(failed[0]["request"], id, "{name} {how}: {records:?}");
            assert_eq!(failed[0]["level"], "WARN", "{name} {how}: {records:?}");
            assert!(!text(failed[0], "kind").is_empty(), "{name} {how}");
            assert!(!text(failed[0], "error").is_empty(), "{name} {how}");
            assert!(
                !response.body.contains("wasm"),
                "{name} {how}: {}",
                response.body
            );
        }
    }
}

#[test]
fn the_access_log_has_one_line_for_each_request() {
    for name in ["hello", "hello_p3"] {
        let (mut host, address) = serve_json(name, &["--access-log"]);
        let mut client = Client::connect(address);
        client.get("/?a=b").ok();
        client.get("/hello/you").ok();
        assert_eq!(client.get("/missing").head.status, 404);
        client.send("HEAD / HTTP/1.1\r\nhost: test\r\n\r\n");
        assert_eq!(client.head().status, 200);
        client.send("GET /no-host HTTP/1.1\r\n\r\n");
        let refused = client.response();
        assert_eq!(refused.head.status, 400);
        let lines = of_target(&records(&host.terminate()), "access");
        let seen: Vec<_> = lines.iter().map(summary).collect();
        let greeting = "{\"Test\":\"Hello you\"}\n".len();
        let expected = [
            ("GET", "/?a=b", 200, 13),
            ("GET", "/hello/you", 200, greeting),
            ("GET", "/missing", 404, "not found\n".len()),
            ("HEAD", "/", 200, 0),
            ("GET", "/no-host", 400, refused.body.len()),
        ];
        let expected: Vec<_> = expected
            .map(|(method, path, status, bytes)| (method.into(), path.into(), status, bytes as u64))
            .into();
        assert_eq!(seen, expected, "{name}");
        assert!(
            lines.iter().all(|line| line["complete"] == true),
            "{name}: {lines:?}"
        );
        assert!(
            lines.iter().all(|line| line["milliseconds"].is_f64()),
            "{name}: {lines:?}"
        );
    }
}

/// Method, path and query, status and bytes of an access line.
fn summary(line: &Value) -> (String, String, u64, u64) {
    let uri = text(line, "uri")
        .strip_prefix("http://test")
        .unwrap_or_else(|| text(line, "uri"));
    let number = |field: &str| {
        line[field]
            .as_u64()
            .unwrap_or_else(|| panic!("{field}: {line}"))
    };
    (
        text(line, "method").to_owned(),
        uri.to_owned(),
        number("status"),
        number("bytes"),
    )
}

#[test]
fn the_access_log_is_off_unless_asked_for() {
    let (mut host, address) = serve_json("hello", &[]);
    get(address, "/").ok();
    assert_eq!(
        of_target(&records(&host.terminate()), "access"),
        Vec::<Value>::new()
    );
}

#[test]
fn the_access_log_tells_what_was_cut() {
    let (mut host, address) = serve_json("probe_p2", &["--access-log"]);
    let mut client = Client::connect(address);
    client.ask("/fail?how=trap-after");
    let head = client.head();
    client.body(&head).expect_err("the body breaks off");
    let lines = of_target(&records(&host.terminate()), "access");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["complete"], false, "{lines:?}");
    assert_eq!(lines[0]["bytes"], 10, "{lines:?}");
}

#[test]
fn filters_silence_what_they_say() {
    for filter in ["off", "error", "warn,guest=off"] {
        let (mut host, address) = Launch::guest("probe_p2").args(["--log", filter]).serve();
        get(address, "/print?text=hello%0A").ok();
        let exit = host.terminate();
        assert_eq!(exit.stderr.len(), 1, "{filter}: {exit:?}");
    }
    let launch = Launch::guest("probe_p2").args(["--log", "error,guest=info"]);
    let (mut host, address) = launch.serve();
    assert_eq!(get(address, "/fail?how=trap").head.status, 500);
    get(address, "/print?text=hello%0A").ok();
    let exit = host.terminate();
    assert_eq!(exit.stderr.len(), 2, "{exit:?}");
    assert!(exit.stderr[1].contains("hello"), "{exit:?}");
}
