//! Guests that fail before, in and after their response. A client never takes a broken answer for a whole
//! one, and the host goes on.

use bytes::Bytes;

use crate::support::{
    Answer, Client, End, Http, TestHost, Wasi, json, never, request, spawn, upload,
};

const DIGITS: &str = "0123456789";

/// The host and this very connection still serve.
async fn assert_serves(client: &mut Client) {
    let answer = client.get("/count").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.whole();
}

async fn fc_064_no_response_is_a_500(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for how in ["return", "trap", "exit0", "exit1"] {
        let answer = client.get(&format!("/fail?how={how}")).await;
        answer.assert_by_host(500);
        // The cause is the operator's business.
        for word in ["panicked", "wasm", "unreachable", "trap"] {
            assert!(!answer.text().contains(word), "{how}: {}", answer.text());
        }
        assert_serves(&mut client).await;
    }
}

async fn fc_064_same_connection_on_the_wire(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    for how in ["return", "trap", "exit0", "exit1"] {
        raw.get(&format!("/fail?how={how}")).await;
        raw.answer()
            .await
            .assert_by_host(500, "Internal Server Error");
        raw.get("/slow").await;
        let next = raw.answer().await;
        assert_eq!(
            (next.status, next.text(), next.end),
            (200, "slow 0\n", End::Framed)
        );
    }
}

async fn error_codes_become_statuses(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for (code, status) in [
        ("connection-refused", 502),
        ("connection-limit-reached", 502),
        ("dns-error", 502),
        ("loop-detected", 502),
        ("connection-timeout", 504),
        ("http-response-timeout", 504),
        ("internal-error", 500),
        ("http-request-denied", 500),
        ("configuration-error", 500),
    ] {
        let answer = client.get(&format!("/fail?how=error&code={code}")).await;
        answer.assert_by_host(status);
        assert!(!answer.text().contains(code), "{}", answer.text());
    }
    assert_serves(&mut client).await;
}

/// Status 200, the ten digits, and then no clean end.
#[track_caller]
fn assert_cut_after_digits(answer: &Answer, how: &str) {
    assert_eq!(answer.status, 200, "{how}");
    match &answer.body {
        Ok(body) => panic!("{how}: {body:?} looks complete"),
        Err(cut) => assert_eq!(cut.read, DIGITS, "{how}"),
    }
}

/// Ways to leave a body unfinished, each with and without a declared length.
fn unfinished(more: &str) -> impl Iterator<Item = String> {
    ["trap-after", "drop-body", "leak"]
        .into_iter()
        .flat_map(move |how| ["", "&cl=20"].map(|length| format!("/fail?how={how}{length}{more}")))
}

/// A leak would else be ended by the body's timer, which is another test's business.
async fn patient(wasi: Wasi) -> TestHost {
    TestHost::guest(wasi.probe())
        .with(|overlay| overlay.response_idle = never())
        .start()
        .await
}

async fn assert_unfinished_are_cut(http: Http, wasi: Wasi, more: &str) {
    let host = patient(wasi).await;
    for path in unfinished(more) {
        let mut client = host.client(http).await;
        let response = client.send(request("GET", &path)).await;
        let response = response.unwrap_or_else(|error| panic!("{path}: no head: {error:?}"));
        assert_cut_after_digits(&Answer::of(response).await, &path);
        match http {
            // RST_STREAM ends the stream and leaves the connection alone.
            Http::Two => assert_serves(&mut client).await,
            Http::One => assert_serves(&mut host.client(http).await).await,
        }
    }
}

async fn fc_065_cut_after_a_pause(http: Http, wasi: Wasi) {
    assert_unfinished_are_cut(http, wasi, "&ms=50").await;
}

async fn fc_065_cut_at_once(http: Http, wasi: Wasi) {
    assert_unfinished_are_cut(http, wasi, "").await;
}

async fn fc_065_no_last_chunk_on_the_wire(wasi: Wasi) {
    let host = patient(wasi).await;
    for path in unfinished("&ms=50") {
        let mut raw = host.raw().await;
        raw.get(&path).await;
        let answer = raw.answer().await;
        assert_eq!(
            (answer.status, answer.text(), answer.end),
            (200, DIGITS, End::Cut),
            "{path}"
        );
        assert_eq!(raw.rest().await, b"", "{path}");
    }
}

