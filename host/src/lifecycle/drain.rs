//! The end of a host: no new connections, idle ones closed at once, requests in flight finished, all within
//! a limit.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::task::Tasks;

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Everything that had begun was finished.
    Clean,
    /// The limit or a second signal cut this many connections and guests.
    Cut(usize),
}

/// Begins the drain and waits for its end, for `limit`, or for `cut` to resolve.
pub(crate) async fn drain(
    begin: &watch::Sender<bool>,
    tasks: &Tasks,
    limit: Option<Duration>,
    cut: impl Future<Output = ()>,
) -> Drained {
    begin.send_replace(true);
    let started = Instant::now();
    let left_over = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let reason = tokio::select! {
        () = tasks.finished() => {
            tracing::info!(seconds = started.elapsed().as_secs_f32(), "drained");
            return Drained::Clean;
        }
        () = left_over => "the drain took too long",
        () = cut => "a second signal came",
    };
    let left = tasks.len();
    tracing::warn!(
        reason,
        left,
        "drain ended early: connections and guests were cut"
    );
    Drained::Cut(left)
}
