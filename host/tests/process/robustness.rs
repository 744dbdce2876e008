//! Scarce resources: file descriptors, address space, processors. The host goes on and says what is wrong.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::client::{Client, get, with_running_guest};
use crate::support::{DEADLINE, Launch, guest};

#[test]
fn fc_035_the_host_survives_the_end_of_its_file_descriptors() {
    let launch = Launch::under("ulimit -n 64").loopback(&guest("probe_p2"));
    let (mut host, address) = launch.serve();
    let mut first = Client::connect(address);
    first.get("/inspect").ok();
    // The system completes all of them; the host can accept about half.
    let crowd: Vec<_> = (0..100).map(|_| Client::connect(address)).collect();
    host.wait_for("cannot accept connections");
    // Who is in is served on.
    first.get("/inspect").ok();
    drop(crowd);
    get(address, "/inspect").ok();
    let exit = host.terminate();
    // A loop without a pause would have filled the log.
    let told = exit
        .stderr
        .iter()
        .filter(|line| line.contains("cannot accept"))
        .count();
    assert!(told < 50, "{told} lines: {:?}", exit.stderr);
}

#[test]
fn fc_088_little_address_space_means_no_pool() {
    for (name, path) in [("hello", "/"), ("hello_p3", "/")] {
        let launch = Launch::under("ulimit -v 4000000").loopback(&guest(name));
        let (mut host, address) = launch.serve();
        assert_eq!(get(address, path).ok(), "Hello, World!", "{name}");
        let mut clients: Vec<_> = (0..20).map(|_| Client::connect(address)).collect();
        for client in &mut clients {
            client.ask(path);
        }
        for client in &mut clients {
            assert_eq!(client.response().ok(), "Hello, World!", "{name}");
        }
        let exit = host.terminate();
        let told: Vec<_> = exit
            .stderr
            .iter()
            .filter(|line| line.contains("allocating on demand"))
            .collect();
        assert_eq!(told.len(), 1, "{name}: {exit:?}");
        assert!(told[0].contains("WARN"), "{name}: {told:?}");
        assert!(
            told[0].contains("--max-concurrent-requests"),
            "{name}: {told:?}"
        );
    }
}

#[test]
fn fc_088_with_address_space_there_is_a_pool() {
    let (mut host, address) = Launch::guest("hello").serve();
    assert_eq!(get(address, "/").ok(), "Hello, World!");
    let exit = host.terminate();
    assert!(
        !exit.stderr.concat().contains("allocating on demand"),
        "{exit:?}"
    );
}

/// The help text says of all limits that 0 turns them off.
#[test]
fn a_queue_timeout_of_zero_lets_requests_wait() {
    const PLACES: usize = 10;
    let launch = Launch::guest("probe_p2").args(["--max-concurrent-requests", "1"]);
    let launch = launch.args(["--queue", &PLACES.to_string(), "--queue-timeout", "0"]);
    let (_host, address) = launch.serve();
    let mut inside = with_running_guest(address);
    let (sender, statuses) = mpsc::channel();
    for sender in std::iter::repeat_n(sender, 2 * PLACES) {
        thread::spawn(move || sender.send(get(address, "/count").head.status));
    }
    let next = || statuses.recv_timeout(DEADLINE).expect("an answer");
    // The queue is full when it refuses as many as it does not hold.
    assert!((0..PLACES).all(|_| next() == 503));
    inside.send("12345");
    inside.response().ok();
    let waited: Vec<_> = (0..PLACES).map(|_| next()).collect();
    assert_eq!(waited, [200; PLACES]);
}

#[test]
fn fc_083_guests_that_only_compute_starve_nobody() {
    const SPINNERS: usize = 4;
    const CONNECTIONS: usize = 8;
    let (mut host, address) = Launch::guest("probe_p2").args(["--timeout", "2s"]).serve();
    let ended = AtomicUsize::new(0);
    let all_ended = || ended.load(Ordering::SeqCst) == SPINNERS;
    let spin = || {
        let status = get(address, "/spin").head.status;
        ended.fetch_add(1, Ordering::SeqCst);
        status
    };
    let (mut statuses, counts) = thread::scope(|scope| {
        let spinners: Vec<_> = (0..SPINNERS).map(|_| scope.spawn(spin)).collect();
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| scope.spawn(|| plain_requests(address, all_ended)))
            .collect();
        let counts = clients
            .into_iter()
            .map(|thread| thread.join().expect("answers"));
        let counts: Vec<_> = counts.collect();
        let statuses = spinners
            .into_iter()
            .map(|thread| thread.join().expect("an answer"));
        (statuses.collect::<Vec<_>>(), counts)
    });
    statuses.dedup();
    assert_eq!(statuses, [504]);
    let (all, meanwhile): (Vec<usize>, Vec<usize>) = counts.into_iter().unzip();
    assert!(all.iter().sum::<usize>() >= 300, "{all:?}");
    // Each of the four computes for two seconds. Who waits for them gets one answer or two.
    assert!(meanwhile.iter().sum::<usize>() >= 40, "{meanwhile:?}");
    host.terminate();
}

/// Asks for plain answers one after the other, at least 38 times and until `ended`. Counts all of them, and
/// those before the end.
fn plain_requests(address: SocketAddr, ended: impl Fn() -> bool) -> (usize, usize) {
    let mut client = Client::connect(address);
    let (mut answered, mut meanwhile) = (0, 0);
    while answered < 38 || !ended() {
        assert_eq!(client.get("/count").ok(), "1\n");
        answered += 1;
        meanwhile += usize::from(!ended());
    }
    (answered, meanwhile)
}
