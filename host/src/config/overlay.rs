//! Flags and environment over the defaults, once. Every field that the user left out is `None` here.

use std::path::PathBuf;
use std::time::Duration;

use super::units::{ListenAddress, SizeLimit, TimeLimit};
use super::{
    AdmissionConfig, CacheConfig, Config, GuestConfig, GuestLimits, ListenerConfig, Reuse,
};

/// The port of the seed's command line.
const DEFAULT_PORT: u16 = 8080;
const MIB: u64 = 1 << 20;

/// A configuration that cannot be used. One line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// What the user gave, before the defaults.
#[derive(Clone, Debug, Default)]
pub struct ConfigOverlay {
    /// The component's file.
    pub component: PathBuf,
    /// `--addr`.
    pub address: Option<ListenAddress>,
    /// `--port`.
    pub port: Option<u16>,
    /// `--max-connections`.
    pub connections: Option<usize>,
    /// `--head-timeout`.
    pub head: Option<TimeLimit>,
    /// `--keep-alive-timeout`.
    pub keep_alive: Option<TimeLimit>,
    /// `--request-body-timeout`.
    pub body_idle: Option<TimeLimit>,
    /// `--response-body-timeout`.
    pub response_idle: Option<TimeLimit>,
    /// `--drain-timeout`.
    pub drain: Option<TimeLimit>,
    /// `--max-concurrent-requests`.
    pub requests: Option<usize>,
    /// `--queue`.
    pub queue: Option<usize>,
    /// `--queue-timeout`.
    pub queue_wait: Option<TimeLimit>,
    /// `--max-memory`.
    pub memory: Option<SizeLimit>,
    /// `--max-table-elements`.
    pub table_elements: Option<usize>,
    /// `--timeout`.
    pub wall: Option<TimeLimit>,
    /// `--max-request-body`.
    pub body: Option<SizeLimit>,
    /// `--max-instance-reuse-count`.
    pub reuse_requests: Option<usize>,
    /// `--max-instance-concurrent-reuse-count`.
    pub reuse_concurrent: Option<usize>,
    /// `--idle-instance-timeout`.
    pub reuse_idle: Option<TimeLimit>,
    /// `--no-cache`.
    pub no_cache: bool,
    /// `--cache-dir`, or the folder that the environment leads to.
    pub cache_dir: Option<PathBuf>,
    /// `--allow-precompiled`.
    pub allow_precompiled: bool,
    /// `--access-log`.
    pub access_log: bool,
}

impl ConfigOverlay {
    /// Lays the given values over the defaults and checks what must hold between them.
    ///
    /// # Errors
    /// The first contradiction, as one line.
    pub fn into_config(self) -> Result<Config, Error> {
        let requests = positive("--max-concurrent-requests", self.requests.unwrap_or(1000))?;
        if requests > 100_000 {
            return Err(Error(
                "--max-concurrent-requests above 100000 does not fit the address space".to_owned(),
            ));
        }
        let address = self.address()?;
        let limits = self.guest_limits(requests)?;
        Ok(Config {
            listener: ListenerConfig {
                address,
                connections: positive("--max-connections", self.connections.unwrap_or(10_000))?,
                head: seconds(self.head, 10),
                keep_alive: seconds(self.keep_alive, 75),
                body_idle: seconds(self.body_idle, 30),
                write_idle: seconds(self.response_idle, 30),
            },
            admission: AdmissionConfig {
                requests,
                queue: self.queue.unwrap_or(1000),
                wait: seconds(self.queue_wait, 10),
            },
            drain: seconds(self.drain, 30),
            cache: match (self.no_cache, self.cache_dir) {
                (false, Some(folder)) => CacheConfig::Folder(folder),
                (false, None) => CacheConfig::Unset,
                (true, _) => CacheConfig::Off,
            },
            access_log: self.access_log,
            guest: GuestConfig {
                name: self.component.file_stem().map_or_else(
                    || "guest".to_owned(),
                    |stem| stem.to_string_lossy().into_owned(),
                ),
                component: self.component,
                allow_precompiled: self.allow_precompiled,
                limits,
            },
        })
    }

