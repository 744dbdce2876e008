//! Answers in pieces of every size.

use bytes::Bytes;

use super::*;

fn expect(body: &'static str) -> Expect {
    Expect {
        status: 200,
        body: ExpectBody::Bytes(Bytes::from_static(body.as_bytes())),
    }
}

/// Feeds pieces of `size` bytes, as a connection does: what is not taken comes again with the next piece.
fn feed<'a>(expect: &'a Expect, text: &str, size: usize) -> Result<Answer<'a>, Failure> {
    let mut answer = Answer::new(expect, false);
    let mut pending = Vec::new();
    for piece in text.as_bytes().chunks(size) {
        pending.extend_from_slice(piece);
        let taken = answer.feed(&pending)?;
        pending.drain(..taken);
    }
    assert!(
        pending.is_empty() || !answer.done(),
        "{} bytes after the end",
        pending.len()
    );
    Ok(answer)
}

#[test]
fn every_framing_is_read_in_pieces_of_any_size() {
    let hello = expect("hello world");
    let cases = [
        "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nhello \r\n5;x=y\r\nworld\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, Chunked\r\n\r\nb\r\nhello world\r\n0\r\na: b\r\nc: d\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world",
    ];
    for (text, size) in cases
        .iter()
        .flat_map(|text| [1, 2, 7, 1000].map(|size| (text, size)))
    {
        let answer = feed(&hello, text, size).unwrap();
        assert!(
            answer.done() && answer.keep_alive(),
            "{text:?} in pieces of {size}"
        );
        assert_eq!(answer.verdict(), Ok(()), "{text:?} in pieces of {size}");
    }
}

#[test]
fn a_body_without_length_ends_with_the_connection() {
    let hello = expect("hello");
    let mut answer = feed(&hello, "HTTP/1.1 200 OK\r\n\r\nhello", 3).unwrap();
    assert!(!answer.done() && !answer.keep_alive());
    answer.end().unwrap();
    assert_eq!(answer.verdict(), Ok(()));
}

#[test]
fn what_differs_is_told_by_kind() {
    let hello = expect("hello");
    let verdict = |text| feed(&hello, text, 4).unwrap().verdict();
    assert_eq!(
        verdict("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n"),
        Err(Failure::Status(503))
    );
    for body in ["hallo", "hell", "hello!", ""] {
        let text = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(
            feed(&hello, &text, 4).unwrap().verdict(),
            Err(Failure::Body),
            "{body}"
        );
    }
    let length = Expect {
        status: 200,
        body: ExpectBody::Length(3),
    };
    assert_eq!(
        feed(
            &length,
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc",
            4
        )
        .unwrap()
        .verdict(),
        Ok(())
    );
    assert_eq!(
        feed(&length, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab", 4)
            .unwrap()
            .verdict(),
        Err(Failure::Body)
    );
}

#[test]
fn an_early_end_is_a_cut_and_nonsense_is_malformed() {
    let any = Expect::default();
    for text in [
        "",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na",
    ] {
        assert_eq!(
            feed(&any, text, 9).unwrap().end(),
            Err(Failure::Cut),
            "{text:?}"
        );
    }
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_eq!(
        feed(&any, &format!("{chunked}2\r\na"), 9).unwrap().end(),
        Err(Failure::Cut)
    );
    for tail in ["\r\n", "g\r\n", "1\r\nab", "1000000000000000\r\n"] {
        assert_eq!(
            feed(&any, &format!("{chunked}{tail}"), 9).err(),
            Some(Failure::Malformed),
            "{tail:?}"
        );
    }
    assert_eq!(
        feed(&any, "nonsense\r\n\r\n", 20).err(),
        Some(Failure::Malformed)
    );
    assert_eq!(
        feed(&any, "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", 99).err(),
        Some(Failure::Malformed)
    );
}

#[test]
fn the_server_says_whether_it_keeps_the_connection() {
    let any = Expect::default();
    let keeps = |text| feed(&any, text, 99).unwrap().keep_alive();
    assert!(keeps("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    assert!(!keeps(
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: Close\r\n\r\n"
    ));
    assert!(!keeps("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"));
    assert!(keeps(
        "HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: Keep-Alive\r\n\r\n"
    ));
}

#[test]
fn answers_without_a_body_end_with_their_head() {
    let mut expect = Expect::default();
    let mut answer = Answer::new(&expect, true);
    answer
        .feed(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n")
        .unwrap();
    assert!(answer.done());
    expect.status = 204;
    assert!(
        feed(&expect, "HTTP/1.1 204 No Content\r\n\r\n", 99)
            .unwrap()
            .done()
    );
}
