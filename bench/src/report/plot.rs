//! Pictures as SVG: bars with the range of the rounds, latencies over percentiles, throughput over connections.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::ranged1d::IntoSegmentedCoord as _;
use plotters::prelude::*;

use super::ReportError;
use crate::compare::{Row, ScenarioResults};
use crate::scenario::Metric;

/// A picture in the folder of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    /// Its file's name.
    pub(super) file: String,
    /// What it shows.
    pub(super) title: String,
}

type Drawn = Result<(), Box<dyn Error>>;
type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const WIDTH: u32 = 860;
const FONT: (&str, u32) = ("sans-serif", 14);

/// Told apart without red against green.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 107, 164),
    RGBColor(255, 128, 14),
    RGBColor(89, 89, 89),
    RGBColor(95, 158, 209),
    RGBColor(200, 82, 0),
    RGBColor(171, 171, 171),
    RGBColor(137, 137, 137),
    RGBColor(255, 188, 121),
];

/// Draws what there is to see of a scenario.
pub(super) fn draw(scenario: &ScenarioResults, folder: &Path) -> Result<Vec<Picture>, ReportError> {
    let mut pictures = Vec::new();
    let metric = scenario.metrics.first().copied().unwrap_or(Metric::Rate);
    let mut add = |end: &str, title: String, height: u32, paint: Paint| {
        let file = format!("{}-{end}.svg", scenario.name);
        let path = folder.join(&file);
        painted(&path, height, |canvas| {
            paint(canvas, scenario, metric, &title)
        })
        .map_err(|error| ReportError::Plot {
            file: path.clone(),
            problem: error.to_string(),
        })?;
        pictures.push(Picture { file, title });
        Ok(())
    };
    let title = &scenario.title;
    let measured = scenario
        .rows
        .iter()
        .any(|row| row.summary(metric).is_some());
    if measured && scenario.axis.is_some() {
        add("scaling", format!("{title}: {metric}"), 420, scaling)?;
    } else if measured {
        let rows = u32::try_from(scenario.rows.len()).unwrap_or(1);
        add("bars", format!("{title}: {metric}"), 100 + 36 * rows, bars)?;
        if scenario.rows.iter().any(|row| row.curve.len() > 1) {
            add("latency", format!("{title}: latency"), 420, latencies)?;
        }
    }
    Ok(pictures)
}

