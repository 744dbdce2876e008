//! Every way to write a listen address: it is served and shown as a URL, or refused on one line.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use crate::client::get;
use crate::support::{Launch, guest};

fn launch(args: &[&str]) -> Launch {
    Launch::bare().cached(&guest("hello")).args(args)
}

#[test]
fn fc_097_ipv4_addresses_are_served() {
    let cases: [(&[&str], Ipv4Addr); 5] = [
        (&["--addr", "127.0.0.1:0"], Ipv4Addr::LOCALHOST),
        (&["--addr", "127.0.0.1", "-p", "0"], Ipv4Addr::LOCALHOST),
        (&["--addr", "127.0.0.1", "--port=0"], Ipv4Addr::LOCALHOST),
        (&["--addr", ":0"], Ipv4Addr::UNSPECIFIED),
        (&["-p", "0"], Ipv4Addr::UNSPECIFIED),
    ];
    for (args, ip) in cases {
        let (mut host, address) = launch(args).serve();
        assert_eq!(address.ip(), ip, "{args:?}");
        assert_ne!(address.port(), 0, "{args:?}");
        assert_eq!(get(address, "/").ok(), "Hello, World!", "{args:?}");
        let exit = host.terminate();
        assert_eq!(
            exit.stderr[0],
            format!("Serving HTTP on http://{ip}:{}/", address.port())
        );
    }
}

#[test]
fn fc_097_ipv6_addresses_are_served_and_shown_in_brackets() {
    let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let cases: [(&[&str], Ipv6Addr); 4] = [
        (&["--addr", "[::1]:0"], Ipv6Addr::LOCALHOST),
        (&["--addr", "[::1]", "-p", "0"], Ipv6Addr::LOCALHOST),
        (&["--addr", "::1", "-p", "0"], Ipv6Addr::LOCALHOST),
        (&["--addr", "[::]:0"], Ipv6Addr::UNSPECIFIED),
    ];
    for (args, ip) in cases {
        if !has_ipv6 && ip == Ipv6Addr::LOCALHOST {
            let exit = launch(args).run();
            assert_eq!(exit.code(), 1, "{args:?}: {exit:?}");
            assert!(exit.one_error().contains("[::1]:0"), "{args:?}: {exit:?}");
            continue;
        }
        if !has_ipv6 {
            continue;
        }
        let (mut host, address) = launch(args).serve();
        assert_eq!(address.ip(), ip, "{args:?}");
        assert_eq!(get(address, "/").ok(), "Hello, World!", "{args:?}");
        let exit = host.terminate();
        assert_eq!(
            exit.stderr[0],
            format!("Serving HTTP on http://[{ip}]:{}/", address.port())
        );
    }
}

#[test]
fn fc_097_the_unspecified_ipv6_address_takes_ipv4_clients_too() {
    if TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_err() {
        return;
    }
    let (_host, address) = launch(&["--addr", "[::]:0"]).serve();
    let by_ipv4 = SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()));
    assert_eq!(get(by_ipv4, "/").ok(), "Hello, World!");
}

#[test]
fn fc_097_names_are_resolved() {
    let (_host, address) = launch(&["--addr", "localhost:0"]).serve();
    assert!(address.ip().is_loopback(), "{address}");
    assert_eq!(get(address, "/").ok(), "Hello, World!");
}

#[test]
fn fc_097_what_is_no_address_is_refused() {
    let texts = [
        "",
        "1.2.3.4:99999",
        "1.2.3.4:",
        "127.0.0.1:x",
        "127.0.0.1:-1",
        "[::1",
        "[::1]8080",
        "[x]:1",
        "http://127.0.0.1",
        "a b",
        "unix:/tmp/socket",
        "127.0.0.1:80:80",
    ];
    for text in texts {
        let exit = launch(&[&format!("--addr={text}")]).run();
        assert_eq!(exit.code(), 2, "`{text}`: {exit:?}");
        assert_eq!(exit.stdout, "", "`{text}`");
        // All is said on the first line; the rest is the pointer to the help text.
        let (first, rest) = exit.stderr.split_first().expect("a line");
        assert!(
            first.starts_with("error: ") && first.contains(text),
            "`{text}`: {first}"
        );
        assert!(first.contains("--addr"), "`{text}`: {first}");
        let rest: Vec<_> = rest.iter().filter(|line| !line.is_empty()).collect();
        assert!(
            rest.iter().all(|line| line.contains("--help")),
            "`{text}`: {rest:?}"
        );
    }
}

/// An address of the documentation range belongs to no machine (RFC 5737).
#[test]
fn fc_097_an_address_of_another_machine_is_refused() {
    let exit = launch(&["--addr", "192.0.2.1:0"]).run();
    assert_eq!(exit.code(), 1, "{exit:?}");
    assert!(exit.one_error().contains("192.0.2.1:0"), "{exit:?}");
}
