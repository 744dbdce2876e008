//! Scenarios: what is compared, under which load, and which ratios are to be reached. Each is one TOML file,
//! `bench/scenarios/<name>.toml`. A key that nobody knows is an error. How they are run is in `compare`.

mod reach;
mod request;

pub(crate) use self::reach::three_digits;
pub use self::reach::{Metric, Reach};
pub use self::request::Request;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::load::{Protocol, Template};
use crate::server::{Code, Kind, Launch};

/// A file that is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file or folder.
        file: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It does not say what a scenario says.
    #[error("{}: {problem}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong, with the key.
        problem: String,
    },
    /// No file has this name.
    #[error("there is no scenario `{name}`; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that exist.
        known: String,
    },
}

/// One scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The file's name without its end.
    #[serde(skip)]
    pub name: String,
    /// A heading.
    pub title: String,
    /// One or two sentences on what happens.
    pub about: String,
    /// Whether `--quick` runs it.
    #[serde(default)]
    pub quick: bool,
    /// What is measured.
    pub kind: Measure,
    /// Connections and times.
    #[serde(default)]
    pub load: Load,
    /// What is sent.
    #[serde(rename = "request")]
    pub requests: Vec<Request>,
    /// Who is compared, the order of the tables.
    #[serde(rename = "contestant")]
    pub contestants: Vec<Contestant>,
    /// The rows of the Reach table that it fills.
    #[serde(default, rename = "reach")]
    pub reaches: Vec<Reach>,
}

/// What a scenario measures.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Requests per second and latencies of a closed loop.
    Throughput {
        /// Who makes the load.
        #[serde(default)]
        client: Client,
    },
    /// Latencies of an open loop, at the same rate for all.
    Rate {
        /// The contestant whose maximum sets the rate, measured anew in each round.
        of: String,
        /// The part of that maximum.
        fraction: f64,
    },
    /// Throughput for several numbers of connections.
    Scaling {
        /// The numbers.
        connections: Vec<usize>,
    },
    /// Memory of idle keep-alive connections, and throughput beside them.
    Idle {
        /// How many.
        connections: usize,
    },
    /// Memory while requests sleep in their guests.
    Sleepers {
        /// How many.
        requests: usize,
    },
    /// Time from the start of the process to the end of the first answer.
    Start {
        /// Where the guests' code comes from.
        code: Code,
        /// Starts in each round.
        times: u32,
    },
}

/// Who makes the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Client {
    /// The client of this package.
    #[default]
    Own,
    /// `wrk`.
    Wrk,
    /// `ab`.
    Ab,
}

/// Connections and times.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// Connections at a time.
    pub connections: usize,
    /// HTTP/2: requests at a time on each.
    pub streams: usize,
    /// How requests travel.
    #[serde(deserialize_with = "protocol")]
    pub protocol: Protocol,
    /// The recorded time of one measurement.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// Load before it.
    #[serde(deserialize_with = "duration")]
    pub warmup: Duration,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            connections: 64,
            streams: 1,
            protocol: Protocol::Http1,
            duration: Duration::from_secs(5),
            warmup: Duration::from_secs(1),
        }
    }
}

/// A server with its arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contestant {
    /// Its name in tables.
    pub name: String,
    /// The program.
    pub server: Kind,
    /// The component: a name of `guest/`, or a path.
    pub guest: Option<String>,
    /// Requests for each instance, if not the server's default.
    pub reuse: Option<u32>,
    /// Further arguments.
    #[serde(default)]
    pub flags: Vec<String>,
}

