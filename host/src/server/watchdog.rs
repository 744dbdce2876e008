//! One timer for all that a connection waits for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

use super::connection::Connection;

/// Fires when a phase of the connection takes too long. Polled together with the connection itself.
#[derive(Debug)]
pub(super) struct Watchdog {
    connection: Arc<Connection>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Watchdog {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self {
            connection,
            sleep: None,
        }
    }

    /// Ready when the connection must be closed.
    pub(super) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let closed = self.connection.deadline();
            let given_up = self.connection.give_up_stalled();
            let Some(end) = closed.into_iter().chain(given_up).min() else {
                return Poll::Pending;
            };
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(end)));
            // A timer that is set too early finds out when it fires; moving it at every request costs more.
            if sleep.deadline() > end || sleep.is_elapsed() {
                sleep.as_mut().reset(end);
            }
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if closed.is_some_and(|closed| Instant::now() >= closed) {
                self.connection.answer_timeout();
                return Poll::Ready(());
            }
        }
    }
}