type Paint = fn(&Canvas<'_>, &ScenarioResults, Metric, &str) -> Drawn;

fn painted(path: &Path, height: u32, paint: impl FnOnce(&Canvas<'_>) -> Drawn) -> Drawn {
    let canvas = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    canvas.fill(&WHITE)?;
    paint(&canvas)?;
    canvas.present()?;
    Ok(())
}

/// A bar for each contestant, a line over the range of its rounds.
fn bars(canvas: &Canvas<'_>, scenario: &ScenarioResults, metric: Metric, title: &str) -> Drawn {
    let rows: Vec<&Row> = scenario.rows.iter().rev().collect();
    let most = rows.iter().filter_map(|row| row.summary(metric));
    let most = most
        .map(|summary| summary.max)
        .fold(f64::MIN_POSITIVE, f64::max);
    let names = |place: &SegmentValue<usize>| match place {
        SegmentValue::CenterOf(at) => rows.get(*at).map(|row| row.contestant.clone()),
        SegmentValue::Exact(_) | SegmentValue::Last => None,
    };
    let mut chart = ChartBuilder::on(canvas)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(130)
        .build_cartesian_2d(0.0..most * 1.22, (0..rows.len()).into_segmented())?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(WHITE.mix(0.0))
        .label_style(FONT)
        .x_labels(6)
        .x_label_formatter(&|value| metric.show(*value))
        .y_label_formatter(&|place| names(place).unwrap_or_default())
        .draw()?;
    for (at, row) in rows.iter().enumerate() {
        let Some(summary) = row.summary(metric) else {
            continue;
        };
        let colour = colour(scenario, &row.contestant);
        let corners = [
            (0.0, SegmentValue::Exact(at)),
            (summary.median, SegmentValue::Exact(at + 1)),
        ];
        let mut bar = Rectangle::new(corners, colour.mix(0.8).filled());
        bar.set_margin(6, 6, 0, 0);
        let middle = || SegmentValue::CenterOf(at);
        let range = [(summary.min, middle()), (summary.max, middle())];
        let end = summary.max.max(summary.median) + most * 0.01;
        let mark = if row.is_valid() { "" } else { " ✗" };
        let value = format!("{}{mark}", metric.show(summary.median));
        let style = FONT.into_font().color(&BLACK);
        let style = style.pos(plotters::style::text_anchor::Pos::new(
            plotters::style::text_anchor::HPos::Left,
            plotters::style::text_anchor::VPos::Center,
        ));
        chart.draw_series([bar])?;
        chart.draw_series([PathElement::new(range, BLACK.stroke_width(2))])?;
        chart.draw_series([Text::new(value, (end, middle()), style)])?;
    }
    Ok(())
}

/// Latency over percentile: the axis is stretched towards the slowest.
fn latencies(canvas: &Canvas<'_>, scenario: &ScenarioResults, _: Metric, title: &str) -> Drawn {
    let lines = scenario
        .rows
        .iter()
        .map(|row| (row.contestant.as_str(), row.curve.clone()))
        .collect();
    // 1 / (1 - p): 1 is no part of the requests, 1000 is 99.9 %.
    let percentile = |inverse: f64| {
        let percent = format!("{:.3}", 100.0 - 100.0 / inverse);
        format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
    };
    let show = |value: f64| Metric::P99.show(value);
    lines_over(canvas, scenario, (title, lines), (&percentile, &show))
}

/// The first figure over the axis.
fn scaling(canvas: &Canvas<'_>, scenario: &ScenarioResults, metric: Metric, title: &str) -> Drawn {
    let mut lines: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for row in &scenario.rows {
        let point = row.point.and_then(|point| u32::try_from(point).ok());
        let (Some(point), Some(summary)) = (point, row.summary(metric)) else {
            continue;
        };
        let point = (f64::from(point), summary.median);
        match lines.iter_mut().find(|(name, _)| *name == row.contestant) {
            Some((_, line)) => line.push(point),
            None => lines.push((&row.contestant, vec![point])),
        }
    }
    let connections = |value: f64| format!("{value:.0}");
    let show = |value: f64| metric.show(value);
    lines_over(canvas, scenario, (title, lines), (&connections, &show))
}

type Lines<'a> = (&'a str, Vec<(&'a str, Vec<(f64, f64)>)>);
type Labels<'a> = (&'a dyn Fn(f64) -> String, &'a dyn Fn(f64) -> String);

/// Lines on two logarithmic axes.
fn lines_over(
    canvas: &Canvas<'_>,
    scenario: &ScenarioResults,
    (title, lines): Lines<'_>,
    (below, beside): Labels<'_>,
) -> Drawn {
    let points = || lines.iter().flat_map(|(_, line)| line.iter().copied());
    let positive = |value: f64| value.max(1e-3);
    let right = points().map(|(x, _)| x).fold(1.1, f64::max);
    let top = points().map(|(_, y)| positive(y)).fold(1e-3, f64::max);
    let bottom = points().map(|(_, y)| positive(y)).fold(top, f64::min);
    let mut chart = ChartBuilder::on(canvas)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(80)
        .build_cartesian_2d(
            (1.0..right).log_scale(),
            (bottom * 0.8..top * 1.25).log_scale(),
        )?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .label_style(FONT)
        .x_label_formatter(&|value| below(*value))
        .y_label_formatter(&|value| beside(*value))
        .draw()?;
    for (name, line) in &lines {
        let colour = colour(scenario, name);
        let line = line.iter().map(|(x, y)| (*x, positive(*y)));
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(line, style))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(FONT)
        .draw()?;
    Ok(())
}

/// The same for a contestant in every picture of a scenario.
fn colour(scenario: &ScenarioResults, contestant: &str) -> RGBColor {
    let mut names: Vec<&str> = Vec::new();
    for row in &scenario.rows {
        if !names.contains(&row.contestant.as_str()) {
            names.push(&row.contestant);
        }
    }
    let at = names.iter().position(|name| *name == contestant);
    let at = at.unwrap_or_default() % COLOURS.len();
    COLOURS.get(at).copied().unwrap_or(BLACK)
}