async fn fc_067_exit_after_a_finished_response(http: Http, wasi: Wasi) {
    // A WASI 0.3 instance takes the next request while it is about to exit, and takes it along.
    let host = TestHost::guest(wasi.probe()).with(|overlay| overlay.reuse_requests = Some(1));
    let host = host.start().await;
    let mut client = host.client(http).await;
    for path in [
        "/fail?how=exit-after",
        "/fail?how=exit-after&cl=10",
        "/fail?how=exit-after&ms=20",
    ] {
        for _ in 0..5 {
            let answer = client.get(path).await;
            assert_eq!(
                (answer.status.as_u16(), answer.text()),
                (200, DIGITS),
                "{path}"
            );
        }
    }
}

async fn fc_079_a_trap_spares_other_instances(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        // A WASI 0.3 instance that has answered with a head takes other requests; this one must not.
        .with(|overlay| overlay.reuse_requests = Some(1))
        .start()
        .await;
    let (mut sender, post) = upload("/echo");
    let mut neighbour = host.client(http).await;
    let response = neighbour.send(post).await.unwrap();
    let mut client = host.client(http).await;
    client.get("/fail?how=trap").await.assert_by_host(500);
    assert_serves(&mut client).await;
    sender.send_data(Bytes::from("still here")).await.unwrap();
    drop(sender);
    assert_eq!(Answer::of(response).await.text(), "still here");
}

async fn fc_079_neighbours_in_a_trapped_instance(http: Http) {
    let host = TestHost::probe(Wasi::P3).await;
    // One whose head is out, and one whose head is not.
    let (mut echo, post) = upload("/echo");
    let mut one = host.client(http).await;
    let response = one.send(post).await.unwrap();
    let (drain, post) = upload("/drain");
    let mut other = host.client(http).await;
    let drained = spawn(async move { other.ask(post).await });

    let mut client = host.client(http).await;
    client.get("/fail?how=trap").await.assert_by_host(500);
    assert_serves(&mut client).await;

    // The instance may have served them or not: either they work, or their failure shows.
    let sent = echo.send_data(Bytes::from("still here")).await;
    drop((echo, drain));
    let echoed = Answer::of(response).await;
    assert_eq!(echoed.status, 200);
    if let Ok(body) = &echoed.body {
        assert_eq!((body, sent.is_ok()), (&Bytes::from("still here"), true));
    }
    let drained = drained.await.unwrap();
    if drained.status == 200 {
        assert_eq!(json(drained.whole())["bytes"], 0);
    } else {
        drained.assert_by_host(500);
    }
}

async fn fc_079_neighbours_http1() {
    fc_079_neighbours_in_a_trapped_instance(Http::One).await;
}

async fn fc_079_neighbours_http2() {
    fc_079_neighbours_in_a_trapped_instance(Http::Two).await;
}

async fn head_of_a_failing_guest(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for how in ["return", "trap", "exit1", "error&code=internal-error"] {
        let answer = client
            .ask(request("HEAD", &format!("/fail?how={how}")))
            .await;
        assert_eq!((answer.status.as_u16(), answer.text()), (500, ""), "{how}");
        assert!(answer.header("x-request-id").is_some(), "{how}");
        assert_serves(&mut client).await;
    }
    // What becomes of a body that is not on the wire is no failure of the answer.
    for how in ["trap-after", "drop-body", "leak"] {
        let answer = client
            .ask(request("HEAD", &format!("/fail?how={how}&cl=20")))
            .await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, ""), "{how}");
        assert_eq!(answer.header("content-length"), Some("20"), "{how}");
        assert_serves(&mut client).await;
    }
}

async fn failures_one_after_the_other_leave_no_trace(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe()).one_at_a_time(1).start().await;
    let mut client = host.client(http).await;
    for _ in 0..50 {
        client.get("/fail?how=trap").await.assert_by_host(500);
        client.get("/fail?how=return").await.assert_by_host(500);
    }
    assert_serves(&mut client).await;
}

matrix! {
    error_codes_become_statuses
    failures_one_after_the_other_leave_no_trace
    fc_064_no_response_is_a_500
    fc_065_cut_after_a_pause
    fc_065_cut_at_once
    fc_067_exit_after_a_finished_response
    fc_079_a_trap_spares_other_instances
    head_of_a_failing_guest
}

versions! {
    fc_064_same_connection_on_the_wire
    fc_065_no_last_chunk_on_the_wire
}

single! {
    fc_079_neighbours_http1
    fc_079_neighbours_http2
}
