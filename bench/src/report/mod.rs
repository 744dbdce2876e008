//! What a comparison found, for people: `table` for terminals and Markdown, `markdown` for the report, `plot` for its
//! pictures, `reach` for the ratios that are to be reached. Nothing is measured and nothing is concluded here.

mod markdown;
mod plot;
mod reach;
mod table;

pub use self::reach::{Asked, verdicts};
pub use self::table::{Table, scenario_table};

use std::fs;
use std::path::{Path, PathBuf};

use crate::compare::Results;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file cannot be written.
    #[error("cannot write {}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A picture cannot be drawn.
    #[error("cannot draw {}: {problem}", file.display())]
    Plot {
        /// Its file.
        file: PathBuf,
        /// What the plotter says.
        problem: String,
    },
}

/// Writes `REPORT.md`, its pictures and `results.json` into a folder, which is made if it is missing. `asked` are
/// the rows of the Reach table, of scenarios that did not run as well. Hands back the path of the report.
///
/// # Errors
/// The first file that cannot be written.
pub fn write(results: &Results, asked: &[Asked], folder: &Path) -> Result<PathBuf, ReportError> {
    let failed = |file: &Path| {
        let file = file.to_owned();
        move |source| ReportError::Write { file, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut pictures = Vec::new();
    for scenario in &results.scenarios {
        pictures.push(plot::draw(scenario, folder)?);
    }
    let file = folder.join("results.json");
    let json = serde_json::to_vec_pretty(results).map_err(std::io::Error::from);
    json.and_then(|json| fs::write(&file, json))
        .map_err(failed(&file))?;
    let file = folder.join("REPORT.md");
    let text = markdown::render(results, asked, &pictures);
    fs::write(&file, text).map_err(failed(&file))?;
    Ok(file)
}

#[cfg(test)]
mod tests;
