//! What clients and guests may take: time, bytes, memory and places. Each limit has its own answer, and
//! the host goes on.

use std::time::Duration;

use bytes::Bytes;
use cloudgo_host::config::units::SizeLimit;
use serde_json::Value;

use crate::support::{
    Answer, End, Http, TestHost, Wasi, json, millis, never, occupy, post, request, seconds, spawn,
    until_free, upload,
};

async fn fc_082_sleep_is_stopped_at_the_wall_time(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.wall = millis(300))
        .start()
        .await;
    let mut client = host.client(http).await;
    client.get("/slow?ms=60000").await.assert_by_host(504);
    assert_eq!(client.get("/slow").await.text(), "slow 0\n");
}

async fn fc_082_a_cpu_loop_is_stopped_at_the_wall_time(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.wall = millis(300))
        .start()
        .await;
    let mut client = host.client(http).await;
    client.get("/spin").await.assert_by_host(504);
    // The loop is gone and its place is free.
    assert_eq!(client.get("/spin?ms=1").await.text(), "spun 1\n");
}

async fn deadlines_give_the_place_back(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .one_at_a_time(1)
        .with(|o| o.wall = millis(200));
    let host = host.start().await;
    let mut client = host.client(http).await;
    for path in ["/slow?ms=60000", "/spin", "/slow?ms=60000"] {
        client.get(path).await.assert_by_host(504);
    }
    assert_eq!(client.get("/slow").await.status, 200);
}

async fn uploads_are_not_billed_to_the_guest(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.wall = seconds(1))
        .start()
        .await;
    let mut client = host.client(http).await;
    let (mut sender, post) = upload("/drain");
    let trickle = spawn(async move {
        // Longer than the wall time in all, and the guest waits for nearly all of it.
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            sender
                .send_data(Bytes::from_static(b"12345"))
                .await
                .unwrap();
        }
    });
    let answer = client.ask(post).await;
    trickle.await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    let drained = json(answer.whole());
    assert_eq!(
        (&drained["bytes"], &drained["error"]),
        (&Value::from(50), &Value::Null)
    );
}

fn body_limit(wasi: Wasi, bytes: u64) -> crate::support::Builder {
    TestHost::guest(wasi.probe()).with(|overlay| overlay.body = Some(SizeLimit(Some(bytes))))
}

async fn declared_bodies_beyond_the_limit(http: Http, wasi: Wasi) {
    let host = body_limit(wasi, 1000).start().await;
    let mut client = host.client(http).await;
    client
        .ask(post("/drain", vec![b'x'; 1001]))
        .await
        .assert_by_host(413);
    let mut client = host.client(http).await;
    let answer = client.ask(post("/drain", vec![b'x'; 1000])).await;
    assert_eq!(json(answer.whole())["bytes"], 1000);
}

async fn undeclared_bodies_beyond_the_limit(http: Http, wasi: Wasi) {
    let host = body_limit(wasi, 1000).start().await;
    let mut client = host.client(http).await;
    let (mut sender, post) = upload("/drain");
    let sending = spawn(async move {
        for _ in 0..3 {
            if sender
                .send_data(Bytes::from(vec![b'x'; 400]))
                .await
                .is_err()
            {
                return;
            }
        }
    });
    let answer = client.ask(post).await;
    sending.await.unwrap();
    // This guest answers with the error that its body ended with; one that fails gets the 413.
    let drained = json(answer.whole());
    assert_eq!(code(&drained), "httprequestbodysize", "{drained}");
    assert!(drained["bytes"].as_u64().unwrap() <= 1000, "{drained}");
}

/// The error code in `drained`, which the bindings of both versions spell in their own ways.
fn code(drained: &Value) -> String {
    let text = drained["error"].as_str().unwrap_or_default();
    let text = text
        .split([':', '('])
        .next()
        .unwrap_or_default()
        .to_lowercase();
    text.replace(" exceeds limit", "").replace(' ', "")
}

fn memory_limit(wasi: Wasi) -> crate::support::Builder {
    TestHost::guest(wasi.probe()).with(|overlay| overlay.memory = Some(SizeLimit(Some(64 << 20))))
}

