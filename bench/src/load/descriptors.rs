//! Open files: one for each connection.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::load::LoadError;

/// Files that the process needs beside its connections.
const OTHER_FILES: u64 = 64;

/// Raises the soft limit of open files to the hard one and checks that it allows `connections`.
pub(super) fn allow(connections: usize) -> Result<(), LoadError> {
    let needed = connections as u64;
    let limit = getrlimit(Resource::Nofile);
    let enough =
        |allowed: Option<u64>| allowed.is_none_or(|allowed| allowed >= needed + OTHER_FILES);
    if enough(limit.current) {
        return Ok(());
    }
    if let (false, Some(allowed)) = (enough(limit.maximum), limit.maximum) {
        return Err(LoadError::Descriptors { needed, allowed });
    }
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| LoadError::Client(error.into()))
}
