//! Clients that go away, and work that outlives its response.

use std::time::Duration;

use cloudgo_host::Drained;
use tokio::time::Instant;

use crate::support::{
    Client, End, Http, TestHost, Wasi, never, occupy, request, spawn, until_free, until_full,
};

/// A host with one place and without timers that could free it.
async fn one_place(wasi: Wasi) -> TestHost {
    TestHost::guest(wasi.probe())
        .one_at_a_time(0)
        .with(|overlay| {
            overlay.wall = never();
            overlay.response_idle = never();
        })
        .start()
        .await
}

const SLEEP: &str = "/slow?ms=3600000";
const SPIN: &str = "/spin";

async fn fc_070_reset_while_the_guest_sleeps(wasi: Wasi) {
    let host = one_place(wasi).await;
    for _ in 0..3 {
        occupy(&host, SLEEP).await.reset();
        until_free(&host).await;
    }
}

async fn fc_070_reset_while_the_guest_computes(wasi: Wasi) {
    let host = one_place(wasi).await;
    for _ in 0..3 {
        occupy(&host, SPIN).await.reset();
        until_free(&host).await;
    }
}

async fn fc_070_close_while_the_guest_sleeps(wasi: Wasi) {
    let host = one_place(wasi).await;
    drop(occupy(&host, SLEEP).await);
    until_free(&host).await;
}

async fn fc_070_close_while_the_guest_computes(wasi: Wasi) {
    let host = one_place(wasi).await;
    drop(occupy(&host, SPIN).await);
    until_free(&host).await;
}

/// Gone in mid-response, while the guest does what `path` says.
async fn reset_in_the_body(wasi: Wasi, path: &str) {
    let host = one_place(wasi).await;
    for _ in 0..3 {
        let mut raw = host.raw().await;
        raw.get(path).await;
        assert_eq!(raw.status().await, 200, "{path}");
        raw.reset();
        until_free(&host).await;
    }
}

async fn fc_070_reset_while_the_body_sleeps(wasi: Wasi) {
    reset_in_the_body(wasi, "/slow?ms=3600000&after=1").await;
}

async fn fc_070_reset_while_the_body_is_computed(wasi: Wasi) {
    reset_in_the_body(wasi, "/spin?after=1").await;
}

async fn fc_070_many_vanish(wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|overlay| {
            overlay.requests = Some(20);
            overlay.queue = Some(1000);
            overlay.wall = never();
            overlay.queue_wait = crate::support::seconds(3600);
        })
        .start()
        .await;
    for _ in 0..10 {
        let mut gone = Vec::new();
        for _ in 0..20 {
            let mut raw = host.raw().await;
            raw.get(SLEEP).await;
            gone.push(raw);
        }
        gone.into_iter().for_each(crate::support::Raw::reset);
    }
    let mut raw = host.raw().await;
    raw.get("/slow").await;
    assert_eq!(raw.answer().await.text(), "slow 0\n");
}

/// Only the sending side is closed: the answer comes, perhaps after a probe.
async fn half_closed(wasi: Wasi, path: &str, body: &str) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    raw.get(path).await;
    raw.half_close().await;
    let answer = raw.answer().await;
    assert_eq!(
        (answer.status, answer.text(), answer.end),
        (200, body, End::Framed)
    );
    assert!(
        answer.interim.iter().all(|status| *status == 100),
        "{:?}",
        answer.interim
    );
    assert_eq!(raw.rest().await, b"");
}

async fn half_closed_clients_get_their_answer(wasi: Wasi) {
    // Longer than the grace before the probe, and shorter.
    half_closed(wasi, "/slow?ms=1500", "slow 1500\n").await;
    half_closed(wasi, "/slow", "slow 0\n").await;
}

async fn half_closed_clients_get_computed_answers(wasi: Wasi) {
    half_closed(wasi, "/spin?ms=1500", "spun 1500\n").await;
}

