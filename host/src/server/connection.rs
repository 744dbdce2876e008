//! One client's TCP connection: what phase it is in and for how long, and whether the client is still there.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{Interest, Ready};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::config::ListenerConfig;

/// An interim response that every HTTP/1.1 client must be able to skip (RFC 9110, 15.2).
const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// How long a client that has closed its sending side is left alone before it is probed.
const HALF_CLOSE_GRACE: Duration = Duration::from_millis(500);
/// How long a connection must have been idle to be closed by a drain without further ado.
const DRAIN_QUIET: Duration = Duration::from_millis(200);
/// How long a drain waits for an HTTP/2 client without streams to say goodbye as well.
const FAREWELL: Duration = Duration::from_secs(1);
const TIMEOUT_ANSWER: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// What the connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first byte of its life.
    Fresh,
    /// The rest of a request head. HTTP/2 has no such phase.
    Head,
    /// A guest, or the end of a request's body.
    Busy,
    /// The next request.
    Idle,
}

/// How a connection takes part in a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainStep {
    /// Nothing more is read from it: it is closed at once, or after the requests in flight.
    Stop,
    /// A request has begun to arrive: it is to be read first.
    Wait,
    /// Its last request was a moment ago, so that the next one may be on its way: not before this instant.
    Until(Instant),
}

#[derive(Debug)]
struct Progress {
    phase: Phase,
    since: Instant,
    in_flight: usize,
    http2: bool,
    /// Bytes of the HTTP/2 preface that have come so far, while nothing else has.
    preface: usize,
    /// Since when the host drains.
    draining: Option<Instant>,
    /// Since when the client has taken nothing of what is to be written.
    write_stalled: Option<Instant>,
    /// Bytes may be left in the HTTP library's own buffer.
    unflushed: bool,
}

impl Progress {
    /// Compares the first bytes of a connection, which may come in pieces, with what begins HTTP/2.
    fn see_preface(&mut self, bytes: &[u8]) {
        let begins = self.phase == Phase::Fresh || self.preface > 0;
        if self.http2 || !begins {
            return;
        }
        let wanted = HTTP2_PREFACE.get(self.preface..).unwrap_or_default();
        let length = wanted.len().min(bytes.len());
        if wanted.get(..length) == bytes.get(..length) {
            self.preface += length;
            self.http2 = self.preface == HTTP2_PREFACE.len();
        } else {
            self.preface = 0;
        }
    }
}

/// A connection as its requests see it.
pub(super) struct Connection {
    stream: TcpStream,
    progress: Mutex<Progress>,
    changed: Notify,
    streams: Mutex<Vec<Weak<dyn Stalling>>>,
    limits: Limits,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    head: Option<Duration>,
    keep_alive: Option<Duration>,
    write_idle: Option<Duration>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

/// A response that its client can stop without stopping the connection.
pub(super) trait Stalling: Send + Sync {
    /// Since when the client has not asked for more.
    fn since(&self) -> Option<Instant>;

    /// The client has had time enough: the response is dropped, and with it its guest.
    fn give_up(&self);
}

/// Marks one request as in flight for as long as it lives.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Connection>);

impl InFlight {
    /// The request's connection.
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut progress = self.0.progress();
        progress.in_flight -= 1;
        if progress.in_flight == 0 {
            progress.phase = Phase::Idle;
            progress.since = Instant::now();
        }
    }
}

impl Connection {
    pub(super) fn new(stream: TcpStream, config: &ListenerConfig) -> Arc<Self> {
        Arc::new(Self {
            stream,
            progress: Mutex::new(Progress {
                phase: Phase::Fresh,
                since: Instant::now(),
                in_flight: 0,
                http2: false,
                preface: 0,
                draining: None,
                write_stalled: None,
                unflushed: false,
            }),
            changed: Notify::new(),
            streams: Mutex::default(),
            limits: Limits {
                head: config.head,
                keep_alive: config.keep_alive,
                write_idle: config.write_idle,
            },
        })
    }

    /// A request's head has been read.
    pub(super) fn begin_request(self: &Arc<Self>) -> InFlight {
        let mut progress = self.progress();
        progress.in_flight += 1;
        progress.phase = Phase::Busy;
        drop(progress);
        self.changed.notify_waiters();
        InFlight(Arc::clone(self))
    }

    /// Resolves when bytes have come or a request has begun.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Whether the host drains: then each answer is the last of its connection.
    pub(super) fn is_draining(&self) -> bool {
        self.progress().draining.is_some()
    }

    /// What a drain does with this connection now.
    pub(super) fn drain_step(&self) -> DrainStep {
        let mut progress = self.progress();
        progress.draining.get_or_insert_with(Instant::now);
        match progress.phase {
            // HTTP/2 has a farewell of its own, after which streams that have begun still end.
            _ if progress.http2 => DrainStep::Stop,
            Phase::Busy => DrainStep::Stop,
            Phase::Head => DrainStep::Wait,
            // Bytes that the system has and nobody has read yet are a request, too.
            Phase::Fresh | Phase::Idle if self.has_unread() => DrainStep::Wait,
            Phase::Fresh => DrainStep::Stop,
            Phase::Idle => {
                let quiet = progress.since + DRAIN_QUIET;
                if Instant::now() < quiet {
                    DrainStep::Until(quiet)
                } else {
                    DrainStep::Stop
                }
            }
        }
    }

