//! What one request may allocate. Time does not repeat on a busy machine, this does: each scenario is compared with
//! what `bench/guard.toml` stores, and more than a tenth above it fails. `make bench-guard STORE=1` stores anew.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking, and this one shows its figures"
)]

mod counter;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudgo_host::Host;
use cloudgo_host::config::ConfigOverlay;
use serde::{Deserialize, Serialize};

use counter::{Count, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ASKED: &[u8] = b"GET /hello/testuser HTTP/1.1\r\nHost: localhost\r\n\r\n";
const ANSWER: &str = "{\"Test\":\"Hello testuser\"}\n";
/// The median of several batches is what a timer or another thread does not touch.
const BATCHES: usize = 9;
const REQUESTS: usize = 128;
/// More than this above the stored value fails, in percent.
const TOLERANCE: f64 = 10.0;

/// What one request costs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    allocations: f64,
    bytes: f64,
}

struct Scenario {
    name: &'static str,
    guest: &'static str,
    reuse: Option<usize>,
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "hello",
        guest: "hello",
        reuse: None,
    },
    Scenario {
        name: "hello-reuse",
        guest: "hello",
        reuse: Some(1_000_000),
    },
    Scenario {
        name: "hello-p3",
        guest: "hello_p3",
        reuse: None,
    },
];

// One test for all: others beside it would be counted as well.
#[test]
fn no_request_allocates_a_tenth_more_than_stored() {
    let measured: BTreeMap<_, _> = SCENARIOS
        .iter()
        .map(|scenario| (scenario.name.to_owned(), measure(scenario)))
        .collect();
    let file = here("guard.toml");
    if std::env::var_os("BENCH_GUARD_STORE").is_some() {
        let text = toml::to_string(&measured).unwrap();
        let head = "# Allocations and bytes of one request; `make bench-guard STORE=1` writes this file.\n";
        std::fs::write(&file, format!("{head}{text}")).unwrap();
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let stored: BTreeMap<String, Cost> = toml::from_str(&text).unwrap();
    let mut failures = Vec::new();
    for (name, cost) in &measured {
        let Some(limit) = stored.get(name) else {
            failures.push(format!("{name}: nothing is stored for it"));
            continue;
        };
        println!(
            "{name:12} {:7.1} allocations, {:9.0} bytes a request (stored: {:.1}, {:.0})",
            cost.allocations, cost.bytes, limit.allocations, limit.bytes
        );
        for (what, now, then) in [
            ("allocations", cost.allocations, limit.allocations),
            ("bytes", cost.bytes, limit.bytes),
        ] {
            let percent = (now / then - 1.0) * 100.0;
            if percent > TOLERANCE {
                failures.push(format!(
                    "{name}: {now:.1} {what} a request, {percent:.0} % above the stored {then:.1}"
                ));
            } else if percent < -TOLERANCE {
                println!(
                    "{name}: {what} are {:.0} % below what is stored, which can be lowered",
                    -percent
                );
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{}\nif that is meant to be, `make bench-guard STORE=1` stores it",
        failures.join("\n")
    );
}

fn measure(scenario: &Scenario) -> Cost {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let config = ConfigOverlay {
        component: here(&format!(
            "../guest/target/wasm32-wasip2/release/{}.wasm",
            scenario.guest
        )),
        address: Some("127.0.0.1:0".parse().unwrap()),
        requests: Some(32),
        reuse_requests: scenario.reuse,
        no_cache: true,
        ..ConfigOverlay::default()
    };
    let host = runtime
        .block_on(Host::start(config.into_config().unwrap()))
        .unwrap_or_else(|error| panic!("{error}; `make guests` builds the guests"));
    let mut client = Client::connect(host.local_addr());
    client.ask(2 * REQUESTS);
    let mut batches = [Count::default(); BATCHES];
    for batch in &mut batches {
        let before = Count::now();
        client.ask(REQUESTS);
        *batch = Count::now().since(before);
    }
    drop(host);
    runtime.shutdown_background();
    Cost {
        allocations: median(batches.map(|batch| batch.allocations)),
        bytes: median(batches.map(|batch| batch.bytes)),
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn median(mut batches: [u64; BATCHES]) -> f64 {
    batches.sort_unstable();
    let each = batches[BATCHES / 2] as f64 / REQUESTS as f64;
    (each * 10.0).round() / 10.0
}

/// A client that allocates nothing once it is connected.
struct Client {
    stream: TcpStream,
    buffer: [u8; 4096],
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self {
            stream,
            buffer: [0; 4096],
        }
    }

    fn ask(&mut self, requests: usize) {
        for _ in 0..requests {
            self.stream.write_all(ASKED).unwrap();
            let mut length = 0;
            while !self.buffer[..length].ends_with(ANSWER.as_bytes()) {
                let read = self.stream.read(&mut self.buffer[length..]).unwrap();
                assert_ne!(read, 0, "the host has closed the connection");
                length += read;
            }
            assert!(self.buffer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        }
    }
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
