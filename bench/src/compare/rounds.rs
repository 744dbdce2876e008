//! The order of the contestants: each once in every round, forwards and backwards in turn, so that a machine which
//! becomes slower or faster over time does so for all.

/// The places of `contestants` in a round, which counts from 1.
#[must_use]
pub fn order(round: u32, contestants: usize) -> Vec<usize> {
    let forwards = 0..contestants;
    if round.is_multiple_of(2) {
        forwards.rev().collect()
    } else {
        forwards.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn rounds_alternate_and_leave_nobody_out() {
        assert_eq!(order(1, 3), [0, 1, 2]);
        assert_eq!(order(2, 3), [2, 1, 0]);
        assert_eq!(order(3, 3), [0, 1, 2]);
        assert_eq!(order(1, 0), [0; 0]);
    }
}
