//! How answers are framed, and that a connection stays in step: what one exchange leaves behind never
//! becomes part of the next one.

use crate::support::{End, Http, Raw, TestHost, Wasi, json, post, request};

/// The next answer on this connection belongs to the next request.
async fn assert_in_step(raw: &mut Raw, context: &str) {
    raw.get("/craft?status=207&cl=4&chunk=next").await;
    let next = raw
        .answer_to("GET")
        .await
        .unwrap_or_else(|| panic!("{context}: closed"));
    assert_eq!(
        (next.status, next.text(), next.end),
        (207, "next", End::Framed),
        "{context}"
    );
}

async fn fc_002_each_cookie_is_a_line(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    let path = "/craft?h=set-cookie:a=1&h=set-cookie:b=2;%20Expires=Wed,%2001%20Jan%202020%2000:00:00%20GMT\
                &h=set-cookie:a=3&cl=0";
    raw.get(path).await;
    let answer = raw.answer().await;
    let expected: [&[u8]; 3] = [
        b"a=1",
        b"b=2; Expires=Wed, 01 Jan 2020 00:00:00 GMT",
        b"a=3",
    ];
    assert_eq!(answer.values("set-cookie"), expected);
}

async fn fc_046_204_has_no_framing(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    for more in ["", "&cl=5", "&chunk=hello", "&cl=5&chunk=hello"] {
        let mut raw = host.raw().await;
        raw.get(&format!("/craft?status=204{more}")).await;
        let answer = raw.answer().await;
        assert_eq!(answer.status, 204, "{more}");
        assert!(
            answer.values("content-length").is_empty(),
            "{more} {answer:?}"
        );
        assert!(
            answer.values("transfer-encoding").is_empty(),
            "{more} {answer:?}"
        );
        assert_in_step(&mut raw, more).await;
    }
}

async fn fc_047_304_keeps_its_validators(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    for more in ["", "&cl=5", "&chunk=hello"] {
        let mut raw = host.raw().await;
        raw.get(&format!("/craft?status=304&h=etag:%22x%22{more}"))
            .await;
        let answer = raw.answer().await;
        assert_eq!(
            (answer.status, answer.header("etag")),
            (304, Some("\"x\"")),
            "{more}"
        );
        assert_in_step(&mut raw, more).await;
    }
}

async fn fc_049_head_keeps_the_guests_length(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let answer = client.ask(request("HEAD", "/craft?cl=229630")).await;
    assert_eq!((answer.status.as_u16(), answer.text()), (200, ""));
    assert_eq!(answer.header("content-length"), Some("229630"));
    let answer = client.ask(request("HEAD", "/craft?chunk=hello")).await;
    assert_eq!((answer.status.as_u16(), answer.text()), (200, ""));
    assert!(
        matches!(answer.header("content-length"), None | Some("5")),
        "{answer:?}"
    );
}

async fn fc_050_known_sizes_are_not_chunked(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    for (path, body) in [("/craft?cl=5&chunk=hello", "hello"), ("/craft?cl=0", "")] {
        raw.get(path).await;
        let answer = raw.answer().await;
        assert_eq!((answer.text(), answer.end), (body, End::Framed), "{path}");
        assert_eq!(
            answer.header("content-length"),
            Some(body.len().to_string().as_str()),
            "{path}"
        );
        assert!(
            answer.values("transfer-encoding").is_empty(),
            "{path} {answer:?}"
        );
    }
    raw.get("/craft").await;
    let answer = raw.answer().await;
    assert_eq!(
        (answer.text(), answer.end),
        ("", End::Framed),
        "an empty body is framed"
    );
    assert_in_step(&mut raw, "after an empty body").await;
}

async fn fc_052_surplus_bytes_never_reach_the_wire(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    for path in [
        "/craft?cl=4&chunk=0123456789",
        "/craft?cl=4&chunk=0123&chunk=456789",
    ] {
        let mut raw = host.raw().await;
        raw.get(path).await;
        raw.get("/craft?status=207&cl=4&chunk=next").await;
        let Some(answer) = raw.answer_to("GET").await else {
            continue;
        };
        let honest =
            matches!((answer.status, answer.text()), (200, "0123" | "")) || answer.status == 500;
        assert!(honest, "{path} {answer:?}");
        if let Some(next) = raw.answer_to("GET").await {
            assert_eq!((next.status, next.text()), (207, "next"), "{path}");
        }
    }
}

