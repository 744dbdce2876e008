//! The command line `--port N`, the listener, and the runtime.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket};

/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 4096;

type Error = Box<dyn std::error::Error>;

/// Listens on the port that the command line asks for and serves, on as many threads as there are cores.
pub fn run(serve: impl AsyncFnOnce(TcpListener) -> std::io::Result<()>) -> ExitCode {
    match try_run(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn try_run(serve: impl AsyncFnOnce(TcpListener) -> std::io::Result<()>) -> Result<(), Error> {
    let port = port(std::env::args().skip(1))?;
    // Ten thousand connections need as many descriptors.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = listen(port)?;
        eprintln!("listening on http://{}/", listener.local_addr()?);
        Ok(serve(listener).await?)
    })
}

fn port(mut arguments: impl Iterator<Item = String>) -> Result<u16, Error> {
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Ok(8080),
        (Some("--port"), Some(port)) => Ok(port.parse()?),
        _ => Err("usage: --port N, 0 to have the system choose one".into()),
    }
}

fn listen(port: u16) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    socket.listen(BACKLOG)
}
