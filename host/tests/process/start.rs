//! The way up: what stdout and stderr carry, version and help, usage errors, ports in use, restarts.

use std::net::{Ipv4Addr, TcpListener};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::client::{Client, get};
use crate::support::{Launch, folder, guest, served_address};

const GREETING: &str = "Hello, World!";

#[test]
fn the_first_line_of_stderr_is_the_address() {
    let (mut host, address) = Launch::guest("hello").serve();
    assert_eq!(address.ip(), Ipv4Addr::LOCALHOST);
    assert_ne!(address.port(), 0);
    assert_eq!(get(address, "/").ok(), GREETING);
    let exit = host.terminate();
    assert_eq!(exit.stderr[0], format!("Serving HTTP on http://{address}/"));
    assert!(
        exit.stderr[1..]
            .iter()
            .all(|line| served_address(line).is_none()),
        "{exit:?}"
    );
    assert_eq!(exit.stdout, "");
}

#[test]
fn log_lines_of_the_start_come_after_the_address() {
    let cache = folder();
    let launch = Launch::guest_in(&cache.path().join("new"), "hello").args(["--log", "info"]);
    let (mut host, address) = launch.serve();
    let compiled = host.wait_for(" compiled ");
    assert!(
        compiled.contains("hello.wasm") && compiled.contains("INFO"),
        "{compiled}"
    );
    assert_eq!(get(address, "/").ok(), GREETING);
    let exit = host.terminate();
    assert!(served_address(&exit.stderr[0]).is_some(), "{exit:?}");
    assert_eq!(exit.stdout, "");
}

#[test]
fn a_second_start_takes_the_compiled_code_from_the_cache() {
    let cache = folder();
    let launch = || Launch::guest_in(cache.path(), "hello");
    let compilations = |launch: Launch| {
        let (mut host, address) = launch.serve();
        assert_eq!(get(address, "/").ok(), GREETING);
        let exit = host.terminate();
        exit.stderr
            .iter()
            .filter(|line| line.contains(" compiled "))
            .count()
    };
    assert_eq!(compilations(launch()), 1);
    assert_eq!(compilations(launch()), 0);
    assert_eq!(compilations(launch().args(["--no-cache"])), 1);
}