async fn fc_053_malformed_lengths_are_refused(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    for path in [
        "/craft?cl=abc&chunk=x",
        "/craft?cl=1&cl=2&chunk=x",
        "/craft?cl=-1&chunk=x",
        "/craft?cl=%2B1&chunk=x",
    ] {
        let mut raw = host.raw().await;
        raw.get(path).await;
        let answer = raw.answer().await;
        if answer.status == 200 {
            // The guest may have been refused the header, and then its body is framed by the host.
            let lengths = answer.values("content-length");
            assert!(lengths.is_empty() || lengths == [b"1"], "{path} {answer:?}");
            assert_eq!((answer.text(), answer.end), ("x", End::Framed), "{path}");
        } else {
            answer.assert_by_host(500, "Internal Server Error");
        }
    }
}

async fn fc_055_interim_statuses_are_no_answers(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for status in [100, 101, 103] {
        let answer = client.get(&format!("/craft?status={status}&chunk=x")).await;
        // Bindings that refuse the status leave the guest with its 200.
        if answer.status == 200 {
            assert_eq!(answer.text(), "x", "{status}");
        } else {
            answer.assert_by_host(500);
        }
        assert_eq!(client.get("/count").await.status, 200, "{status}");
    }
}

async fn fc_040_pipelined_requests_in_order(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    let one = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n");
    raw.send(one("/slow?ms=300") + &one("/slow") + &one("/craft?cl=4&chunk=last"))
        .await;
    for body in ["slow 300\n", "slow 0\n", "last"] {
        assert_eq!(raw.answer().await.text(), body);
    }
}

async fn fc_040_a_thousand_pipelined(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    let all: String = (0..1000)
        .map(|number| {
            format!("GET /craft?h=x-n:{number}&chunk={number} HTTP/1.1\r\nhost: h\r\n\r\n")
        })
        .collect();
    raw.send(all).await;
    for number in 0..1000 {
        assert_eq!(raw.answer().await.text(), number.to_string());
    }
}

async fn fc_040_an_answer_does_not_wait_for_the_next(wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.wall = crate::support::never())
        .start()
        .await;
    let mut raw = host.raw().await;
    let one = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n");
    // The second and third never end while the test lives.
    raw.send(one("/slow") + &one("/slow?ms=3600000") + &one("/slow?ms=3600000"))
        .await;
    assert_eq!(raw.answer().await.text(), "slow 0\n");
}

async fn fc_041_unread_bodies_are_no_requests(wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.reuse_requests = Some(1))
        .start()
        .await;
    let evil = "GET /craft?status=299 HTTP/1.1\r\nhost: h\r\n\r\n";
    let chunked = format!("{:x}\r\n{evil}\r\n0\r\n\r\n", evil.len());
    for (framing, body) in [
        (format!("content-length: {}", evil.len()), evil),
        ("transfer-encoding: chunked".to_owned(), chunked.as_str()),
    ] {
        let mut raw = host.raw().await;
        let head = format!("POST /craft?cl=2&chunk=ok HTTP/1.1\r\nhost: h\r\n{framing}\r\n\r\n");
        raw.send(head + body).await;
        let answer = raw.answer().await;
        assert_eq!((answer.status, answer.text()), (200, "ok"), "{framing}");
        raw.get("/craft?status=207&cl=4&chunk=next").await;
        if let Some(next) = raw.answer_to("GET").await {
            assert_eq!((next.status, next.text()), (207, "next"), "{framing}");
        }
    }
}

async fn fc_022_two_framings(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    let head = "POST /drain HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n";
    raw.send(format!(
        "{head}5\r\nhello\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nhost: h\r\n\r\n"
    ))
    .await;
    let answer = raw.answer().await;
    if answer.status == 200 {
        assert_eq!(json(&answer.body)["bytes"], 5);
    } else {
        assert_eq!(answer.status, 400);
    }
    assert_eq!(
        raw.rest().await,
        b"",
        "the second request must not be answered"
    );
}

