//! The composition root: a [`Config`] becomes engines, a guest, a handler, a listener, and a [`RunningHost`].

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use crate::component::Loader;
use crate::config::Config;
use crate::dispatch::Target;
use crate::engine::Ticker;
use crate::error::StartError;
use crate::guest::Guest;
use crate::guest::registry::{Registry, Snapshot};
use crate::handler::Handler;
use crate::lifecycle::drain::{self, Drained};
use crate::limits::admission::Admission;
use crate::server::listener::BoundSocket;
use crate::task::Tasks;

/// Starts hosts.
#[derive(Debug)]
pub struct Host;

/// A host that serves. Dropping it stops accepting; [`RunningHost::shutdown`] ends it in order.
#[derive(Debug)]
pub struct RunningHost {
    local: SocketAddr,
    drain: watch::Sender<bool>,
    tasks: Tasks,
    /// Kept until the drain is over: taking down the instance pool takes time of its own.
    _handler: Arc<Handler>,
    limit: Option<std::time::Duration>,
}

impl Host {
    /// Loads the guest and listens. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// One line that says what would help: the guest cannot be served, or the address cannot be had.
    pub async fn start(config: Config) -> Result<RunningHost, StartError> {
        let address = config.listener.address;
        let refused = |source| StartError::Listen { address, source };
        // The address is taken before the compilation, which may take long, and is listened on after it:
        // a port in use is told at once, and nobody connects to a host that has no guest yet.
        let socket = BoundSocket::bind(&config.listener).map_err(refused)?;
        let tasks = Tasks::default();
        let ticker = Ticker::start().map_err(StartError::Thread)?;
        let loader = Arc::new(Loader::new(
            &config.cache,
            ticker,
            config.admission.requests,
        ));
        let loaded = loader.load(&config.guest).await?;
        let guest = Arc::new(Guest::new(&config.guest, &config.admission, loaded));
        let target = Arc::new(Target::new(guest, &tasks));
        let admission = &config.admission;
        let handler = Arc::new(Handler {
            registry: Registry::new(Snapshot::single(target)),
            admission: Admission::new(admission.requests, admission.queue, admission.wait),
            tasks: tasks.clone(),
            access_log: config.access_log,
        });
        let listener = socket.listen().map_err(refused)?;
        let (drain, draining) = watch::channel(false);
        let local = listener.local_addr();
        tasks.spawn(listener.run(Arc::clone(&handler), draining));
        Ok(RunningHost {
            local,
            drain,
            tasks,
            _handler: handler,
            limit: config.drain,
        })
    }
}

impl RunningHost {
    /// Where it listens, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Stops accepting, closes idle connections, and waits for the requests in flight: until the last one
    /// ends, the configured limit is over, or `cut` resolves.
    pub async fn shutdown(self, cut: impl Future<Output = ()>) -> Drained {
        drain::drain(&self.drain, &self.tasks, self.limit, cut).await
    }
}
