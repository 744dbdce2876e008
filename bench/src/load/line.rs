//! The way of a worker to the server, in each protocol: opens what is not open and replaces what has ended.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::load::Failure;
use crate::load::guard::Guard;
use crate::load::http1::{Broken, Common, Http1};
use crate::load::http2::Http2;
use crate::load::mix::Prepared;

/// How long the server may take to close a connection whose last answer is there.
const CLOSING: Duration = Duration::from_millis(100);

/// One request at a time goes over it.
#[derive(Debug)]
pub(super) enum Line {
    Http1(Http1Line),
    Http2(Arc<Http2>),
}

impl Line {
    pub(super) fn http1(target: SocketAddr, keep: bool, common: Arc<Common>) -> Self {
        Self::Http1(Http1Line {
            target,
            keep,
            common,
            open: None,
            closing: None,
            opened: false,
            reconnects: 0,
        })
    }

    /// Opens the connection before the first request; if that fails, the first request tries again.
    pub(super) async fn open(&mut self, guard: &mut Guard) {
        match self {
            Self::Http1(line) if !line.keep => {}
            Self::Http1(line) => {
                line.open = line.connect(guard).await.ok();
            }
            Self::Http2(connection) => {
                let _ = guard.within(connection.open()).await;
            }
        }
    }

    /// Sends a request and reads its answer, until the guard's deadline. If the server had closed the connection
    /// before, the request goes once more over a new one.
    pub(super) async fn request(
        &mut self,
        request: &Prepared,
        guard: &mut Guard,
    ) -> Result<(), Failure> {
        for _ in 0..2 {
            match self.try_request(request, guard).await {
                Ok(verdict) => return verdict,
                Err(Broken::Failed(failure)) => return Err(failure),
                Err(Broken::Stale) => {}
            }
        }
        Err(Failure::Cut)
    }

    async fn try_request(
        &mut self,
        request: &Prepared,
        guard: &mut Guard,
    ) -> Result<Result<(), Failure>, Broken> {
        match self {
            Self::Http1(line) => line.try_request(request, guard).await,
            Self::Http2(connection) => guard
                .within(connection.exchange(request))
                .await
                .map_err(Broken::Failed)?,
        }
    }

    /// After a request, outside its time: lets the server close first where it said that it would, because whoever
    /// closes first keeps the port for a minute, and the client has 28,000 of them.
    pub(super) async fn settle(&mut self) {
        if let Self::Http1(line) = self
            && let Some(mut connection) = line.closing.take()
        {
            let _ = timeout(CLOSING, connection.closed()).await;
        }
    }

    /// Connections opened in place of ended ones since the last call.
    pub(super) fn take_reconnects(&mut self) -> u64 {
        match self {
            Self::Http1(line) => std::mem::take(&mut line.reconnects),
            Self::Http2(connection) => connection.take_reconnects(),
        }
    }
}

/// HTTP/1.1: one connection, or one after the other.
#[derive(Debug)]
pub(super) struct Http1Line {
    target: SocketAddr,
    /// Requests share a connection.
    keep: bool,
    common: Arc<Common>,
    open: Option<Http1>,
    closing: Option<Http1>,
    opened: bool,
    reconnects: u64,
}

impl Http1Line {
    async fn try_request(
        &mut self,
        request: &Prepared,
        guard: &mut Guard,
    ) -> Result<Result<(), Failure>, Broken> {
        let mut connection = match self.open.take() {
            Some(connection) => connection,
            None => self.connect(guard).await.map_err(Broken::Failed)?,
        };
        let exchange = connection.exchange(request, &self.common);
        let done = guard.within(exchange).await.map_err(Broken::Failed)??;
        if done.usable && self.keep {
            self.open = Some(connection);
        } else {
            self.closing = Some(connection);
        }
        Ok(done.verdict)
    }

    async fn connect(&mut self, guard: &mut Guard) -> Result<Http1, Failure> {
        let connection = guard.within(Http1::connect(self.target)).await??;
        self.reconnects += u64::from(self.keep && self.opened);
        self.opened = true;
        Ok(connection)
    }
}
