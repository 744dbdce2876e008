//! The one accept loop. It ends only when the host drains: what `accept` reports is never fatal.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::http::HttpFront;
use crate::config::ListenerConfig;
use crate::handler::{ConnInfo, Handler};

/// Connections that the system completes while all permits are taken or the loop is busy.
const BACKLOG: i32 = 4096;
/// Pauses after an accept error that will not go away by itself at once (no file descriptors left).
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A socket that has its address and does not listen yet.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    socket: Socket,
    config: Arc<ListenerConfig>,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    local: SocketAddr,
    config: Arc<ListenerConfig>,
}

impl BoundSocket {
    /// Takes the address.
    ///
    /// # Errors
    /// The system's reason.
    pub(crate) fn bind(config: &ListenerConfig) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::for_address(config.address),
            Type::STREAM.nonblocking(),
            Some(Protocol::TCP),
        )?;
        // A restart must not wait for the old connections' TIME_WAIT. A live listener is still refused.
        socket.set_reuse_address(true)?;
        socket.bind(&config.address.into())?;
        Ok(Self {
            socket,
            config: Arc::new(config.clone()),
        })
    }

    /// Listens. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The system's reason.
    pub(crate) fn listen(self) -> io::Result<Listener> {
        self.socket.listen(BACKLOG)?;
        let socket = TcpListener::from_std(self.socket.into())?;
        let local = socket.local_addr()?;
        Ok(Listener {
            socket,
            local,
            config: self.config,
        })
    }
}

impl Listener {
    /// The address, with the port that the system chose.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts and serves until the drain begins; connections go on in their own tasks.
    pub(crate) async fn run(self, handler: Arc<Handler>, mut drain: watch::Receiver<bool>) {
        let most = self.config.connections.min(Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(most));
        // Connections hear of the drain when nothing more is accepted, and not with the listener: told earlier,
        // their clients would come back to a socket that is about to go.
        let (stop, stopping) = watch::channel(false);
        let front = HttpFront::new(Arc::clone(&handler), Arc::clone(&self.config));
        let serve = |stream: TcpStream, peer: SocketAddr, permit| {
            let front = front.clone();
            let stopping = stopping.clone();
            handler.tasks.spawn(async move {
                // Nagle's algorithm holds back small chunks for up to 40 ms.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%peer, %error, "client gone before its first byte");
                    return;
                }
                // A wildcard listener has many addresses; the guest may see the one that was used.
                let Ok(local) = stream.local_addr() else {
                    return;
                };
                front
                    .serve_connection(stream, ConnInfo { peer, local }, stopping)
                    .await;
                drop(permit);
            });
        };
        let mut pause = FIRST_PAUSE;
        let mut draining = std::pin::pin!(drain.wait_for(|draining| *draining));
        let drains = loop {
            let next = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                (permit, self.socket.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                next = next => next,
                drains = &mut draining => break drains.is_ok(),
            };
            match accepted {
                Ok((stream, peer)) => {
                    pause = FIRST_PAUSE;
                    serve(stream, peer, permit.ok());
                }
                Err(error) => {
                    if is_one_connections_error(&error) {
                        continue;
                    }
                    tracing::warn!(%error, ?pause, "cannot accept connections");
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        drains = &mut draining => break drains.is_ok(),
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        };
        // What the system has completed already are connections whose clients may have sent requests.
        let accept_waiting = || {
            while let Some((stream, peer)) = accept_now(&self.socket) {
                serve(stream, peer, None);
            }
        };
        accept_waiting();
        // A host that was dropped without a drain leaves its connections alone. The others hear of the drain
        // before the socket goes, so that whoever is refused here has seen all that comes after it, and so
        // shortly before that hardly a client which they send away is back in time to be lost.
        stop.send_replace(drains);
        accept_waiting();
        drop(self.socket);
    }
}

/// Takes a connection that waits in the backlog, if there is one. Asks the system itself: the runtime may
/// not have heard of it yet.
fn accept_now(socket: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    let (stream, peer) = socket2::SockRef::from(socket).accept().ok()?;
    stream.set_nonblocking(true).ok()?;
    Some((TcpStream::from_std(stream.into()).ok()?, peer.as_socket()?))
}

/// Errors of a connection that is gone again; the next one may be fine (accept(2)).
fn is_one_connections_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
            | io::ErrorKind::TimedOut
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
    )
}
