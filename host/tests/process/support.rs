//! Starts the binary and watches it: stderr line by line, stdout, signals, the exit. Every wait has a
//! deadline, and no child outlives its test.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::time::Instant;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_cloudgo-host");
/// For what must happen at all: an unoptimised host compiles a guest for many seconds on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(180);
/// For what must happen soon. Shorter than the drain's default of 30 seconds, so that a wait for that fails.
pub(crate) const SOON: Duration = Duration::from_secs(20);

const SERVING: &str = "Serving HTTP on http://";
const VARIABLES: [&str; 5] = [
    "CLOUDGO_HOST_PORT",
    "CLOUDGO_HOST_ADDR",
    "CLOUDGO_HOST_LOG",
    "CLOUDGO_HOST_LOG_FORMAT",
    "CLOUDGO_HOST_CACHE_DIR",
];

/// A command line in the making.
#[derive(Debug)]
pub(crate) struct Launch(Command);

impl Launch {
    /// The usual one: a guest by its name, a free port of the loopback address, the shared cache.
    pub(crate) fn guest(name: &str) -> Self {
        Self::file(&guest(name))
    }

    /// The same with a cache of its own.
    pub(crate) fn guest_in(cache: &Path, name: &str) -> Self {
        Self::bare()
            .cached_in(cache, &guest(name))
            .args(["--addr", "127.0.0.1:0"])
    }

    /// The usual one with a component's file.
    pub(crate) fn file(component: &Path) -> Self {
        Self::bare().loopback(component)
    }

    /// The binary without arguments.
    pub(crate) fn bare() -> Self {
        Self::from(Command::new(BINARY))
    }

    /// The binary without arguments, started by a shell that has set a limit.
    pub(crate) fn under(limit: &str) -> Self {
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("{limit} && exec \"$0\" \"$@\""))
            .arg(BINARY);
        Self::from(shell)
    }

    fn from(mut command: Command) -> Self {
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        // Where an error would show a backtrace, it shall do so in the tests.
        command.env("RUST_BACKTRACE", "1");
        Self(command)
    }

    /// Adds the usual arguments.
    pub(crate) fn loopback(self, component: &Path) -> Self {
        self.cached(component).args(["--addr", "127.0.0.1:0"])
    }

    /// Adds the usual arguments without an address.
    pub(crate) fn cached(self, component: &Path) -> Self {
        self.cached_in(&shared_cache(), component)
    }

    /// Adds a component and the folder for its compiled code.
    pub(crate) fn cached_in(self, cache: &Path, component: &Path) -> Self {
        self.args([
            "--cache-dir".as_ref(),
            cache.as_os_str(),
            component.as_os_str(),
        ])
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.0.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// Starts it.
    pub(crate) fn spawn(self) -> Process {
        let (mut process, stderr) = self.spawn_unread();
        process.stderr = lines(stderr);
        process
    }

    /// Starts it with a stderr of the test's own.
    pub(crate) fn spawn_into(self, stderr: impl Into<Stdio>) -> Process {
        self.spawn_with(stderr.into())
    }

    /// Starts it and waits until it serves.
    pub(crate) fn serve(self) -> (Process, SocketAddr) {
        let mut process = self.spawn();
        let first = process.next_line();
        let address = first.as_deref().and_then(served_address);
        let Some(address) = address else {
            panic!(
                "does not serve: {first:?}, {:?}",
                process.exit_within(DEADLINE)
            );
        };
        (process, address)
    }

    /// Starts it, waits until it serves, and reads no further line of its stderr.
    pub(crate) fn serve_unread(self) -> (Process, SocketAddr, ChildStderr) {
        let (process, mut stderr) = self.spawn_unread();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut first = Vec::new();
            let mut byte = [0];
            while matches!(stderr.read(&mut byte), Ok(1)) && byte != *b"\n" {
                first.extend(byte);
            }
            // The test may have given up.
            let _ = sender.send((String::from_utf8_lossy(&first).into_owned(), stderr));
        });
        let (first, stderr) = receiver
            .recv_timeout(DEADLINE)
            .expect("a first line on stderr");
        let address = served_address(&first).unwrap_or_else(|| panic!("does not serve: {first}"));
        (process, address, stderr)
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Exit {
        self.spawn().exit_within(DEADLINE)
    }

    fn spawn_unread(self) -> (Process, ChildStderr) {
        let mut process = self.spawn_with(Stdio::piped());
        let stderr = process.child.stderr.take().expect("it is piped");
        (process, stderr)
    }

    fn spawn_with(mut self, stderr: Stdio) -> Process {
        self.0
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr);
        let mut child = self.0.spawn().expect("the binary starts");
        let stdout = whole(child.stdout.take().expect("it is piped"));
        let (_, no_lines) = mpsc::channel();
        Process {
            child,
            stdout,
            stderr: no_lines,
            seen: Vec::new(),
        }
    }
}

