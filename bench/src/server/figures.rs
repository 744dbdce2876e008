//! What `/proc` tells about a process group: memory and processor time, summed over its processes, because nginx
//! answers in workers.

use std::fs;
use std::io::{Error, ErrorKind};
use std::time::Duration;

use super::ServerError;

/// Memory that is resident now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes, pages that are shared counted once for each process.
    pub rss: u64,
    /// Bytes, each process with its part of what it shares.
    pub pss: u64,
}

/// Processor time since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In the program.
    pub user: Duration,
    /// In the kernel on its behalf.
    pub system: Duration,
}

impl Cpu {
    /// Both together.
    #[must_use]
    pub fn total(self) -> Duration {
        self.user + self.system
    }
}

/// The memory of a process group.
///
/// # Errors
/// There is no such group.
pub fn memory(group: u32) -> Result<Memory, ServerError> {
    let mut sum = Memory::default();
    for stat in members(group)? {
        // A process may end between two reads: it has no memory then.
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", stat.pid));
        let rollup = rollup.unwrap_or_default();
        sum.rss += kilobytes(&rollup, "Rss:");
        sum.pss += kilobytes(&rollup, "Pss:");
    }
    Ok(sum)
}

/// The processor time of a process group, with that of children which have ended.
///
/// # Errors
/// There is no such group.
pub fn cpu(group: u32) -> Result<Cpu, ServerError> {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let time = |ticks: u64| Duration::from_nanos(ticks * (1_000_000_000 / per_second));
    let mut sum = Cpu::default();
    for stat in members(group)? {
        sum.user += time(stat.user);
        sum.system += time(stat.system);
    }
    Ok(sum)
}

/// The fields of `/proc/<pid>/stat` that matter here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    pid: u32,
    group: u32,
    user: u64,
    system: u64,
}

fn members(group: u32) -> Result<Vec<Stat>, ServerError> {
    let what = format!("cannot read the figures of process group {group}");
    let listing = fs::read_dir("/proc").map_err(ServerError::io(what.clone()))?;
    let found: Vec<Stat> = listing
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
        })
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter_map(|line| parse_stat(&line))
        .filter(|stat| stat.group == group)
        .collect();
    if found.is_empty() {
        let source = Error::new(ErrorKind::NotFound, "no such process group");
        return Err(ServerError::Io { what, source });
    }
    Ok(found)
}

/// The name in parentheses may hold spaces and parentheses, so the fields are counted from its end.
fn parse_stat(line: &str) -> Option<Stat> {
    let (head, rest) = line.rsplit_once(')')?;
    let pid = head.split_whitespace().next()?.parse().ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    Some(Stat {
        pid,
        group: u32::try_from(number(2)?).ok()?,
        user: number(11)? + number(13)?,
        system: number(12)? + number(14)?,
    })
}

fn kilobytes(rollup: &str, key: &str) -> u64 {
    let value = rollup.lines().find_map(|line| line.strip_prefix(key));
    let number = value.and_then(|value| value.split_whitespace().next());
    number
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_behind_a_name_with_spaces_and_parentheses() {
        let line = "42 (a (b) c) S 1 40 40 0 -1 4194560 1 2 3 4 700 300 20 10 20 0 5 0 99 1 2";
        let expected = Stat {
            pid: 42,
            group: 40,
            user: 720,
            system: 310,
        };
        assert_eq!(parse_stat(line), Some(expected));
        assert_eq!(parse_stat("42 (broken"), None);
    }

    #[test]
    fn rollup_is_in_kilobytes() {
        let rollup =
            "5-6 ---p 0 00:00 0 [rollup]\nRss:    1024 kB\nPss:     512 kB\nPss_Dirty:   3 kB\n";
        assert_eq!(kilobytes(rollup, "Rss:"), 1024 * 1024);
        assert_eq!(kilobytes(rollup, "Pss:"), 512 * 1024);
        assert_eq!(kilobytes(rollup, "Swap:"), 0);
    }

    #[test]
    fn a_group_that_does_not_exist_is_an_error() {
        let error = memory(u32::MAX).unwrap_err().to_string();
        assert!(error.contains("4294967295"), "{error}");
    }
}
