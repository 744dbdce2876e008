//! Medians, spreads and ratios of a few rounds.

use serde::{Deserialize, Serialize};

/// A figure over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The distance of the quartiles in parts of the median.
    pub spread: f64,
    /// How many.
    pub count: usize,
}

impl Summary {
    /// Of some values; `None` if there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = quantile(&sorted, 0.5)?;
        let distance = quantile(&sorted, 0.75)? - quantile(&sorted, 0.25)?;
        Some(Self {
            median,
            min: *sorted.first()?,
            max: *sorted.last()?,
            spread: if median == 0.0 {
                0.0
            } else {
                distance / median
            },
            count: sorted.len(),
        })
    }
}

/// The middle value.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    Summary::of(values).map(|summary| summary.median)
}

/// The ratios of two contestants round by round: what disturbs the machine for a while disturbs both. Rounds in
/// which one has no value are left out.
#[must_use]
pub fn ratios(of: &[(u32, f64)], to: &[(u32, f64)]) -> Vec<f64> {
    let partner = |round: u32| to.iter().find(|(other, _)| *other == round);
    of.iter()
        .filter_map(|(round, value)| partner(*round).map(|(_, base)| value / base))
        .filter(|ratio| ratio.is_finite())
        .collect()
}

/// Between the two neighbours in proportion (type 7).
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index into a few values"
)]
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let place = part * sorted.len().checked_sub(1)? as f64;
    let below = *sorted.get(place.floor() as usize)?;
    let above = *sorted.get(place.ceil() as usize)?;
    Some((above - below).mul_add(place.fract(), below))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn summaries_are_those_made_by_hand() {
        let summary = Summary::of(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert!(near(summary.median, 3.0) && near(summary.min, 1.0) && near(summary.max, 5.0));
        assert!(near(summary.spread, 2.0 / 3.0), "quartiles are 2 and 4");
        assert_eq!(summary.count, 5);
        let summary = Summary::of(&[10.0, 20.0, 30.0, 40.0]).unwrap();
        assert!(near(summary.median, 25.0));
        assert!(
            near(summary.spread, 15.0 / 25.0),
            "quartiles are 17.5 and 32.5"
        );
        let summary = Summary::of(&[7.0]).unwrap();
        assert!(near(summary.median, 7.0) && near(summary.spread, 0.0));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn the_median_of_ratios_is_not_the_ratio_of_medians() {
        let fast = [(1, 100.0), (2, 30.0), (3, 90.0)];
        let slow = [(1, 50.0), (2, 10.0), (3, 60.0)];
        let ratios = ratios(&fast, &slow);
        assert_eq!(ratios, [2.0, 3.0, 1.5]);
        assert!(near(median(&ratios).unwrap(), 2.0));
    }

    #[test]
    fn ratios_pair_rounds_and_skip_what_is_missing() {
        let of = [(1, 8.0), (3, 9.0)];
        let to = [(3, 3.0), (2, 1.0), (1, 0.0)];
        assert_eq!(ratios(&of, &to), [3.0]);
    }
}
