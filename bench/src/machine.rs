//! The machine that a comparison ran on, and the versions of what was compared.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::server::{Family, Kind, Places, complete};

/// A machine at a time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Processors that may be used.
    pub cores: usize,
    /// Bytes.
    pub memory: u64,
    /// The kernel's version.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// When the run began, UTC.
    pub date: String,
    /// Every server and client that is there, with its version.
    pub versions: Vec<(String, String)>,
    /// Every server and client that is not, with what would bring it.
    pub missing: Vec<(String, String)>,
}

impl Machine {
    /// This one, now.
    #[must_use]
    pub fn read(places: &Places, family: &Family) -> Self {
        let (versions, missing) = versions(places, family);
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let system = value(&release, "PRETTY_NAME", '=')
            .trim_matches('"')
            .to_owned();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: processor(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory: memory(),
            kernel: kernel.trim().to_owned(),
            system,
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            versions,
            missing,
        }
    }
}

fn processor() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    match value(&about, "model name", ':') {
        "" => std::env::consts::ARCH.to_owned(),
        name => name.to_owned(),
    }
}

fn memory() -> u64 {
    let about = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = value(&about, "MemTotal", ':').split_whitespace().next();
    total.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// The first value of a key in lines of `key <separator> value`.
fn value<'a>(text: &'a str, key: &str, separator: char) -> &'a str {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find_map(|(name, value)| (name.trim() == key).then_some(value.trim()))
        .unwrap_or_default()
}

type Named = Vec<(String, String)>;

fn versions(places: &Places, family: &Family) -> (Named, Named) {
    let mut versions = Vec::new();
    let mut missing = Vec::new();
    for kind in Kind::ALL {
        let name = kind.program().to_owned();
        match places.program(kind) {
            Err(reason) => missing.push((name, reason.to_string())),
            Ok(program) => versions.push((name, version(kind, program, places, family))),
        }
    }
    // wrk prints its version with its usage and fails.
    for (client, flag, hint) in [
        ("wrk", "-v", "install wrk"),
        ("ab", "-V", "install apache2-utils"),
    ] {
        match places.find(client) {
            None => missing.push((client.to_owned(), format!("`{client}` is missing: {hint}"))),
            Some(program) => {
                let mut command = Command::new(program);
                let version = match complete(client, command.arg(flag), family) {
                    Ok(said) => first_line(Some(said)),
                    Err(error) => wrk_version(&error.to_string()),
                };
                versions.push((client.to_owned(), version));
            }
        }
    }
    (versions, missing)
}

/// Our native peers are what their libraries are.
fn version(kind: Kind, program: PathBuf, places: &Places, family: &Family) -> String {
    let locked = |name: &str| {
        let lock = places.root.join("bench/peers/native/Cargo.lock");
        locked_version(&fs::read_to_string(lock).unwrap_or_default(), name)
    };
    let mut command = match kind {
        Kind::Hyper => return locked("hyper"),
        Kind::Axum => return locked("axum"),
        Kind::Fasthttp => {
            let mut command = Command::new("go");
            command.arg("version").arg(program);
            command
        }
        Kind::Cloudgo | Kind::Wasmtime | Kind::Nginx => {
            let mut command = Command::new(program);
            command.arg(kind.version_flag());
            command
        }
    };
    let line = first_line(complete(kind.program(), &mut command, family).ok());
    // `go version` begins with the path.
    match (kind, line.rsplit_once(": ")) {
        (Kind::Fasthttp, Some((_, version))) => version.to_owned(),
        _ => line,
    }
}

fn locked_version(lock: &str, name: &str) -> String {
    let entry = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|line| *line != entry);
    let line = lines.nth(1).unwrap_or_default();
    match line.split('"').nth(1) {
        Some(version) => format!("{name} {version}"),
        None => name.to_owned(),
    }
}

fn first_line(said: Option<(String, String)>) -> String {
    let (out, err) = said.unwrap_or_default();
    let mut lines = out.lines().chain(err.lines()).map(str::trim);
    let line = lines.find(|line| !line.is_empty());
    line.unwrap_or("version unknown").to_owned()
}

fn wrk_version(text: &str) -> String {
    let version = text.split_once("it said: ").map(|(_, said)| said);
    let version = version.and_then(|said| said.split(" Copyright").next());
    version.unwrap_or("version unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_key() {
        let text = "MemFree: 5 kB\nMemTotal:   16384 kB\nmodel name\t: A CPU: B\n";
        assert_eq!(value(text, "MemTotal", ':'), "16384 kB");
        assert_eq!(value(text, "model name", ':'), "A CPU: B");
        assert_eq!(value(text, "none", ':'), "");
    }

    #[test]
    fn locked_versions_are_found() {
        let lock = "[[package]]\nname = \"hyper-util\"\nversion = \"0.1\"\n\n[[package]]\nname = \"hyper\"\nversion = \"1.12.0\"\n";
        assert_eq!(locked_version(lock, "hyper"), "hyper 1.12.0");
        assert_eq!(locked_version(lock, "axum"), "axum");
    }

    #[test]
    fn the_version_of_wrk_is_in_its_usage() {
        let said = "wrk failed (exit status: 1); it said: wrk debian/4.1.0 [epoll] Copyright (C) 2012 | Usage";
        assert_eq!(wrk_version(said), "wrk debian/4.1.0 [epoll]");
        assert_eq!(wrk_version("?"), "version unknown");
    }
}
