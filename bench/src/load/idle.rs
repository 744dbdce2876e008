//! Connections that had their answer and now stay open, for what they cost the server.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::load::guard::Guard;
use crate::load::http1::{Broken, Common, Http1};
use crate::load::mix::Prepared;
use crate::load::{Failure, LoadError, Plan, Template, descriptors};

/// So many open at a time: more would overflow the server's accept queue, which costs a second for each.
pub(super) const OPENING: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Idle keep-alive connections; dropping this closes them.
#[derive(Debug)]
pub struct Held {
    connections: Vec<TcpStream>,
}

impl Held {
    /// How many the server has not closed.
    pub fn alive(&self) -> usize {
        self.connections
            .iter()
            .filter(|connection| is_open(connection))
            .count()
    }
}

fn is_open(connection: &TcpStream) -> bool {
    connection
        .peek(&mut [0])
        .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Opens so many keep-alive connections and makes one request on each, which must get its expected answer.
pub fn hold(
    target: SocketAddr,
    connections: usize,
    template: &Template,
) -> Result<Held, LoadError> {
    descriptors::allow(connections)?;
    let request = Arc::new(Prepared::new(template, &Plan::new(target, Vec::new()))?);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LoadError::Client)?;
    let opened = runtime.block_on(open_all(target, connections, request))?;
    Ok(Held {
        connections: opened,
    })
}

async fn open_all(
    target: SocketAddr,
    wanted: usize,
    request: Arc<Prepared>,
) -> Result<Vec<TcpStream>, LoadError> {
    let common = Arc::new(Common::new());
    let places = Arc::new(Semaphore::new(OPENING));
    let mut tasks = JoinSet::new();
    for _ in 0..wanted {
        let (common, places, request) = (
            Arc::clone(&common),
            Arc::clone(&places),
            Arc::clone(&request),
        );
        tasks.spawn(async move {
            let _place = places.acquire().await;
            open_one(target, &request, &common).await
        });
    }
    let mut open = Vec::with_capacity(wanted);
    while let Some(joined) = tasks.join_next().await {
        let connection = joined.map_err(|error| LoadError::Client(error.into()))?;
        let connection = connection.map_err(|failure| LoadError::Idle {
            at: open.len() + 1,
            wanted,
            failure,
        })?;
        open.push(
            connection
                .into_stream()
                .into_std()
                .map_err(LoadError::Client)?,
        );
    }
    Ok(open)
}

async fn open_one(
    target: SocketAddr,
    request: &Prepared,
    common: &Common,
) -> Result<Http1, Failure> {
    let mut guard = Guard::new(TIMEOUT);
    guard.start(Instant::now());
    let mut connection = guard.within(Http1::connect(target)).await??;
    let done = guard.within(connection.exchange(request, common)).await?;
    match done {
        Ok(done) if done.usable => done.verdict.map(|()| connection),
        Ok(done) => Err(done.verdict.err().unwrap_or(Failure::Cut)),
        Err(Broken::Failed(failure)) => Err(failure),
        Err(Broken::Stale) => Err(Failure::Cut),
    }
}