    fn address(&self) -> Result<std::net::SocketAddr, Error> {
        let Some(listen) = &self.address else {
            return Ok((
                std::net::Ipv4Addr::UNSPECIFIED,
                self.port.unwrap_or(DEFAULT_PORT),
            )
                .into());
        };
        if let (Some(one), Some(other)) = (listen.port, self.port)
            && one != other
        {
            return Err(Error(format!(
                "--addr says port {one} and --port says {other}; leave one out"
            )));
        }
        listen
            .resolve(self.port.unwrap_or(DEFAULT_PORT))
            .map_err(Error)
    }

    fn guest_limits(&self, requests: usize) -> Result<GuestLimits, Error> {
        let reuse = self
            .reuse_requests
            .map(|n| positive("--max-instance-reuse-count", n))
            .transpose()?;
        let concurrent = self
            .reuse_concurrent
            .map(|n| positive("--max-instance-concurrent-reuse-count", n))
            .transpose()?;
        Ok(GuestLimits {
            // A 32-bit memory has no more than 4 GiB, so that is what "no limit" means.
            memory: self
                .memory
                .map_or(256 * MIB, |limit| limit.0.unwrap_or(4096 * MIB))
                .min(4096 * MIB),
            table_elements: self.table_elements.unwrap_or(100_000),
            wall: seconds(self.wall, 30),
            response_idle: seconds(self.response_idle, 30),
            body: self.body.and_then(|limit| limit.0),
            concurrency: requests,
            reuse: Reuse {
                p2_requests: reuse.unwrap_or(1),
                p3_requests: reuse.unwrap_or(128),
                p3_concurrent: concurrent.unwrap_or(16),
                idle: seconds(self.reuse_idle, 1).unwrap_or(Duration::MAX),
            },
        })
    }
}

/// A time limit, or so many seconds where none was given.
fn seconds(value: Option<TimeLimit>, default: u64) -> Option<Duration> {
    match value {
        Some(limit) => limit.0,
        None => Some(Duration::from_secs(default)),
    }
}

fn positive(flag: &str, value: usize) -> Result<usize, Error> {
    if value == 0 {
        return Err(Error(format!("{flag} must be at least 1")));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_documented_ones() {
        let config = ConfigOverlay {
            component: "a/hello.wasm".into(),
            ..Default::default()
        }
        .into_config()
        .unwrap();
        assert_eq!(config.listener.address, "0.0.0.0:8080".parse().unwrap());
        assert_eq!(config.guest.name, "hello");
        assert_eq!(config.listener.head, Some(Duration::from_secs(10)));
        assert_eq!(config.listener.keep_alive, Some(Duration::from_secs(75)));
        assert_eq!(config.guest.limits.wall, Some(Duration::from_secs(30)));
        assert_eq!(config.guest.limits.reuse.p2_requests, 1);
        assert_eq!(config.guest.limits.reuse.p3_requests, 128);
        assert_eq!(config.guest.limits.reuse.p3_concurrent, 16);
    }

    #[test]
    fn contradictions_are_refused() {
        let two_ports = ConfigOverlay {
            address: Some("127.0.0.1:1".parse().unwrap()),
            port: Some(2),
            ..Default::default()
        };
        assert!(two_ports.into_config().is_err());
        let no_requests = ConfigOverlay {
            requests: Some(0),
            ..Default::default()
        };
        assert!(no_requests.into_config().is_err());
    }

    #[test]
    fn zero_turns_a_timer_off() {
        let config = ConfigOverlay {
            wall: Some(TimeLimit(None)),
            drain: Some(TimeLimit(None)),
            ..Default::default()
        }
        .into_config()
        .unwrap();
        assert_eq!((config.guest.limits.wall, config.drain), (None, None));
    }
}
