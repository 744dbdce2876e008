//! Every child process of the run. Each leads a process group of its own, so that its workers go with it, and is
//! ended when its [`Member`] is dropped or when the whole family is.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::ServerError;

/// The process groups that run. Clones are the same family.
#[derive(Debug, Clone, Default)]
pub struct Family {
    groups: Arc<Mutex<Groups>>,
}

/// A leader stays in `running` until just before it is reaped, so no id in it can belong to another process.
#[derive(Debug, Default)]
struct Groups {
    running: BTreeSet<i32>,
    ended: bool,
}

impl Family {
    /// Starts a process as the leader of a new group.
    ///
    /// # Errors
    /// It cannot be started, or the family has been ended.
    pub fn spawn(&self, command: &mut Command) -> Result<Member, ServerError> {
        let program = PathBuf::from(command.get_program());
        let spawn = |source| ServerError::Spawn {
            program: program.clone(),
            source,
        };
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if groups.ended {
            return Err(ServerError::Interrupted);
        }
        let mut child = command.process_group(0).spawn().map_err(spawn)?;
        let pid = Pid::from_child(&child);
        let pidfd = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                end_group(pid);
                drop(child.wait());
                return Err(spawn(error.into()));
            }
        };
        groups.running.insert(pid.as_raw_pid());
        Ok(Member {
            family: self.clone(),
            child,
            pid,
            pidfd,
        })
    }

    /// Ends every process at once and lets no other start.
    pub fn end(&self) {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.ended = true;
        for pid in groups.running.iter().copied().filter_map(Pid::from_raw) {
            end_group(pid);
        }
    }

    /// Whether [`Family::end`] was called.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.ended
    }
}

/// A child process with all that it starts. Dropping it kills them.
#[derive(Debug)]
pub struct Member {
    family: Family,
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
}

impl Member {
    /// The process id, which is also that of its group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output, once, if it was piped.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its standard error, once, if it was piped.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        // The process is not reaped yet, so the id is its own; an error means that it has ended already.
        rustix::process::kill_process(self.pid, Signal::TERM).unwrap_or_default();
    }

    /// Waits until it has ended, for so long. Whether it has.
    #[must_use]
    pub fn has_ended(&self, wait: Duration) -> bool {
        let wait = Timespec::try_from(wait).ok();
        let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
        rustix::event::poll(&mut polled, wait.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// Whether its family was ended: then that it has ended is no surprise.
    #[must_use]
    pub fn is_unwanted(&self) -> bool {
        self.family.is_ended()
    }

    /// How it ended. Blocks until it has; what it started is killed then.
    ///
    /// # Errors
    /// What the system says.
    pub fn status(&mut self) -> Result<ExitStatus, ServerError> {
        let end = PollFd::new(&self.pidfd, PollFlags::IN);
        while rustix::event::poll(&mut [end.clone()], None) == Err(rustix::io::Errno::INTR) {}
        self.forget();
        self.child
            .wait()
            .map_err(ServerError::io("cannot wait for a child process"))
    }

    /// Kills what is left of the group and strikes it from the list. Must come before `wait`, which frees the id.
    fn forget(&self) {
        let groups = &self.family.groups;
        let mut groups = groups.lock().unwrap_or_else(PoisonError::into_inner);
        if groups.running.remove(&self.pid.as_raw_pid()) {
            end_group(self.pid);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.forget();
        drop(self.child.wait());
    }
}

fn end_group(pid: Pid) {
    // An error means that there is nobody left.
    rustix::process::kill_process_group(pid, Signal::KILL).unwrap_or_default();
}