async fn half_closed_clients_get_late_bodies(wasi: Wasi) {
    half_closed(
        wasi,
        "/slow?ms=700&after=1&chunks=1&every=700",
        "slow 700\nchunk 1\n",
    )
    .await;
}

async fn half_closed_pipelines_are_answered(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    raw.get("/slow?ms=700").await;
    raw.get("/slow?ms=701").await;
    raw.half_close().await;
    for body in ["slow 700\n", "slow 701\n"] {
        let answer = raw.answer().await;
        assert_eq!(
            (answer.status, answer.text(), answer.end),
            (200, body, End::Framed)
        );
    }
}

/// Gives one stream up while the connection lives on.
async fn dropped_stream(wasi: Wasi, path: &str) {
    let host = one_place(wasi).await;
    let client = host.client(Http::Two).await;
    for _ in 0..3 {
        loop {
            let (mut stream, path) = (client.stream(), path.to_owned());
            let asked = spawn(async move {
                let _refused = stream.send_request(request("GET", &path)).await;
            });
            if until_full(&host, || asked.is_finished()).await {
                asked.abort();
                break;
            }
        }
        until_free(&host).await;
    }
    drop(client);
}

async fn fc_070_stream_reset_while_the_guest_sleeps(wasi: Wasi) {
    dropped_stream(wasi, SLEEP).await;
}

async fn fc_070_stream_reset_while_the_guest_computes(wasi: Wasi) {
    dropped_stream(wasi, SPIN).await;
}

async fn fc_083_many_sleepers(http: Http, wasi: Wasi) {
    const SLEEPERS: usize = 200;
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.requests = Some(SLEEPERS))
        .start()
        .await;
    let shared = host.client(http).await;
    let mut asked = Vec::new();
    for _ in 0..SLEEPERS {
        let addr = host.addr();
        let stream = (http == Http::Two).then(|| shared.stream());
        asked.push(spawn(async move {
            match stream {
                None => Client::connect(http, addr).await.get("/slow?ms=1000").await,
                Some(mut stream) => {
                    let response = stream.send_request(request("GET", "/slow?ms=1000")).await;
                    crate::support::Answer::of(response.unwrap()).await
                }
            }
        }));
    }
    for answer in asked {
        let answer = answer.await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.text()),
            (200, "slow 1000\n")
        );
    }
}

async fn fc_068_the_drain_waits_for_work_after_the_response(http: Http, wasi: Wasi) {
    const WORK: Duration = Duration::from_millis(1500);
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let begin = Instant::now();
    let answer = client.get("/post?ms=1500").await;
    assert_eq!((answer.status.as_u16(), answer.text()), (200, "posted\n"));
    assert_eq!(host.shutdown().await, Drained::Clean);
    assert!(
        begin.elapsed() >= WORK,
        "the guest was cut after {:?}",
        begin.elapsed()
    );
}

async fn fc_068_work_after_the_response_is_bounded(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe()).with(|overlay| {
        overlay.wall = crate::support::millis(300);
        overlay.drain = never();
    });
    let host = host.start().await;
    let answer = host.client(http).await.get("/post?ms=3600000").await;
    assert_eq!(answer.text(), "posted\n");
    assert_eq!(host.shutdown().await, Drained::Clean);
}

matrix! {
    fc_068_the_drain_waits_for_work_after_the_response
    fc_068_work_after_the_response_is_bounded
    fc_083_many_sleepers
}

versions! {
    fc_070_close_while_the_guest_computes
    fc_070_close_while_the_guest_sleeps
    fc_070_many_vanish
    fc_070_reset_while_the_body_is_computed
    fc_070_reset_while_the_body_sleeps
    fc_070_reset_while_the_guest_computes
    fc_070_reset_while_the_guest_sleeps
    fc_070_stream_reset_while_the_guest_computes
    fc_070_stream_reset_while_the_guest_sleeps
    half_closed_clients_get_computed_answers
    half_closed_clients_get_late_bodies
    half_closed_clients_get_their_answer
    half_closed_pipelines_are_answered
}
