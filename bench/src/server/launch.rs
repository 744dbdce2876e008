//! How a server is called: where its binary, its guest and its private files are, and which arguments it gets.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::process::complete;
use super::{Family, Kind, Server, ServerError};

/// The folders of a run.
#[derive(Debug, Clone)]
pub struct Places {
    /// The root of the repository.
    pub root: PathBuf,
    /// A private folder for caches and configurations, removed after the run.
    pub scratch: PathBuf,
    /// Where programs of the system are looked for, like the environment's `PATH`.
    pub search: OsString,
}

impl Places {
    /// The binary of a server.
    ///
    /// # Errors
    /// It is missing; the error says what brings it.
    pub fn program(&self, kind: Kind) -> Result<PathBuf, ServerError> {
        let name = kind.program();
        let found = match kind {
            Kind::Nginx => self.find(name),
            Kind::Cloudgo => existing(self.root.join("target/release").join(name)),
            Kind::Wasmtime | Kind::Hyper | Kind::Axum | Kind::Fasthttp => {
                existing(self.root.join("target/peers/bin").join(name))
            }
        };
        found.ok_or_else(|| ServerError::Missing {
            what: format!("`{name}`"),
            hint: kind.hint().to_owned(),
        })
    }

    /// A program of the system.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        // Where daemons are is often not in the path of ordinary users.
        let more = ["/usr/local/sbin", "/usr/sbin"].map(PathBuf::from);
        std::env::split_paths(&self.search)
            .chain(more)
            .find_map(|folder| existing(folder.join(name)))
    }

    /// A component: a name of `guest/`, or a path from the root.
    ///
    /// # Errors
    /// It is missing.
    pub fn guest(&self, name: &str) -> Result<PathBuf, ServerError> {
        let file = if name.contains(['/', '.']) {
            self.root.join(name)
        } else {
            let file = format!("{}.wasm", name.replace('-', "_"));
            self.root
                .join("guest/target/wasm32-wasip2/release")
                .join(file)
        };
        let hint = match name {
            "big" => "`make guest-big` builds it",
            _ => "`make guests` builds it",
        };
        existing(file).ok_or_else(|| ServerError::Missing {
            what: format!("the guest `{name}`"),
            hint: hint.to_owned(),
        })
    }
}

fn existing(path: PathBuf) -> Option<PathBuf> {
    path.is_file().then_some(path)
}

/// Where a guest's compiled code comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Code {
    /// From a cache that holds it, in a private folder.
    #[default]
    Cache,
    /// It is compiled at every start.
    Compiled,
    /// From a `.cwasm` file.
    Precompiled,
}

/// One server with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub kind: Kind,
    /// The component, for servers that take one.
    pub guest: Option<String>,
    /// Requests for each instance, if not the server's own default.
    pub reuse: Option<u32>,
    /// Further arguments.
    pub flags: Vec<String>,
    /// Where the guest's code comes from.
    pub code: Code,
}

/// A command, and the address if it is known beforehand.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) command: Command,
    pub(super) address: Option<SocketAddr>,
}

impl Launch {
    /// That everything is there which it needs.
    ///
    /// # Errors
    /// What is missing, and what would bring it.
    pub fn check(&self, places: &Places, family: &Family) -> Result<(), ServerError> {
        let program = places.program(self.kind)?;
        if self.guest.is_some() {
            self.component(places)?;
        }
        if (self.kind, self.code) != (Kind::Wasmtime, Code::Precompiled) {
            return Ok(());
        }
        let mut command = Command::new(program);
        let help = complete("wasmtime", command.args(["compile", "--help"]), family);
        help.map(drop).map_err(|_refused| ServerError::Missing {
            what: "`wasmtime compile`".to_owned(),
            hint: "this wasmtime was built without the feature `compile`".to_owned(),
        })
    }

    /// The command line, with everything made that it names.
    pub(super) fn prepare(
        &self,
        places: &Places,
        family: &Family,
    ) -> Result<Prepared, ServerError> {
        let program = places.program(self.kind)?;
        let mut command = Command::new(&program);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut address = None;
        match self.kind {
            Kind::Cloudgo => self.cloudgo(&mut command, places, family)?,
            Kind::Wasmtime => self.wasmtime(&mut command, places, family)?,
            Kind::Hyper | Kind::Axum | Kind::Fasthttp => {
                command.args(["--port", "0"]);
            }
            Kind::Nginx => address = Some(nginx(&mut command, places)?),
        }
        if !self.kind.takes_guests() {
            command.args(&self.flags);
        }
        Ok(Prepared { command, address })
    }

    /// The arguments that guests' hosts share: reuse, further flags, the component.
    fn guest_arguments(&self, command: &mut Command, component: &Path) {
        if let Some(reuse) = self.reuse {
            command.args(["--max-instance-reuse-count", &reuse.to_string()]);
        }
        command.args(&self.flags).arg(component);
    }

