//! `cloudgo-bench compare`.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use cloudgo_bench::compare::{Comparison, Options, Results};
use cloudgo_bench::machine::Machine;
use cloudgo_bench::report::{self, Asked};
use cloudgo_bench::scenario::Scenario;
use cloudgo_bench::server::{Family, Places};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::cli::{Fault, show};

/// What the command takes.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// Scenarios, by the names that --list shows; all unless told, with --quick the quick ones
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    scenario: Vec<String>,
    /// Rounds of each scenario [default: 5, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// The recorded time of each measurement [default: the scenario's own]
    #[arg(short, long, value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    /// At most 1.5 s for each measurement
    #[arg(long)]
    quick: bool,
    /// Where REPORT.md, its pictures and results.json go [default: bench/results; nowhere with --scenario]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Show the scenarios and end
    #[arg(long)]
    list: bool,
    /// Print all figures as JSON at the end, no tables
    #[arg(long)]
    json: bool,
    /// The root of the repository
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    root: PathBuf,
}

/// What a shell reports for a program that SIGINT has ended.
const INTERRUPTED: u8 = 130;

impl Args {
    /// Compares in a thread of its own, so that a signal can end everything at once.
    pub(super) fn run(self) -> Result<ExitCode, Fault> {
        let all = Scenario::read_all(&self.root.join("bench/scenarios")).map_err(|error| {
            format!("{error}; run this at the root of the repository, or with --root")
        })?;
        if self.list {
            return list(&all);
        }
        let scratch = tempfile::tempdir()?;
        // nginx' workers, which have no rights, have to find what they serve.
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o711))?;
        let family = Family::default();
        let places = Places {
            root: self.root.canonicalize()?,
            scratch: scratch.path().to_owned(),
            search: env::var_os("PATH").unwrap_or_default(),
        };
        let (sender, ended) = oneshot::channel();
        let theirs = family.clone();
        thread::Builder::new()
            .name("compare".to_owned())
            .spawn(move || {
                // Nobody listens any more after a signal.
                let _ = sender.send(self.compare(all, places, theirs));
            })?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let ended = runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            tokio::select! {
                ended = ended => Ok::<_, Fault>(Some(ended?)),
                _ = interrupt.recv() => Ok(None),
                _ = terminate.recv() => Ok(None),
            }
        })?;
        family.end();
        ended.unwrap_or(Ok(ExitCode::from(INTERRUPTED)))
    }

    fn compare(
        &self,
        all: Vec<Scenario>,
        places: Places,
        family: Family,
    ) -> Result<ExitCode, Fault> {
        let asked = Asked::by(&all, &self.command());
        let scenarios = self.choose(all)?;
        let machine = Machine::read(&places, &family);
        let comparison = Comparison {
            places,
            family,
            options: Options {
                rounds: self.rounds(),
                duration: self.duration,
                quick: self.quick,
            },
            bar: bar(),
            command: self.command(),
        };
        comparison
            .bar
            .set_length(millis(comparison.expected(&scenarios)));
        let mut results = Results {
            machine,
            command: self.command(),
            rounds: self.rounds(),
            scenarios: Vec::new(),
        };
        for scenario in &scenarios {
            let found = comparison.run(scenario)?;
            if !self.json {
                comparison.bar.suspend(|| show::scenario(&found))?;
            }
            results.scenarios.push(found);
        }
        comparison.bar.finish_and_clear();
        self.tell(&results, &asked)
    }

    fn tell(&self, results: &Results, asked: &[Asked]) -> Result<ExitCode, Fault> {
        if self.json {
            show::json(&serde_json::to_value(results)?)?;
        } else {
            let asked: Vec<Asked> = asked
                .iter()
                .filter(|asked| {
                    results
                        .scenarios
                        .iter()
                        .any(|one| one.name == asked.scenario)
                })
                .cloned()
                .collect();
            if !asked.is_empty() {
                show::line(report::verdicts(results, &asked).plain())?;
            }
        }
        if let Some(folder) = self.folder() {
            let file = report::write(results, asked, &folder)?;
            if !self.json {
                show::line(format_args!("The report is in {}.", file.display()))?;
            }
        }
        let measured = results
            .scenarios
            .iter()
            .any(|scenario| scenario.rows.iter().any(|row| row.is_valid()));
        Ok(if measured {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    /// Where the report goes. A run of chosen scenarios does not overwrite that of all.
    fn folder(&self) -> Option<PathBuf> {
        let usual = || {
            self.scenario
                .is_empty()
                .then(|| self.root.join("bench/results"))
        };
        self.out.clone().or_else(usual)
    }

    fn choose(&self, all: Vec<Scenario>) -> Result<Vec<Scenario>, Fault> {
        if self.scenario.is_empty() && self.quick {
            return Ok(all.into_iter().filter(|scenario| scenario.quick).collect());
        }
        Ok(Scenario::choose(all, &self.scenario)?)
    }

    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 3 } else { 5 })
    }

    /// The command that runs the same again, without scenarios and folders.
    fn command(&self) -> String {
        let mut command = "target/release/cloudgo-bench compare".to_owned();
        if self.quick {
            command.push_str(" --quick");
        }
        if let Some(rounds) = self.rounds {
            command.push_str(&format!(" --rounds {rounds}"));
        }
        if let Some(duration) = self.duration {
            // Without a space, so that it can be copied to a shell.
            command.push_str(&format!(" --duration {}ms", duration.as_millis()));
        }
        command
    }
}

fn list(all: &[Scenario]) -> Result<ExitCode, Fault> {
    for Scenario {
        name, title, quick, ..
    } in all
    {
        let quick = if *quick { "quick" } else { "" };
        show::line(format_args!("{name:<18} {quick:<6} {title}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A bar if standard error is a terminal, else nothing.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {msg} · {eta} left") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
