//! The way down: a signal ends the host at once where nobody waits, after the last answer where somebody
//! does, and at the limit where an answer never ends.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;

use crate::client::{Client, Response, get, with_running_guest};
use crate::support::{DEADLINE, Exit, Launch, Process, SOON, eventually, folder, guest};

/// The log line that follows the first signal.
const DRAINING: &str = "draining: no new connections";
/// The log line of a drain that was not waited for.
const CUT: &str = "drain ended early";
const GREETING: &str = "Hello, World!";
const LOOPBACK: [&str; 2] = ["--addr", "127.0.0.1:0"];

/// Sends the first signal and waits until the host has seen it.
fn begin_drain(host: &mut Process) {
    host.signal(Signal::TERM);
    host.wait_for(DRAINING);
}

/// Waits until nobody listens any more, which is a moment after the log line.
fn wait_until_refused(address: SocketAddr) {
    eventually("connections are refused", || {
        let refusal = Client::try_connect(address).err().map(|error| error.kind());
        refusal == Some(std::io::ErrorKind::ConnectionRefused)
    });
}

fn idle_connections_do_not_hold_up(signal: Signal) {
    let (mut host, address) = Launch::guest("hello").serve();
    let mut silent: Vec<_> = (0..5).map(|_| Client::connect(address)).collect();
    let mut idle: Vec<_> = (0..20).map(|_| Client::connect(address)).collect();
    for client in &mut idle {
        assert_eq!(client.get("/").ok(), GREETING);
    }
    host.signal(signal);
    let exit = host.exit_within(SOON);
    assert_eq!(exit.code(), 0, "{exit:?}");
    assert!(
        exit.stderr.iter().any(|line| line.contains(" drained ")),
        "{exit:?}"
    );
    assert!(idle.iter_mut().all(Client::is_closed));
    assert!(silent.iter_mut().all(Client::is_closed));
}

#[test]
fn fc_109_idle_connections_do_not_hold_up_sigterm() {
    idle_connections_do_not_hold_up(Signal::TERM);
}

#[test]
fn fc_109_idle_connections_do_not_hold_up_sigint() {
    idle_connections_do_not_hold_up(Signal::INT);
}

/// Requests come without a pause, so that the signal meets connections in every phase.
#[test]
fn fc_109_busy_connections_do_not_hold_up() {
    for name in ["hello", "hello_p3"] {
        let (mut host, address) = Launch::guest(name).serve();
        let (sender, answered) = mpsc::channel();
        let clients: Vec<_> = std::iter::repeat_n(sender, 8)
            .map(|answered| thread::spawn(move || greetings(address, &answered)))
            .collect();
        for _ in 0..100 {
            answered.recv_timeout(DEADLINE).expect("an answer");
        }
        host.signal(Signal::TERM);
        let exit = host.exit_within(SOON);
        assert_eq!(exit.code(), 0, "{name}: {exit:?}");
        for client in clients {
            client.join().expect("no answer was wrong");
        }
    }
}

/// Asks until the connection is closed, and tells of each answer.
fn greetings(address: SocketAddr, answered: &mpsc::Sender<()>) {
    let mut client = Client::connect(address);
    while let Some(response) = client.try_get("/") {
        let is_last = response.head.value("connection") == Some("close");
        assert_eq!(response.ok(), GREETING);
        // The test may have heard enough.
        let _ = answered.send(());
        if is_last {
            assert!(client.is_closed());
            break;
        }
    }
}

#[test]
fn a_host_without_connections_ends_at_once() {
    let (mut host, _) = Launch::guest("hello").serve();
    host.terminate();
}

#[test]
fn fc_110_responses_that_have_begun_are_finished() {
    for name in ["probe_p2", "probe_p3"] {
        let (mut host, address) = Launch::guest(name).serve();
        let mut clients: Vec<_> = (0..10).map(|_| Client::connect(address)).collect();
        for client in &mut clients {
            client.ask("/slow?ms=1500&after=1&chunks=3&every=50");
        }
        // A head tells that its guest runs, with all of the body still to come.
        let heads: Vec<_> = clients.iter_mut().map(Client::head).collect();
        begin_drain(&mut host);
        wait_until_refused(address);
        for (client, head) in clients.iter_mut().zip(&heads) {
            assert_eq!(head.status, 200, "{name}");
            let body = client.body(head).expect("a whole body");
            assert_eq!(body, "slow 1500\nchunk 1\nchunk 2\nchunk 3\n", "{name}");
            assert!(client.is_closed(), "{name}");
        }
        let exit = host.exit_within(SOON);
        assert_eq!(exit.code(), 0, "{name}: {exit:?}");
        assert!(!exit.stderr.concat().contains(CUT), "{name}: {exit:?}");
    }
}