    fn cloudgo(
        &self,
        command: &mut Command,
        places: &Places,
        family: &Family,
    ) -> Result<(), ServerError> {
        let mut component = self.component(places)?;
        command.args(["--addr", "127.0.0.1:0"]);
        let cache = places.scratch.join("cloudgo-cache");
        match self.code {
            Code::Cache => {
                command.arg("--cache-dir").arg(cache);
            }
            Code::Compiled => {
                command.arg("--no-cache");
            }
            Code::Precompiled => {
                component = self.cloudgo_precompiled(places, family)?;
                command.args(["--no-cache", "--allow-precompiled"]);
            }
        }
        self.guest_arguments(command, &component);
        Ok(())
    }

    /// The host has no command that only compiles, but the entries of its cache are such files.
    fn cloudgo_precompiled(
        &self,
        places: &Places,
        family: &Family,
    ) -> Result<PathBuf, ServerError> {
        let name = self.guest.as_deref().unwrap_or_default().replace('/', "-");
        let folder = places.scratch.join("cloudgo-precompiled").join(name);
        if let Some(file) = precompiled_in(&folder) {
            return Ok(file);
        }
        let compile = Self {
            flags: vec!["--cache-dir".to_owned(), folder.display().to_string()],
            code: Code::Compiled,
            reuse: None,
            ..self.clone()
        };
        let component = self.component(places)?;
        let mut command = Command::new(places.program(self.kind)?);
        command
            .args(["--addr", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        compile.guest_arguments(&mut command, &component);
        Server::start_prepared(
            compile.kind,
            Prepared {
                command,
                address: None,
            },
            family,
        )?
        .stop()?;
        precompiled_in(&folder).ok_or_else(|| ServerError::Missing {
            what: "the precompiled guest".to_owned(),
            hint: "the host left no entry in its cache".to_owned(),
        })
    }

    fn wasmtime(
        &self,
        command: &mut Command,
        places: &Places,
        family: &Family,
    ) -> Result<(), ServerError> {
        let mut component = self.component(places)?;
        command.args(["serve", "-Scli", "--addr", "127.0.0.1:0"]);
        match self.code {
            Code::Cache => {
                let config = wasmtime_cache(places)?;
                command
                    .arg("-C")
                    .arg(format!("cache-config={}", config.display()));
            }
            Code::Compiled => {
                command.args(["-C", "cache=n"]);
            }
            Code::Precompiled => {
                component = wasmtime_precompiled(places, family, &component)?;
                command.arg("--allow-precompiled");
            }
        }
        self.guest_arguments(command, &component);
        Ok(())
    }

    fn component(&self, places: &Places) -> Result<PathBuf, ServerError> {
        let name = self.guest.as_deref().ok_or_else(|| ServerError::Missing {
            what: format!("a guest for {}", self.kind),
            hint: "the scenario names none".to_owned(),
        })?;
        places.guest(name)
    }
}

fn precompiled_in(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let mut files = entries.filter_map(Result::ok).map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|end| end == "cwasm"))
}

/// A configuration of wasmtime's cache with a private folder.
fn wasmtime_cache(places: &Places) -> Result<PathBuf, ServerError> {
    let file = places.scratch.join("wasmtime-cache.toml");
    let folder = places.scratch.join("wasmtime-cache");
    let text = format!("[cache]\ndirectory = {:?}\n", folder.display().to_string());
    fs::write(&file, text).map_err(ServerError::io("cannot write wasmtime's configuration"))?;
    Ok(file)
}

fn wasmtime_precompiled(
    places: &Places,
    family: &Family,
    component: &Path,
) -> Result<PathBuf, ServerError> {
    let name = component.file_stem().unwrap_or_default();
    let file = places.scratch.join(name).with_extension("wasmtime.cwasm");
    if file.is_file() {
        return Ok(file);
    }
    let mut command = Command::new(places.program(Kind::Wasmtime)?);
    command.arg("compile").arg("-o").arg(&file).arg(component);
    complete("wasmtime compile", &mut command, family)?;
    Ok(file)
}

/// Bytes of the files that nginx has for downloads.
const DOWNLOADS: [usize; 2] = [65_536, 1_048_576];

/// Writes nginx' configuration from the template beside the peers. nginx cannot choose a port itself, and says
/// only at level `notice` that it is ready.
fn nginx(command: &mut Command, places: &Places) -> Result<SocketAddr, ServerError> {
    let template = places.root.join("bench/peers/nginx/nginx.conf");
    let template = fs::read_to_string(&template).map_err(ServerError::io(format!(
        "cannot read {}",
        template.display()
    )))?;
    let folder = places.scratch.join("nginx");
    let downloads = folder.join("download");
    let write = || ServerError::io("cannot write the files of nginx");
    fs::create_dir_all(&downloads).map_err(write())?;
    for bytes in DOWNLOADS {
        fs::write(downloads.join(bytes.to_string()), vec![b'x'; bytes]).map_err(write())?;
    }
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(ServerError::io("no free port for nginx"))?;
    let mut text = String::new();
    for line in template.lines() {
        let line = match line.starts_with("error_log ") {
            true => "error_log stderr notice;",
            false => line,
        };
        text.push_str(line);
        text.push('\n');
    }
    let text = text
        .replace("@PORT@", &free.port().to_string())
        .replace("@DIR@", &folder.display().to_string());
    let config = folder.join("nginx.conf");
    fs::write(&config, text).map_err(write())?;
    command.args(["-e", "stderr", "-c"]).arg(&config);
    Ok(free)
}