    fn has_unread(&self) -> bool {
        let mut byte = [0_u8; 1];
        let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
        matches!(
            rustix::net::recv(&self.stream, &mut byte, flags),
            Ok((_, 1..))
        )
    }

    /// Resolves when the client is gone: its end was reset, or it has closed its sending side and answers a
    /// probe with a reset. A client that has only closed its sending side still gets its answer. Without
    /// `may_probe` (interim responses are not for HTTP/1.0) the two look the same until the answer is written.
    pub(super) async fn vanished(&self, may_probe: bool) {
        // Urgent data is not registered for, so this waits for the closed reading side or an error.
        let closed = self
            .stream
            .ready(Interest::PRIORITY | Interest::ERROR)
            .await;
        if !matches!(closed, Ok(ready) if !is_dead(ready)) {
            return;
        }
        if self.progress().http2 {
            return;
        }
        if may_probe {
            tokio::time::sleep(HALF_CLOSE_GRACE).await;
            self.probe();
        }
        self.reset().await;
    }

    /// Resolves when the client has reset the connection.
    pub(super) async fn reset(&self) {
        let _ = self.stream.ready(Interest::ERROR).await;
    }

    fn probe(&self) {
        let progress = self.progress();
        if !progress.unflushed && progress.in_flight == 1 {
            // A full socket means that the client is there, or that the write timer will see to it.
            let _ = self.stream.try_write(PROBE);
        }
    }

    /// Everything that was to be written has been given to the system.
    pub(super) fn saw_flush(&self) {
        self.progress().unflushed = false;
    }

    /// The socket itself.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the client speaks HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.progress().http2
    }

    /// Gives up this stream when its client stops it for too long.
    pub(super) fn watch(&self, stream: Weak<dyn Stalling>) {
        if self.limits.write_idle.is_some() {
            self.streams().push(stream);
        }
    }

    /// Gives up the streams that have been stopped for too long. Tells when the next one will have been.
    pub(super) fn give_up_stalled(&self) -> Option<Instant> {
        let limit = self.limits.write_idle?;
        let mut streams = self.streams();
        if streams.is_empty() {
            return None;
        }
        streams.retain(|stream| stream.strong_count() > 0);
        let live: Vec<_> = streams.iter().filter_map(Weak::upgrade).collect();
        drop(streams);
        let now = Instant::now();
        let mut next = None;
        for stream in live {
            let Some(end) = stream.since().map(|since| since + limit) else {
                continue;
            };
            if end <= now {
                tracing::debug!("response dropped: its client took nothing of it for too long");
                stream.give_up();
            } else {
                next = Some(next.map_or(end, |next: Instant| next.min(end)));
            }
        }
        next
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<Weak<dyn Stalling>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the present phase must be over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let progress = self.progress();
        let limit = match progress.phase {
            Phase::Fresh => self.limits.head,
            Phase::Head => self.limits.head,
            Phase::Busy => None,
            Phase::Idle => self.limits.keep_alive,
        };
        let phase = match progress.draining {
            Some(since) if progress.http2 && progress.in_flight == 0 => {
                Some(since.max(progress.since) + FAREWELL)
            }
            _ => limit.map(|limit| progress.since + limit),
        };
        let write = progress
            .write_stalled
            .zip(self.limits.write_idle)
            .map(|(since, limit)| since + limit);
        match (phase, write) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Bytes have come from the client, or with none of them its end.
    pub(super) fn saw_bytes(&self, bytes: &[u8]) {
        // Whoever waits for this asks again after the bytes have been looked at.
        self.changed.notify_waiters();
        if bytes.is_empty() {
            return;
        }
        let mut progress = self.progress();
        progress.see_preface(bytes);
        if progress.http2 {
            // HTTP/2 has no phase of its own for heads; an idle connection is one without streams.
            if matches!(progress.phase, Phase::Fresh | Phase::Head) {
                progress.phase = Phase::Idle;
                progress.since = Instant::now();
            }
        } else if matches!(progress.phase, Phase::Fresh | Phase::Idle) {
            progress.phase = Phase::Head;
            progress.since = Instant::now();
        }
    }

    /// Bytes were offered to the system; it took them, or it did not.
    pub(super) fn saw_write(&self, written: &Poll<io::Result<usize>>) {
        let mut progress = self.progress();
        match written {
            Poll::Pending => {
                progress.write_stalled.get_or_insert_with(Instant::now);
            }
            Poll::Ready(_) => progress.write_stalled = None,
        }
        progress.unflushed = true;
    }

    /// Tells a client that is slow with its head why it is cut off.
    pub(super) fn answer_timeout(&self) {
        let progress = self.progress();
        if progress.phase == Phase::Head && !progress.unflushed {
            let _ = self.stream.try_write(TIMEOUT_ANSWER);
        }
    }
}

fn is_dead(ready: Ready) -> bool {
    ready.is_error() || ready.is_write_closed()
}
