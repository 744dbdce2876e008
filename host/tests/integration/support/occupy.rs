//! How a test knows, without a clock, that a request is inside a host, and when it has left. Both work on a
//! host with one permit and no queue ([`Builder::one_at_a_time`](super::Builder::one_at_a_time)).

use super::{Http, Raw, TestHost};

/// So many refusals one after the other come from the request in question: refused probes take no permit, and
/// what the last admitted one left behind is gone long before.
const IN_A_ROW: usize = 20;

/// Sends a GET on a connection of its own until it holds the only permit.
pub(crate) async fn occupy(host: &TestHost, path: &str) -> Raw {
    loop {
        let mut conn = host.raw().await;
        conn.get(path).await;
        // A probe may have been inside when it came; then it got a 503 itself.
        if until_full(host, || conn.has_answer()).await {
            return conn;
        }
    }
}

/// Waits until the host refuses everybody else. False if `answered` says that the request is over.
pub(crate) async fn until_full(host: &TestHost, mut answered: impl FnMut() -> bool) -> bool {
    let mut probe = host.client(Http::One).await;
    let mut refused = 0;
    while refused < IN_A_ROW {
        match probe.get("/count").await.status.as_u16() {
            503 => refused += 1,
            200 => refused = 0,
            other => panic!("the probe got {other}"),
        }
        if answered() {
            return false;
        }
    }
    true
}

/// Waits until the host answers again.
pub(crate) async fn until_free(host: &TestHost) {
    let mut probe = host.client(Http::One).await;
    loop {
        match probe.get("/count").await.status.as_u16() {
            503 => tokio::task::yield_now().await,
            200 => return,
            other => panic!("the probe got {other}"),
        }
    }
}