async fn fc_023_bad_content_lengths(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    for lengths in [
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5, 6",
        "content-length: +5",
        "content-length: -1",
        "content-length: 0x5",
        "content-length: 5 5",
        "content-length: 999999999999999999999999999999",
    ] {
        let mut raw = host.raw().await;
        raw.send(format!(
            "POST /drain HTTP/1.1\r\nhost: h\r\n{lengths}\r\n\r\nhello"
        ))
        .await;
        let answer = raw
            .answer_to("POST")
            .await
            .unwrap_or_else(|| panic!("{lengths}: closed"));
        assert_eq!(answer.status, 400, "{lengths}");
        assert_eq!(raw.rest().await, b"", "{lengths}: closed after it");
    }
}

async fn fc_025_broken_chunks(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    for body in [
        "5g\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "-1\r\nhello\r\n",
        "5\r\nhelloX0\r\n\r\n",
        "11111111111111111\r\nhello",
        "5\r\nhello\r\nX\r\n\r\n",
    ] {
        let mut raw = host.raw().await;
        raw.send("POST /drain HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        raw.send(body).await;
        let answer = raw
            .answer_to("POST")
            .await
            .unwrap_or_else(|| panic!("{body:?}: no answer"));
        if answer.status == 200 {
            assert!(
                !json(&answer.body)["error"].is_null(),
                "{body:?} looks whole to the guest"
            );
        } else {
            assert_eq!(answer.status, 400, "{body:?}");
        }
        assert_eq!(raw.rest().await, b"", "{body:?}: closed after it");
    }
}

async fn fc_031_too_many_headers(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    for (lines, status) in [(90, 200), (10_000, 431)] {
        let mut raw = host.raw().await;
        let headers: String = (0..lines).map(|line| format!("x-{line}: 1\r\n")).collect();
        raw.send(format!("GET /count HTTP/1.1\r\nhost: h\r\n{headers}\r\n"))
            .await;
        assert_eq!(raw.answer().await.status, status, "{lines} lines");
    }
}

async fn fc_056_trailers(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let mut asked = request("GET", "/craft?h=trailer:x-sum&chunk=hello&trailer=x-sum:1");
    asked
        .headers_mut()
        .insert("te", "trailers".parse().unwrap());
    let answer = client.ask(asked).await;
    assert_eq!(answer.text(), "hello");
    let trailers = answer.trailers.expect("trailers");
    assert_eq!(
        (trailers.len(), &trailers["x-sum"]),
        (1, &"1".parse().unwrap())
    );
    assert!(
        client
            .get("/craft?chunk=hello")
            .await
            .trailers
            .is_none_or(|trailers| trailers.is_empty())
    );
}

async fn fc_058_empty_writes(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    assert_eq!(
        client.get("/craft?chunk=a&chunk=&chunk=b").await.text(),
        "ab"
    );
    assert_eq!(client.get("/craft?chunk=&chunk=").await.text(), "");
}

async fn fc_076_ignored_bodies(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let answer = client
        .ask(post("/craft?chunk=ignored", vec![b'x'; 1000]))
        .await;
    assert_eq!((answer.status.as_u16(), answer.text()), (200, "ignored"));
    let mut client = host.client(http).await;
    assert_eq!(client.get("/craft?chunk=next").await.text(), "next");
}

matrix! {
    fc_049_head_keeps_the_guests_length
    fc_055_interim_statuses_are_no_answers
    fc_056_trailers
    fc_058_empty_writes
    fc_076_ignored_bodies
}

versions! {
    fc_002_each_cookie_is_a_line
    fc_022_two_framings
    fc_023_bad_content_lengths
    fc_025_broken_chunks
    fc_031_too_many_headers
    fc_040_a_thousand_pipelined
    fc_040_an_answer_does_not_wait_for_the_next
    fc_040_pipelined_requests_in_order
    fc_041_unread_bodies_are_no_requests
    fc_046_204_has_no_framing
    fc_047_304_keeps_its_validators
    fc_050_known_sizes_are_not_chunked
    fc_052_surplus_bytes_never_reach_the_wire
    fc_053_malformed_lengths_are_refused
}