impl Scenario {
    /// Reads one file.
    ///
    /// # Errors
    /// With the file and the key.
    pub fn read(file: &Path) -> Result<Self, ScenarioError> {
        let text = fs::read_to_string(file).map_err(|source| ScenarioError::Read {
            file: file.to_owned(),
            source,
        })?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&name, &text).map_err(|problem| ScenarioError::Content {
            file: file.to_owned(),
            problem,
        })
    }

    /// Every scenario of a folder, by name.
    ///
    /// # Errors
    /// The first file that is no scenario.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, ScenarioError> {
        let read = |source| ScenarioError::Read {
            file: folder.to_owned(),
            source,
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(read)? {
            let file = entry.map_err(read)?.path();
            if file.extension().is_some_and(|end| end == "toml") {
                files.push(file);
            }
        }
        files.sort();
        files.iter().map(|file| Self::read(file)).collect()
    }

    /// Those of these names, in the order of the names; all of them if there are none.
    ///
    /// # Errors
    /// A name that does not exist.
    pub fn choose(all: Vec<Self>, names: &[String]) -> Result<Vec<Self>, ScenarioError> {
        if names.is_empty() {
            return Ok(all);
        }
        let find = |name: &String| {
            let found = all.iter().find(|scenario| scenario.name == *name);
            found.cloned().ok_or_else(|| ScenarioError::Unknown {
                name: name.clone(),
                known: all
                    .iter()
                    .map(|scenario| scenario.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
        };
        names.iter().map(find).collect()
    }

    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let parsed: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let scenario = Self {
            name: name.to_owned(),
            ..parsed
        };
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), String> {
        if self.requests.is_empty() {
            return Err("`request`: at least one is needed".to_owned());
        }
        self.templates()?;
        let known = |key: &str, name: &str| match self.contestant(name) {
            Some(_) => Ok(()),
            None => Err(format!("`{key}`: there is no contestant `{name}`")),
        };
        for contestant in &self.contestants {
            if contestant.server.takes_guests() != contestant.guest.is_some() {
                let problem = match contestant.guest {
                    Some(_) => "takes no guest",
                    None => "needs a guest",
                };
                return Err(format!(
                    "`contestant` {}: {} {problem}",
                    contestant.name, contestant.server
                ));
            }
        }
        for reach in &self.reaches {
            known("reach.of", &reach.of)?;
            reach.to.iter().try_for_each(|to| known("reach.to", to))?;
            if reach.at_least.is_some() == reach.at_most.is_some() {
                return Err(format!(
                    "`reach` {}: one of `at_least` and `at_most`",
                    reach.row
                ));
            }
        }
        if let Measure::Rate { of, fraction } = &self.kind {
            known("kind.rate.of", of)?;
            if !(*fraction > 0.0 && *fraction <= 1.0) {
                return Err("`kind.rate.fraction`: above 0, at most 1".to_owned());
            }
        }
        Ok(())
    }

    /// The requests as the client wants them.
    ///
    /// # Errors
    /// With the key.
    pub fn templates(&self) -> Result<Vec<Template>, String> {
        self.requests.iter().map(Request::template).collect()
    }

    /// The load in words.
    #[must_use]
    pub fn words(&self, load: &Load) -> String {
        let Load {
            connections,
            streams,
            ..
        } = load;
        let travel = match load.protocol {
            Protocol::Http1 => format!("{connections} connections, HTTP/1.1 keep-alive"),
            Protocol::Http1PerRequest => {
                format!("{connections} requests at a time, HTTP/1.1, a new connection for each")
            }
            Protocol::Http2 => {
                format!("{connections} connections, HTTP/2, {streams} requests at a time on each")
            }
        };
        let time = humantime::format_duration(load.duration);
        match &self.kind {
            Measure::Throughput { client } => format!("{travel}, closed loop, {time}, by {client}"),
            Measure::Rate { of, fraction } => {
                format!("{travel}, open loop at {fraction} of the maximum of {of}, {time}")
            }
            Measure::Scaling { .. } => format!("HTTP/1.1 keep-alive, closed loop, {time} each"),
            Measure::Idle { connections } => {
                format!("{connections} idle connections; beside them {travel}, closed loop, {time}")
            }
            Measure::Sleepers { requests } => {
                format!("{requests} connections, one request on each")
            }
            Measure::Start { .. } => "one connection, one request".to_owned(),
        }
    }

    fn contestant(&self, name: &str) -> Option<&Contestant> {
        self.contestants.iter().find(|one| one.name == name)
    }

    /// Where guests' code comes from in this scenario.
    #[must_use]
    pub fn code(&self) -> Code {
        match self.kind {
            Measure::Start { code, .. } => code,
            _ => Code::Cache,
        }
    }
}

impl Contestant {
    /// The server to start.
    #[must_use]
    pub fn launch(&self, code: Code) -> Launch {
        Launch {
            kind: self.server,
            guest: self.guest.clone(),
            reuse: self.reuse,
            flags: self.flags.clone(),
            code,
        }
    }
}

fn duration<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(input)?;
    humantime::parse_duration(&text).map_err(D::Error::custom)
}

fn protocol<'de, D: Deserializer<'de>>(input: D) -> Result<Protocol, D::Error> {
    match String::deserialize(input)?.as_str() {
        "http1" => Ok(Protocol::Http1),
        "http1-per-request" => Ok(Protocol::Http1PerRequest),
        "http2" => Ok(Protocol::Http2),
        other => Err(D::Error::unknown_variant(
            other,
            &["http1", "http1-per-request", "http2"],
        )),
    }
}

impl fmt::Display for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Own => "cloudgo-bench",
            Self::Wrk => "wrk",
            Self::Ab => "ab",
        })
    }
}

#[cfg(test)]
mod tests;