#[test]
fn fc_110_responses_that_begin_later_announce_the_close() {
    for name in ["probe_p2", "probe_p3"] {
        let (mut host, address) = Launch::guest(name).serve();
        let mut clients: Vec<_> = (0..10).map(|_| with_running_guest(address)).collect();
        begin_drain(&mut host);
        wait_until_refused(address);
        for client in &mut clients {
            client.send("12345");
            let response = client.response();
            assert_eq!(
                response.head.value("connection"),
                Some("close"),
                "{name}: {response:?}"
            );
            assert!(response.ok().contains("\"bytes\":5,"), "{name}");
            assert!(client.is_closed(), "{name}");
        }
        let exit = host.exit_within(SOON);
        assert_eq!(exit.code(), 0, "{name}: {exit:?}");
    }
}

/// The connection's own timers would close it some time; they are set so that they do not.
#[test]
fn fc_110_a_head_that_has_begun_to_arrive_is_served() {
    const TIMERS: [&str; 4] = ["--head-timeout", "300s", "--keep-alive-timeout", "300s"];
    for name in ["hello", "hello_p3", "probe_p2"] {
        let (mut host, address) = Launch::guest(name).args(TIMERS).serve();
        // The first of them has served a request before, the second is new.
        let mut clients = [Client::connect(address), Client::connect(address)];
        assert_eq!(clients[0].get("/").head.status, 200);
        for client in &mut clients {
            client.send("GET / HTTP/1.1\r\nhost: test\r\n");
        }
        begin_drain(&mut host);
        wait_until_refused(address);
        for client in &mut clients {
            client.send("\r\n");
            assert_eq!(client.response().head.status, 200, "{name}");
        }
        let exit = host.exit_within(SOON);
        assert_eq!(exit.code(), 0, "{name}: {exit:?}");
        assert!(clients.iter_mut().all(Client::is_closed), "{name}");
    }
}

/// The system completes connections that the host has not accepted yet; their clients know no difference.
#[test]
fn fc_110_connections_that_wait_for_acceptance_are_served() {
    let (mut host, address) = Launch::guest("hello").serve();
    // Everything that happens in the pause is there at once when it ends: the requests and the signal.
    host.pause();
    let mut clients: Vec<_> = (0..200).map(|_| Client::connect(address)).collect();
    for client in &mut clients {
        client.ask("/");
    }
    host.signal(Signal::TERM);
    host.signal(Signal::CONT);
    let is_greeting =
        |response: &Response| response.head.status == 200 && response.body == GREETING;
    let served = clients
        .iter_mut()
        .filter_map(Client::try_response)
        .filter(is_greeting)
        .count();
    let exit = host.exit_within(SOON);
    assert_eq!(exit.code(), 0, "{exit:?}");
    assert_eq!(served, clients.len(), "{:?}", exit.stderr);
}

/// One place, one guest in it, and more requests than that.
#[test]
fn fc_110_requests_that_wait_for_a_place_are_served() {
    let launch = Launch::guest("probe_p2").args(["--max-concurrent-requests", "1"]);
    let (mut host, address) = launch.args(["--queue-timeout", "60s"]).serve();
    let mut inside = with_running_guest(address);
    let mut waiting: Vec<_> = (0..5).map(|_| Client::connect(address)).collect();
    for client in &mut waiting {
        client.ask("/count");
    }
    begin_drain(&mut host);
    wait_until_refused(address);
    inside.send("12345");
    assert!(inside.response().ok().contains("\"bytes\":5,"));
    for client in &mut waiting {
        assert_eq!(client.response().ok(), "1\n");
    }
    let exit = host.exit_within(SOON);
    assert_eq!(exit.code(), 0, "{exit:?}");
}

#[test]
fn work_after_the_response_is_finished_before_the_exit() {
    for name in ["probe_p2", "probe_p3"] {
        let (mut host, address) = Launch::guest(name).serve();
        assert_eq!(get(address, "/post?ms=1000").ok(), "posted\n");
        let exit = host.terminate();
        let done = exit
            .stderr
            .iter()
            .filter(|line| line.contains("post done"))
            .count();
        assert_eq!(done, 1, "{name}: {exit:?}");
    }
}