#[test]
fn a_damaged_cache_entry_is_replaced() {
    let cache = folder();
    let launch = || Launch::guest_in(cache.path(), "hello");
    drop(launch().serve());
    let entries: Vec<_> = std::fs::read_dir(cache.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    let [entry] = entries.as_slice() else {
        panic!("not one entry: {entries:?}")
    };
    let mut bytes = std::fs::read(entry.path()).unwrap();
    let sound = bytes.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(entry.path(), &bytes).unwrap();
    let (mut host, address) = launch().serve();
    host.wait_for("damaged cache entry ignored");
    assert_eq!(get(address, "/").ok(), GREETING);
    assert_eq!(std::fs::read(entry.path()).unwrap().len(), sound.len());
    let (mut host, _) = launch().serve();
    let exit = host.terminate();
    assert!(
        !exit.stderr.iter().any(|line| line.contains("cache entry")),
        "{exit:?}"
    );
}

#[test]
fn the_version_is_one_line_on_stdout() {
    for flag in ["--version", "-V"] {
        let exit = Launch::bare().args([flag]).run();
        assert_eq!(exit.code(), 0);
        assert_eq!(
            exit.stdout,
            concat!("cloudgo-host ", env!("CARGO_PKG_VERSION"), "\n")
        );
        assert!(exit.stderr.is_empty(), "{exit:?}");
    }
}

#[test]
fn help_has_examples_and_the_port() {
    let exit = Launch::bare().args(["--help"]).run();
    assert_eq!(exit.code(), 0);
    assert!(exit.stderr.is_empty(), "{exit:?}");
    for text in [
        "Examples:",
        "-p, --port <PORT>",
        "cloudgo-host -p 9090 hello.wasm",
        "Exit codes:",
    ] {
        assert!(exit.stdout.contains(text), "no `{text}` in {}", exit.stdout);
    }
}

#[test]
fn usage_errors_end_with_code_2() {
    let hello = guest("hello");
    let cases: [(&[&str], &str); 10] = [
        (&[], "COMPONENT"),
        (&["--no-such-flag"], "--no-such-flag"),
        (&["-p", "99999"], "99999"),
        (&["-p", "x"], "--port"),
        (&["--timeout", "soon"], "soon"),
        (&["--max-memory", "lots"], "lots"),
        (&["--log-format", "xml"], "xml"),
        (&["--log", "guest=loud"], "guest=loud"),
        (
            &["--max-concurrent-requests", "0"],
            "--max-concurrent-requests",
        ),
        (&["--addr", "127.0.0.1:1", "-p", "2"], "--port says 2"),
    ];
    for (args, text) in cases {
        let mut launch = Launch::bare().args(args);
        if !args.is_empty() {
            launch = launch.args([&hello]);
        }
        let exit = launch.run();
        assert_eq!(exit.code(), 2, "{args:?}: {exit:?}");
        assert_eq!(exit.stdout, "", "{args:?}");
        assert!(exit.stderr[0].starts_with("error: "), "{args:?}: {exit:?}");
        assert!(exit.stderr.concat().contains(text), "{args:?}: {exit:?}");
        assert!(
            !exit.stderr.concat().contains("panicked"),
            "{args:?}: {exit:?}"
        );
    }
}

#[test]
fn the_same_port_twice_is_no_conflict() {
    let launch = Launch::bare()
        .cached(&guest("hello"))
        .args(["--addr", "127.0.0.1:0", "-p", "0"]);
    let (_host, address) = launch.serve();
    assert_eq!(get(address, "/").ok(), GREETING);
}

#[test]
fn the_environment_stands_in_for_flags() {
    let launch = || Launch::bare().cached(&guest("hello"));
    let (_host, address) = launch().env("CLOUDGO_HOST_ADDR", "127.0.0.1:0").serve();
    assert_eq!(get(address, "/").ok(), GREETING);
    // A flag is stronger than the variable, which is not usable as root or anybody else.
    let (_host, address) = launch()
        .env("CLOUDGO_HOST_PORT", "0")
        .env("CLOUDGO_HOST_ADDR", "192.0.2.1")
        .args(["--addr", "127.0.0.1"])
        .serve();
    assert_eq!(get(address, "/").ok(), GREETING);
    let exit = launch().env("CLOUDGO_HOST_PORT", "99999").run();
    assert_eq!(exit.code(), 2, "{exit:?}");
}

#[test]
fn fc_094_a_second_host_on_the_same_port_is_refused() {
    let (_first, address) = Launch::guest("hello").serve();
    let second = || {
        Launch::bare()
            .cached(&guest("hello"))
            .args(["--addr", &address.to_string()])
    };
    let exit = second().run();
    assert_eq!(exit.code(), 1, "{exit:?}");
    assert!(exit.one_error().contains(&address.to_string()), "{exit:?}");
    // It is told before the compilation, too.
    let exit = second().args(["--no-cache"]).run();
    assert_eq!(exit.code(), 1, "{exit:?}");
    assert!(exit.one_error().contains(&address.to_string()), "{exit:?}");
    assert_eq!(get(address, "/").ok(), GREETING);
}

#[test]
fn fc_094_a_port_of_another_program_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let exit = Launch::bare()
        .cached(&guest("hello"))
        .args(["--addr", &address])
        .run();
    assert_eq!(exit.code(), 1, "{exit:?}");
    assert!(exit.one_error().contains(&address), "{exit:?}");
}

#[test]
fn fc_095_a_restart_does_not_wait_for_old_connections() {
    let (mut first, address) = Launch::guest("hello").serve();
    let mut open = Client::connect(address);
    assert_eq!(open.get("/").ok(), GREETING);
    first.signal(Signal::KILL);
    let exit = first.exit_within(crate::support::SOON);
    assert_eq!(exit.status.code(), None, "{exit:?}");
    let launch = Launch::bare()
        .cached(&guest("hello"))
        .args(["--addr", &address.to_string()]);
    let (_second, again) = launch.serve();
    assert_eq!(again, address);
    assert_eq!(get(address, "/").ok(), GREETING);
    drop(open);
}

#[test]
fn fc_101_all_of_wasi_cli_is_there_and_grants_nothing() {
    for name in ["probe_p2", "probe_p3"] {
        let launch = Launch::guest(name).env("SECRET", "of the host");
        let (_host, address) = launch.serve();
        let told: Value = serde_json::from_str(&get(address, "/env").ok()).unwrap();
        assert_eq!(told["env"], json!([]), "{name}: {told}");
        assert_eq!(told["args"], json!([]), "{name}: {told}");
        assert_eq!(told["preopens"], json!([]), "{name}: {told}");
        // Null would mean that it was possible.
        assert!(told["read_file"].is_string(), "{name}: {told}");
        assert!(told["connect"].is_string(), "{name}: {told}");
    }
}

#[test]
fn fc_103_of_both_handlers_the_newer_one_is_called() {
    let (_host, address) = Launch::guest("both").serve();
    assert_eq!(get(address, "/").ok(), "p3\n");
}