async fn fc_086_memory_grows_to_the_limit(http: Http, wasi: Wasi) {
    let host = memory_limit(wasi).start().await;
    let mut client = host.client(http).await;
    let pages = json(client.get("/inspect").await.whole())["memory_pages"]
        .as_u64()
        .unwrap();
    let answer = client.get("/fat?grow=200").await;
    let grown = json(answer.whole());
    assert_eq!(grown["asked"], 200);
    let most = 64 - pages.div_ceil(16);
    let got = grown["got"].as_u64().unwrap();
    assert!(got <= most, "{got} of at most {most}");
    // The probe starts with a few MiB, and a reused instance has grown no further by itself.
    assert!(got >= 50, "{got} of about {most}");
}

async fn fc_086_allocation_beyond_the_limit(http: Http, wasi: Wasi) {
    let host = memory_limit(wasi).start().await;
    let mut client = host.client(http).await;
    client.get("/fat?alloc=100").await.assert_by_host(500);
    let answer = client.get("/fat?alloc=20").await;
    assert_eq!(json(answer.whole())["got"], 20);
}

async fn fc_089_header_sets_are_bounded(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    raw.get("/fat?headers=100000").await;
    let answer = raw.answer().await;
    match wasi {
        // Beyond its limit a WASI 0.2 guest traps, for the interface has no error for it.
        Wasi::P2 => answer.assert_by_host(500, "Internal Server Error"),
        Wasi::P3 => {
            let flooded = json(&answer.body);
            assert_eq!(flooded["error"], "SizeExceeded");
            let appended = flooded["appended"].as_u64().unwrap();
            assert!(
                (500..1500).contains(&appended),
                "128 KiB are about 1300: {flooded}"
            );
        }
    }
    raw.get("/slow").await;
    assert_eq!(raw.answer().await.text(), "slow 0\n");
}

/// An echo whose head has come back: it is inside the host until the test drops its sender.
async fn inside(
    host: &TestHost,
    http: Http,
) -> (crate::support::Upload, impl Future<Output = Answer>) {
    let (mut sender, post) = upload("/echo");
    let mut client = host.client(http).await;
    let response = client.send(post).await.unwrap();
    sender
        .send_data(Bytes::from_static(b"inside"))
        .await
        .unwrap();
    let rest = async move {
        let answer = Answer::of(response).await;
        drop(client);
        answer
    };
    (sender, rest)
}

async fn fc_043_without_a_queue(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe()).one_at_a_time(0).start().await;
    let (sender, first) = inside(&host, http).await;
    let mut client = host.client(http).await;
    for _ in 0..3 {
        let refused = client.get("/slow").await;
        refused.assert_by_host(503);
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    drop(sender);
    assert_eq!(first.await.text(), "inside");
    until_free(&host).await;
}

async fn fc_043_the_queue_is_bounded_in_length(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe()).one_at_a_time(1).start().await;
    let (sender, first) = inside(&host, http).await;
    let ask = || async {
        let mut client = host.client(http).await;
        client.get("/slow").await
    };
    let (mut one, mut other) = (Box::pin(ask()), Box::pin(ask()));
    // Two come and there is one place: whoever is answered now is refused.
    let (refused, queued) = tokio::select! {
        refused = &mut one => (refused, other),
        refused = &mut other => (refused, one),
    };
    refused.assert_by_host(503);
    drop(sender);
    assert_eq!(first.await.text(), "inside");
    assert_eq!(queued.await.text(), "slow 0\n");
}

async fn fc_043_the_queue_is_bounded_in_time(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .one_at_a_time(1)
        .with(|o| o.queue_wait = millis(200));
    let host = host.start().await;
    let (sender, first) = inside(&host, http).await;
    let refused = host.client(http).await.get("/slow").await;
    refused.assert_by_host(503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    drop(sender);
    assert_eq!(first.await.text(), "inside");
}

/// Status 200 and as much of the body as came before a silence that is too long.
async fn cut_in_silence(http: Http, wasi: Wasi, path: &str, read: &str) {
    let host = TestHost::guest(wasi.probe())
        .one_at_a_time(1)
        .with(|overlay| {
            overlay.response_idle = millis(300);
            overlay.wall = never();
        });
    let host = host.start().await;
    let answer = host.client(http).await.get(path).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body.expect_err("a cut").read, read);
    // Its place is free again.
    assert_eq!(
        host.client(http).await.get("/slow").await.text(),
        "slow 0\n"
    );
}

