//! A server as a process: started, ready, watched, stopped.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

use super::family::{Family, Member};
use super::launch::{Launch, Places, Prepared};
use super::{Cpu, Kind, Memory, ServerError, figures};

/// Compiling a guest of 10 MB takes tens of seconds on a slow machine.
const READY_WAIT: Duration = Duration::from_secs(120);

/// An idle server ends within this or is killed.
const STOP_WAIT: Duration = Duration::from_secs(3);

/// A server that runs. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    member: Member,
    address: SocketAddr,
    started: Instant,
    tail: Tail,
    end: Receiver<()>,
}

impl Server {
    /// Starts a server and waits until it says that it listens.
    ///
    /// # Errors
    /// Something is missing, or it does not come up; with the last lines of its standard error.
    pub fn start(launch: &Launch, places: &Places, family: &Family) -> Result<Self, ServerError> {
        let prepared = launch.prepare(places, family)?;
        Self::start_prepared(launch.kind, prepared, family)
    }

    pub(super) fn start_prepared(
        kind: Kind,
        mut prepared: Prepared,
        family: &Family,
    ) -> Result<Self, ServerError> {
        let started = Instant::now();
        let mut member = family.spawn(&mut prepared.command)?;
        let tail = Tail::default();
        let lines = tail.follow(member.stderr())?;
        let address = loop {
            let left = READY_WAIT.saturating_sub(started.elapsed());
            match lines.each.recv_timeout(left) {
                Ok(line) => {
                    if let Some(found) = ready(kind, prepared.address, &line) {
                        break found;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(ServerError::NotReady {
                        name: kind.program(),
                        waited: READY_WAIT.as_secs(),
                        tail: tail.text(),
                    });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ServerError::Died {
                        name: kind.program(),
                        status: member.status()?,
                        tail: tail.text(),
                    });
                }
            }
        };
        Ok(Self {
            kind,
            member,
            address,
            started,
            tail,
            end: lines.end,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// When its process was started.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Its memory now.
    ///
    /// # Errors
    /// It has ended.
    pub fn memory(&mut self) -> Result<Memory, ServerError> {
        self.check()?;
        figures::memory(self.member.id())
    }

    /// Its processor time so far.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu(&mut self) -> Result<Cpu, ServerError> {
        self.check()?;
        figures::cpu(self.member.id())
    }

    /// The last lines of its standard error.
    #[must_use]
    pub fn log(&self) -> String {
        self.tail.text()
    }

    /// That it still runs.
    ///
    /// # Errors
    /// It has ended; with the last lines of its standard error.
    pub fn check(&mut self) -> Result<(), ServerError> {
        self.watch(Duration::ZERO)
    }

    /// Waits, and makes sure that it runs all the while.
    ///
    /// # Errors
    /// It has ended.
    pub fn watch(&mut self, wait: Duration) -> Result<(), ServerError> {
        if !self.member.has_ended(wait) {
            return Ok(());
        }
        if self.member.is_unwanted() {
            return Err(ServerError::Interrupted);
        }
        let status = self.member.status()?;
        await_end(&self.end);
        Err(ServerError::Died {
            name: self.kind.program(),
            status,
            tail: self.tail.text(),
        })
    }

    /// Asks it to end, kills it if it does not.
    ///
    /// # Errors
    /// It had ended before.
    pub fn stop(mut self) -> Result<(), ServerError> {
        self.check()?;
        self.member.terminate();
        // Whoever does not end in time is killed by the drop.
        let _in_time = self.member.has_ended(STOP_WAIT);
        Ok(())
    }
}

/// The address, if this line says that the server listens.
fn ready(kind: Kind, known: Option<SocketAddr>, line: &str) -> Option<SocketAddr> {
    let (_, after) = line.split_once(kind.ready_mark())?;
    if known.is_some() {
        return known;
    }
    let end = after.find('/').unwrap_or(after.len());
    let mut address: SocketAddr = after.get(..end)?.trim().parse().ok()?;
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    Some(address)
}

/// Runs a command to its end and hands back its standard output and its standard error.
pub(crate) fn complete(
    what: &str,
    command: &mut Command,
    family: &Family,
) -> Result<(String, String), ServerError> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut member = family.spawn(command)?;
    let tail = Tail::default();
    let lines = tail.follow(member.stderr())?;
    let mut output = String::new();
    if let Some(mut stdout) = member.stdout() {
        stdout
            .read_to_string(&mut output)
            .map_err(ServerError::io(format!("cannot read what {what} prints")))?;
    }
    let said: Vec<String> = lines.each.iter().collect();
    let status = member.status()?;
    if !status.success() {
        return Err(ServerError::Prepare {
            what: what.to_owned(),
            status,
            tail: if said.is_empty() {
                output.trim_end().to_owned()
            } else {
                tail.text()
            },
        });
    }
    Ok((output, said.join("\n")))
}

/// The last lines of a process' standard error. A thread reads them all, so that the process never waits for us.
#[derive(Debug, Clone, Default)]
struct Tail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

/// What a thread that reads a [`Tail`] hands out.
#[derive(Debug)]
struct Lines {
    /// Every line, while somebody listens.
    each: Receiver<String>,
    /// Hangs up when the thread ends.
    end: Receiver<()>,
}

/// How long the last lines of an ended process may take to arrive.
const LAST_LINES_WAIT: Duration = Duration::from_secs(1);

/// Waits for the last lines of a process that has ended.
fn await_end(end: &Receiver<()>) {
    // Nothing is ever sent: what comes is the end or, if somebody else holds the pipe, the timeout.
    let _ended = end.recv_timeout(LAST_LINES_WAIT);
}

impl Tail {
    const LINES: usize = 8;

    /// Reads to the end in a thread. Lines also go to the receiver while there is one; it hangs up at the end.
    fn follow(&self, stderr: Option<ChildStderr>) -> Result<Lines, ServerError> {
        let (sender, each) = channel();
        let (alive, end) = channel();
        if let Some(stderr) = stderr {
            let tail = self.clone();
            thread::Builder::new()
                .name("stderr".to_owned())
                .spawn(move || {
                    tail.read(stderr, &sender);
                    drop(alive);
                })
                .map_err(ServerError::io("cannot start a thread"))?;
        }
        Ok(Lines { each, end })
    }

    fn read(&self, stderr: ChildStderr, sender: &Sender<String>) {
        let mut reader = BufReader::new(stderr);
        let mut bytes = Vec::new();
        while reader
            .read_until(b'\n', &mut bytes)
            .is_ok_and(|read| read > 0)
        {
            let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            bytes.clear();
            self.push(line.clone());
            // Nobody listens once the server is ready.
            drop(sender.send(line));
        }
    }

    fn push(&self, line: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == Self::LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