/// Responses that never end: one that nobody reads, one that says nothing, and a guest that only computes.
fn never_ending(address: SocketAddr) -> Vec<Client> {
    let targets = [
        "/craft?endless=1",
        "/slow?ms=60000&after=1",
        "/spin?after=1",
    ];
    let mut clients: Vec<_> = targets.iter().map(|_| Client::connect(address)).collect();
    for (client, target) in clients.iter_mut().zip(targets) {
        client.ask(target);
        assert_eq!(client.head().status, 200, "{target}");
    }
    clients
}

/// The one line that tells what was cut.
#[track_caller]
fn the_cut(exit: &Exit) -> &str {
    let mut cut = exit.stderr.iter().filter(|line| line.contains(CUT));
    let line = cut.next().expect("a line that tells what was cut");
    assert_eq!(cut.next(), None, "told once: {exit:?}");
    line
}

#[test]
fn fc_112_the_limit_ends_what_does_not_end() {
    for name in ["probe_p2", "probe_p3"] {
        let launch = Launch::guest(name).args(["--response-body-timeout", "0", "--timeout", "0"]);
        let (mut host, address) = launch.args(["--drain-timeout", "1s"]).serve();
        let clients = never_ending(address);
        host.signal(Signal::TERM);
        let exit = host.exit_within(SOON);
        assert_eq!(exit.code(), 1, "{name}: {exit:?}");
        let cut = the_cut(&exit);
        assert!(cut.contains("took too long"), "{name}: {cut}");
        drop(clients);
    }
}

#[test]
fn fc_112_a_second_signal_ends_it_at_once() {
    for (name, second) in [("probe_p2", Signal::TERM), ("probe_p3", Signal::INT)] {
        let launch = Launch::guest(name).args(["--response-body-timeout", "0", "--timeout", "0"]);
        let (mut host, address) = launch.args(["--drain-timeout", "300s"]).serve();
        let clients = never_ending(address);
        begin_drain(&mut host);
        host.signal(second);
        let exit = host.exit_within(SOON);
        assert_eq!(exit.code(), 1, "{name}: {exit:?}");
        let cut = the_cut(&exit);
        assert!(cut.contains("second signal"), "{name}: {cut}");
        drop(clients);
    }
}

#[test]
fn fc_112_a_response_that_was_cut_does_not_look_whole() {
    let launch = Launch::guest("probe_p2").args(["--drain-timeout", "1s"]);
    let (mut host, address) = launch.serve();
    let mut client = Client::connect(address);
    client.ask("/slow?ms=60000&after=1");
    let head = client.head();
    host.signal(Signal::TERM);
    client.body(&head).expect_err("the body has no end");
    assert_eq!(host.exit_within(SOON).code(), 1);
}

/// A component's file that the host reads as slowly as the test writes.
fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("guest.wasm");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a named pipe");
    path
}

/// Waits until the host has opened the pipe. It listens to signals before.
fn writer(path: &Path) -> std::fs::File {
    let (sender, receiver) = mpsc::channel();
    let path = path.to_owned();
    thread::spawn(move || sender.send(std::fs::OpenOptions::new().write(true).open(path)));
    receiver
        .recv_timeout(DEADLINE)
        .expect("the host opens its guest")
        .unwrap()
}

#[test]
fn a_signal_ends_a_host_that_reads_its_guest() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = folder();
        let path = pipe(folder.path());
        let mut host = Launch::bare()
            .cached_in(&folder.path().join("cache"), &path)
            .args(LOOPBACK)
            .spawn();
        let writer = writer(&path);
        host.signal(signal);
        let exit = host.exit_within(SOON);
        assert_eq!(exit.code(), 1, "{exit:?}");
        assert!(
            exit.one_error().contains("before the guest was ready"),
            "{exit:?}"
        );
        drop(writer);
    }
}

#[test]
fn a_signal_ends_a_host_that_compiles_its_guest() {
    let folder = folder();
    let path = pipe(folder.path());
    let mut host = Launch::bare()
        .cached_in(&folder.path().join("cache"), &path)
        .args(LOOPBACK)
        .spawn();
    let mut writer = writer(&path);
    // A guest of nine megabytes: its compilation takes many seconds and begins when the pipe is closed.
    writer
        .write_all(&std::fs::read(guest("big")).unwrap())
        .unwrap();
    drop(writer);
    host.signal(Signal::TERM);
    let exit = host.exit_within(SOON);
    assert_eq!(exit.code(), 1, "{exit:?}");
    assert!(
        exit.one_error()
            .contains("SIGTERM before the guest was ready"),
        "{exit:?}"
    );
}
