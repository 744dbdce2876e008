//! The end of a host: what has begun is finished, what is idle is closed, and nothing takes for ever.

use bytes::Bytes;
use cloudgo_host::{Drained, RunningHost};

use crate::support::{
    Answer, Builder, End, Http, Raw, TestHost, Wasi, json, millis, never, spawn, until_refused,
    upload,
};

/// Nothing ends by itself: neither the guest's work nor the drain.
fn patient(wasi: Wasi) -> Builder {
    TestHost::guest(wasi.probe()).with(|overlay| {
        overlay.wall = never();
        overlay.response_idle = never();
        overlay.drain = never();
    })
}

/// A request in whose middle the guest is: it has asked for the body, which has not come.
async fn mid_upload(host: &TestHost) -> Raw {
    let mut raw = host.raw().await;
    raw.send(
        "POST /drain HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n",
    )
    .await;
    assert_eq!(raw.interim().await, 100);
    raw
}

async fn fc_110_requests_in_flight_are_finished(wasi: Wasi) {
    let host = patient(wasi).start().await;
    let addr = host.addr();
    let mut waiting = Vec::new();
    for _ in 0..10 {
        waiting.push(mid_upload(&host).await);
    }
    let drained = spawn(host.shutdown());
    // From here on the drain has begun.
    until_refused(addr).await;
    assert!(!drained.is_finished(), "requests are in flight");
    for mut raw in waiting {
        raw.send("hello").await;
        let answer = raw.answer().await;
        assert_eq!((answer.status, answer.end), (200, End::Framed));
        assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
        assert_eq!(json(&answer.body)["bytes"], 5);
        assert_eq!(raw.rest().await, b"");
    }
    assert_eq!(drained.await.unwrap(), Drained::Clean);
}

async fn fc_110_bodies_in_flight_are_finished(http: Http, wasi: Wasi) {
    let host = patient(wasi).start().await;
    let addr = host.addr();
    let mut client = host.client(http).await;
    let (mut sender, post) = upload("/echo");
    let response = client.send(post).await.unwrap();
    sender
        .send_data(Bytes::from_static(b"before "))
        .await
        .unwrap();
    let drained = spawn(host.shutdown());
    until_refused(addr).await;
    sender
        .send_data(Bytes::from_static(b"and after"))
        .await
        .unwrap();
    drop(sender);
    assert_eq!(Answer::of(response).await.text(), "before and after");
    assert_eq!(drained.await.unwrap(), Drained::Clean);
}

async fn fc_109_idle_connections_are_closed(wasi: Wasi) {
    let host = patient(wasi).with(|overlay| {
        overlay.head = never();
        overlay.keep_alive = never();
    });
    let host = host.start().await;
    let mut idle = Vec::new();
    for _ in 0..5 {
        let mut raw = host.raw().await;
        raw.get("/slow").await;
        assert_eq!(raw.answer().await.status, 200);
        idle.push(raw);
        // One that never sends a byte.
        idle.push(host.raw().await);
    }
    assert_eq!(host.shutdown().await, Drained::Clean);
    for mut raw in idle {
        assert_eq!(raw.rest().await, b"", "closed without a word");
    }
}

/// What the client still sends at that moment (settings, acknowledgements) is no request.
async fn fc_109_http2_connections_without_a_request(wasi: Wasi) {
    let host = patient(wasi).with(|overlay| {
        overlay.head = never();
        overlay.keep_alive = never();
    });
    let host = host.start().await;
    let mut fresh = Vec::new();
    for _ in 0..50 {
        fresh.push(host.client(Http::Two).await);
    }
    assert_eq!(host.shutdown().await, Drained::Clean);
    drop(fresh);
}

async fn idle_http2_connections_are_closed(wasi: Wasi) {
    let host = patient(wasi)
        .with(|overlay| overlay.keep_alive = never())
        .start()
        .await;
    let mut client = host.client(Http::Two).await;
    assert_eq!(client.get("/slow").await.status, 200);
    assert_eq!(host.shutdown().await, Drained::Clean);
}

async fn a_head_that_has_begun_is_answered(wasi: Wasi) {
    let host = patient(wasi).start().await;
    let addr = host.addr();
    // A second connection's answer shows that the host has read what came before it, or soon will.
    let mut raw = host.raw().await;
    raw.send("GET /slow HTTP/1.1\r\n").await;
    assert_eq!(host.client(Http::One).await.get("/slow").await.status, 200);
    let drained = spawn(host.shutdown());
    until_refused(addr).await;
    raw.send("host: h\r\n\r\n").await;
    let answer = raw.answer().await;
    assert_eq!((answer.status, answer.text()), (200, "slow 0\n"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(drained.await.unwrap(), Drained::Clean);
}

async fn fc_112_the_limit_cuts_stuck_work(http: Http, wasi: Wasi) {
    for stuck in [
        "/slow?ms=3600000&after=1",
        "/spin?after=1",
        "/craft?endless",
    ] {
        let host = patient(wasi)
            .with(|overlay| overlay.drain = millis(300))
            .start()
            .await;
        let mut client = host.client(http).await;
        let response = client
            .send(crate::support::request("GET", stuck))
            .await
            .unwrap();
        assert_eq!(response.status(), 200, "{stuck}");
        let drained = host.shutdown().await;
        assert!(matches!(drained, Drained::Cut(1..)), "{stuck}: {drained:?}");
    }
}

async fn cut_at_once(running: RunningHost) {
    let drained = running.shutdown(std::future::ready(())).await;
    assert!(matches!(drained, Drained::Cut(1..)), "{drained:?}");
}

async fn fc_112_a_second_signal_cuts_at_once(wasi: Wasi) {
    let host = patient(wasi).start().await;
    let waiting = mid_upload(&host).await;
    cut_at_once(host.into_running()).await;
    drop(waiting);
}

async fn a_host_without_clients_drains_at_once(wasi: Wasi) {
    let host = patient(wasi).start().await;
    let addr = host.addr();
    assert_eq!(host.shutdown().await, Drained::Clean);
    until_refused(addr).await;
}

async fn an_idle_instance_does_not_hold_up_the_drain(wasi: Wasi) {
    let host = patient(wasi).with(|overlay| {
        overlay.reuse_requests = Some(100);
        overlay.reuse_idle = never();
    });
    let host = host.start().await;
    assert_eq!(
        host.client(Http::One).await.get("/count").await.text(),
        "1\n"
    );
    assert_eq!(host.shutdown().await, Drained::Clean);
}

matrix! {
    fc_110_bodies_in_flight_are_finished
    fc_112_the_limit_cuts_stuck_work
}

versions! {
    a_head_that_has_begun_is_answered
    a_host_without_clients_drains_at_once
    an_idle_instance_does_not_hold_up_the_drain
    fc_109_http2_connections_without_a_request
    fc_109_idle_connections_are_closed
    fc_110_requests_in_flight_are_finished
    fc_112_a_second_signal_cuts_at_once
    idle_http2_connections_are_closed
}
