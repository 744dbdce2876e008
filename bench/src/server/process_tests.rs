use rustix::process::{Pid, Signal, kill_process};

use super::*;

fn shell(script: &str) -> Prepared {
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    Prepared {
        command,
        address: None,
    }
}

const SERVES: &str =
    "echo starting >&2; echo 'Serving HTTP on http://0.0.0.0:4321/' >&2; exec sleep 600";

fn start(script: &str, family: &Family) -> Result<Server, ServerError> {
    Server::start_prepared(Kind::Cloudgo, shell(script), family)
}

#[test]
fn the_address_comes_from_the_servers_own_line() {
    let mut server = start(SERVES, &Family::default()).unwrap();
    assert_eq!(server.address().to_string(), "127.0.0.1:4321");
    let memory = server.memory().unwrap();
    assert!(memory.rss >= memory.pss && memory.pss > 0, "{memory:?}");
    server.cpu().unwrap();
    server.stop().unwrap();
}

#[test]
fn lines_of_every_server_are_understood() {
    let address = |kind, line| ready(kind, None, line).map(|found| found.to_string());
    let local = Some("127.0.0.1:80".to_owned());
    for line in [
        "listening on http://127.0.0.1:80/",
        "Serving HTTP on http://0.0.0.0:80/",
        "at http://127.0.0.1:80",
    ] {
        assert_eq!(address(Kind::Wasmtime, line), local, "{line}");
    }
    assert_eq!(address(Kind::Hyper, "see http://example.com/"), None);
    assert_eq!(address(Kind::Hyper, "starting"), None);
    let known = "127.0.0.1:9".parse().ok();
    assert_eq!(ready(Kind::Nginx, known, "start worker process 7"), known);
    assert_eq!(ready(Kind::Nginx, known, "using epoll"), None);
}

#[test]
fn a_server_that_does_not_come_up_says_why() {
    let error = start(
        "echo one >&2; echo 'no such port' >&2; exit 7",
        &Family::default(),
    );
    let text = error.unwrap_err().to_string();
    assert!(text.contains("cloudgo-host ended by itself"), "{text}");
    assert!(text.contains("exit status: 7"), "{text}");
    assert!(text.ends_with("it said: one | no such port"), "{text}");
}

#[test]
fn a_server_that_dies_later_is_noticed() {
    let mut server = start(SERVES, &Family::default()).unwrap();
    server.check().unwrap();
    let pid = Pid::from_raw(i32::try_from(server.member.id()).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let text = server
        .watch(Duration::from_secs(60))
        .unwrap_err()
        .to_string();
    assert!(text.contains("signal: 9"), "{text}");
    assert!(text.contains("starting"), "{text}");
}

#[test]
fn ending_the_family_ends_servers_with_their_workers() {
    let family = Family::default();
    let script = format!("sleep 600 & {SERVES}");
    let mut server = start(&script, &family).unwrap();
    family.end();
    let error = server.watch(Duration::from_secs(60)).unwrap_err();
    assert!(matches!(error, ServerError::Interrupted), "{error}");
    let group = server.member.id();
    drop(server);
    // The worker is nobody's zombie for longer than init takes to reap it.
    while figures::memory(group).is_ok_and(|memory| memory.rss > 0) {
        thread::yield_now();
    }
    let error = start(SERVES, &family).unwrap_err();
    assert!(matches!(error, ServerError::Interrupted), "{error}");
}

#[test]
fn commands_are_run_to_their_end() {
    let run = |script: &str| {
        let mut command = Command::new("sh");
        complete("it", command.args(["-c", script]), &Family::default())
    };
    let (out, err) = run("echo out; echo one >&2; echo two >&2").unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("out\n", "one\ntwo"));
    let text = run("echo bad >&2; exit 3").unwrap_err().to_string();
    assert_eq!(text, "it failed (exit status: 3); it said: bad");
    let text = run("echo why; exit 3").unwrap_err().to_string();
    assert!(text.ends_with("it said: why"), "{text}");
}

#[test]
fn a_long_log_does_not_hold_the_server_up() {
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1";
    let text = start(script, &Family::default()).unwrap_err().to_string();
    assert!(text.ends_with("line 19998 | line 19999"), "{text}");
}