async fn sleeping_response_bodies_are_cut(http: Http, wasi: Wasi) {
    cut_in_silence(http, wasi, "/slow?ms=3600000&after=1", "").await;
}

async fn computing_response_bodies_are_cut(http: Http, wasi: Wasi) {
    cut_in_silence(http, wasi, "/spin?after=1", "0123456789").await;
}

async fn silent_request_bodies_are_an_error_for_the_guest(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.body_idle = millis(300))
        .start()
        .await;
    let mut client = host.client(http).await;
    let (mut sender, post) = upload("/drain");
    sender
        .send_data(Bytes::from_static(b"hello"))
        .await
        .unwrap();
    let answer = client.ask(post).await;
    // This guest answers with the error that its body ended with; one that fails gets the 408.
    let drained = json(answer.whole());
    assert_eq!(drained["bytes"], 5);
    assert_eq!(code(&drained), "connectionreadtimeout", "{drained}");
    drop(sender);
}

async fn fc_032_slow_heads(wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.head = millis(300))
        .start()
        .await;
    let mut silent = host.raw().await;
    assert_eq!(
        silent.rest().await,
        b"",
        "a connection that says nothing is closed without a word"
    );
    let mut slow = host.raw().await;
    slow.send("GET / HTTP/1.1\r\nhost: h\r\nx-a: ").await;
    let answer = slow.answer().await;
    assert_eq!((answer.status, answer.end), (408, End::Framed));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(slow.rest().await, b"");
    // The second head of a connection is no different.
    let mut second = host.raw().await;
    second.get("/slow").await;
    assert_eq!(second.answer().await.status, 200);
    second.send("G").await;
    assert_eq!(second.answer().await.status, 408);
}

async fn idle_connections_are_closed(wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.keep_alive = millis(300))
        .start()
        .await;
    let mut raw = host.raw().await;
    raw.get("/slow").await;
    assert_eq!(raw.answer().await.status, 200);
    assert_eq!(
        raw.rest().await,
        b"",
        "an idle connection is closed without a word"
    );
    // A busy one is not idle.
    let mut raw = host.raw().await;
    raw.get("/slow?ms=900").await;
    assert_eq!(raw.answer().await.text(), "slow 900\n");
}

async fn head_requests_give_their_place_back(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe()).one_at_a_time(1).start().await;
    let mut client = host.client(http).await;
    for path in [
        "/craft?cl=5&chunk=hello",
        "/craft?size=100000",
        "/slow",
        "/fail?how=trap-after",
    ] {
        assert_eq!(
            client.ask(request("HEAD", path)).await.status,
            200,
            "{path}"
        );
    }
    assert_eq!(client.get("/slow").await.status, 200);
}

async fn an_admitted_request_outlives_refusals(wasi: Wasi) {
    let host = TestHost::guest(wasi.probe()).one_at_a_time(0).start().await;
    let mut first = occupy(&host, "/slow?ms=1000").await;
    assert_eq!(first.answer().await.text(), "slow 1000\n");
}

matrix! {
    computing_response_bodies_are_cut
    deadlines_give_the_place_back
    declared_bodies_beyond_the_limit
    fc_043_the_queue_is_bounded_in_length
    fc_043_the_queue_is_bounded_in_time
    fc_043_without_a_queue
    fc_082_a_cpu_loop_is_stopped_at_the_wall_time
    fc_082_sleep_is_stopped_at_the_wall_time
    fc_086_allocation_beyond_the_limit
    fc_086_memory_grows_to_the_limit
    head_requests_give_their_place_back
    silent_request_bodies_are_an_error_for_the_guest
    sleeping_response_bodies_are_cut
    undeclared_bodies_beyond_the_limit
    uploads_are_not_billed_to_the_guest
}

versions! {
    an_admitted_request_outlives_refusals
    fc_032_slow_heads
    fc_089_header_sets_are_bounded
    idle_connections_are_closed
}
