//! Guest lines that are longer than a record: cut into several, with nothing lost and nothing added.

use serde_json::Value;

use crate::client::get;
use crate::logs::{printed, serve_json, text};

/// No record may let a guest fill the host's memory.
const LONGEST: usize = 16 * 1024;

/// Prints a line by one request and gives the messages of its records.
fn cut(guest: &str, target: &str) -> Vec<String> {
    let (mut host, address) = serve_json(guest, &[]);
    get(address, target).ok();
    let message = |record: &Value| text(record, "message").to_owned();
    printed(&mut host).iter().map(message).collect()
}

#[test]
fn fc_106_a_long_line_is_cut_and_nothing_is_lost() {
    for guest in ["probe_p2", "probe_p3"] {
        let piece: String = ('a'..='z').cycle().take(1000).collect();
        let messages = cut(guest, &format!("/print?text={piece}&times=200"));
        let lengths: Vec<_> = messages.iter().map(String::len).collect();
        assert!(
            lengths.iter().all(|length| (1..=LONGEST).contains(length)),
            "{guest}: {lengths:?}"
        );
        assert!(
            messages.concat() == piece.repeat(200),
            "{guest}: bytes are missing or moved"
        );
    }
}

#[test]
fn fc_106_a_long_line_with_its_end_is_cut_as_well() {
    for guest in ["probe_p2", "probe_p3"] {
        let messages = cut(guest, &format!("/print?text={}%0A", "y".repeat(40_000)));
        assert!(
            messages.concat() == "y".repeat(40_000),
            "{guest}: bytes are missing or moved"
        );
    }
}

/// Characters of three bytes do not divide what one write or one record takes.
#[test]
fn fc_106_a_long_line_is_not_cut_inside_a_character() {
    for guest in ["probe_p2", "probe_p3"] {
        let messages = cut(
            guest,
            &format!("/print?text={}%0A&times=1", "%E2%82%AC".repeat(6_000)),
        );
        let whole = messages.concat();
        let replaced = whole.matches('\u{fffd}').count();
        assert_eq!(replaced, 0, "{guest}: characters were cut in two");
        assert!(
            whole == "€".repeat(6_000),
            "{guest}: bytes are missing or moved"
        );
    }
}