/// A running host, killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// What it wrote to stdout, when it has ended. The host never closes stdout itself.
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<String>,
    seen: Vec<String>,
}

/// A host that has ended.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    /// All lines, also those that were looked at before.
    pub(crate) stderr: Vec<String>,
}

impl Process {
    /// The next line of stderr, or `None` at its end.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        let line = match self.stderr.recv_timeout(DEADLINE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no further line: {:?}", self.seen),
        };
        self.seen.push(line.clone());
        Some(line)
    }

    /// Reads stderr up to a line that has this text.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        while let Some(line) = self.next_line() {
            if line.contains(text) {
                return line;
            }
        }
        panic!("ended without a line with `{text}`: {:?}", self.seen);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the process is there");
    }

    /// Stops it, so that what happens meanwhile is there at once when it continues.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        let stopped = waitid(
            WaitId::Pid(Pid::from_child(&self.child)),
            WaitIdOptions::STOPPED,
        );
        assert!(stopped.unwrap().is_some_and(|status| status.stopped()));
    }

    /// Waits for the end.
    pub(crate) fn exit_within(&mut self, limit: Duration) -> Exit {
        let Ok(stdout) = self.stdout.recv_timeout(limit) else {
            let rest: Vec<_> = self.stderr.try_iter().collect();
            panic!("still runs after {limit:?}: {:?}, {rest:?}", self.seen);
        };
        let status = self
            .child
            .wait()
            .expect("a child that has closed its stdout ends");
        self.seen.extend(self.stderr.iter());
        let stdout = String::from_utf8(stdout).expect("stdout is UTF-8");
        Exit {
            status,
            stdout,
            stderr: std::mem::take(&mut self.seen),
        }
    }

    /// Ends it with SIGTERM, which must be a clean end.
    pub(crate) fn terminate(&mut self) -> Exit {
        self.signal(Signal::TERM);
        let exit = self.exit_within(SOON);
        assert_eq!(exit.code(), 0, "{exit:?}");
        exit
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Exit {
    /// The exit code of a process that no signal has killed.
    pub(crate) fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| panic!("killed by a signal: {self:?}"))
    }

    /// Whether the process says on one line, and nowhere else, why it ends.
    pub(crate) fn one_error(&self) -> &str {
        let [line] = self.stderr.as_slice() else {
            panic!("not one line: {self:?}")
        };
        assert!(line.starts_with("error: "), "{line}");
        assert!(
            !line.contains("panicked") && !line.contains("backtrace"),
            "{line}"
        );
        assert_eq!(self.stdout, "");
        line
    }
}

/// A guest's file.
pub(crate) fn guest(name: &str) -> PathBuf {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../guest/target/wasm32-wasip2/release"
    );
    let path = Path::new(folder).join(format!("{name}.wasm"));
    assert!(
        path.is_file(),
        "{} is missing: run `make guests`",
        path.display()
    );
    path
}

/// One cache for all tests, so that each guest is compiled once.
fn shared_cache() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("process-cache");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .expect("a folder for the cache");
    folder
}

/// An empty folder for one test.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder")
}

/// Asks again and again until the answer is yes, for what nobody announces.
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !happened() {
        assert!(Instant::now() < end, "{what}: not within {DEADLINE:?}");
        thread::yield_now();
    }
}

pub(crate) fn served_address(line: &str) -> Option<SocketAddr> {
    line.strip_prefix(SERVING)?.strip_suffix('/')?.parse().ok()
}

fn lines(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n') {
            let Ok(line) = line else { return };
            let line = String::from_utf8(line)
                .unwrap_or_else(|error| format!("not UTF-8: {:?}", error.into_bytes()));
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn whole(mut stdout: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}
