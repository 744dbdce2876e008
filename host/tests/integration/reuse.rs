//! How long an instance lives, and that the pool never runs out.

use std::collections::HashSet;

use crate::support::{Answer, Builder, Client, Http, TestHost, Wasi, json, never, seconds, spawn};

/// What `count` answers to so many requests, one after the other on a host with one place: the next
/// request enters when the instance has been given back.
async fn counts(http: Http, host: &TestHost, requests: usize) -> Vec<u64> {
    let mut client = host.client(http).await;
    let mut counts = Vec::new();
    for _ in 0..requests {
        let answer = client.get("/count").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        counts.push(answer.text().trim_end().parse().unwrap());
    }
    counts
}

/// Instances end by count alone.
fn reused(wasi: Wasi, requests: usize) -> Builder {
    TestHost::guest(wasi.probe())
        .one_at_a_time(1)
        .with(|overlay| {
            overlay.reuse_requests = Some(requests);
            overlay.reuse_idle = never();
        })
}

async fn p2_is_isolated_by_default() {
    let host = TestHost::guest("probe_p2").one_at_a_time(1).start().await;
    assert_eq!(counts(Http::One, &host, 5).await, [1; 5]);
}

async fn p2_is_reused_as_often_as_asked() {
    let host = reused(Wasi::P2, 3).start().await;
    assert_eq!(counts(Http::One, &host, 7).await, [1, 2, 3, 1, 2, 3, 1]);
}

async fn p3_is_reused_as_often_as_asked() {
    let host = reused(Wasi::P3, 3).start().await;
    assert_eq!(counts(Http::One, &host, 7).await, [1, 2, 3, 1, 2, 3, 1]);
}

async fn p3_is_isolated_when_asked() {
    let host = reused(Wasi::P3, 1).start().await;
    assert_eq!(counts(Http::One, &host, 5).await, [1; 5]);
}

async fn p3_is_reused_128_times_by_default() {
    let host = TestHost::guest("probe_p3")
        .one_at_a_time(1)
        .with(|o| o.reuse_idle = never());
    let counts = counts(Http::Two, &host.start().await, 130).await;
    let expected: Vec<u64> = (1..=128).chain(1..=2).collect();
    assert_eq!(counts, expected);
}

async fn a_trapped_instance_is_not_used_again(http: Http, wasi: Wasi) {
    let host = reused(wasi, 100).start().await;
    assert_eq!(counts(http, &host, 2).await, [1, 2]);
    let mut client = host.client(http).await;
    for how in ["trap", "exit0", "exit1"] {
        client
            .get(&format!("/fail?how={how}"))
            .await
            .assert_by_host(500);
        assert_eq!(counts(http, &host, 2).await, [1, 2], "{how}");
    }
}

async fn an_instance_that_left_its_body_open_is_not_used_again() {
    let host = reused(Wasi::P2, 100).start().await;
    assert_eq!(counts(Http::One, &host, 2).await, [1, 2]);
    let answer = host
        .client(Http::One)
        .await
        .get("/fail?how=leak&ms=20")
        .await;
    assert!(answer.body.is_err(), "{answer:?}");
    assert_eq!(counts(Http::One, &host, 1).await, [1]);
}

async fn fc_091_instances_differ(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.reuse_requests = Some(1))
        .start()
        .await;
    let mut client = host.client(http).await;
    let (mut random, mut seeds) = (HashSet::new(), HashSet::new());
    for _ in 0..50 {
        let seen = json(client.get("/inspect").await.whole());
        assert!(random.insert(seen["random"].as_str().unwrap().to_owned()));
        assert!(seeds.insert(seen["seed"].to_string()));
        let wall = seen["wall_seconds"].as_u64().unwrap();
        let now = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap()
            .as_secs();
        assert!(
            wall.abs_diff(now) < 60,
            "the guest's clock says {wall} at {now}"
        );
    }
}

/// Forty at once before four places.
async fn crowd(http: Http, host: Builder) {
    let host = host
        .with(|overlay| {
            overlay.requests = Some(4);
            overlay.queue = Some(100);
            overlay.queue_wait = seconds(3600);
        })
        .start()
        .await;
    for _ in 0..3 {
        let mut asked = Vec::new();
        for path in ["/count", "/slow?ms=20", "/craft?size=100000", "/post?ms=20"]
            .iter()
            .cycle()
            .take(40)
        {
            let addr = host.addr();
            asked.push(spawn(async move {
                Client::connect(http, addr).await.get(path).await
            }));
        }
        for answer in asked {
            let answer: Answer = answer.await.unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            answer.whole();
        }
    }
}

async fn the_pool_never_runs_out(http: Http, wasi: Wasi) {
    crowd(http, TestHost::guest(wasi.probe())).await;
}

async fn the_pool_never_runs_out_with_little_reuse(http: Http, wasi: Wasi) {
    let builder = TestHost::guest(wasi.probe()).with(|overlay| {
        overlay.reuse_requests = Some(3);
        overlay.reuse_concurrent = Some(1);
        overlay.reuse_idle = never();
    });
    crowd(http, builder).await;
}

async fn the_pool_never_runs_out_without_reuse(http: Http, wasi: Wasi) {
    crowd(
        http,
        TestHost::guest(wasi.probe()).with(|o| o.reuse_requests = Some(1)),
    )
    .await;
}

matrix! {
    a_trapped_instance_is_not_used_again
    fc_091_instances_differ
    the_pool_never_runs_out
    the_pool_never_runs_out_with_little_reuse
    the_pool_never_runs_out_without_reuse
}

single! {
    an_instance_that_left_its_body_open_is_not_used_again
    p2_is_isolated_by_default
    p2_is_reused_as_often_as_asked
    p3_is_isolated_when_asked
    p3_is_reused_128_times_by_default
    p3_is_reused_as_often_as_asked
}
