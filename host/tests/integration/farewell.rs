//! Drains that clients make difficult: by never pausing, or by never saying anything.

use std::sync::Arc;

use cloudgo_host::Drained;
use tokio::sync::Semaphore;

use crate::support::{End, Raw, TestHost, Wasi, seconds, spawn};

/// Asks again and again until the host says that an answer was the last; gives how that one ended.
async fn ask_until_closed(mut raw: Raw, warm: Arc<Semaphore>) -> End {
    for asked in 1.. {
        raw.get("/hello/your").await;
        let answer = raw.answer().await;
        assert_eq!((answer.status, answer.body.len()), (200, 22));
        if asked == 5 {
            warm.add_permits(1);
        }
        if answer.header("connection") == Some("close") {
            return answer.end;
        }
    }
    unreachable!("an endless range ends")
}

/// A busy connection is never idle: it ends with its next answer, which says so.
async fn a_drain_ends_connections_that_never_pause(wasi: Wasi) {
    const CLIENTS: u32 = 100;
    let host = TestHost::guest(wasi.hello())
        .with(|overlay| overlay.drain = seconds(4))
        .start()
        .await;
    let warm = Arc::new(Semaphore::new(0));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(spawn(ask_until_closed(host.raw().await, warm.clone())));
    }
    let _all = warm.acquire_many(CLIENTS).await.unwrap();
    assert_eq!(host.shutdown().await, Drained::Clean);
    for client in clients {
        assert_eq!(client.await.unwrap(), End::Framed);
    }
}

/// An HTTP/2 client that answers neither GOAWAY nor PING, as a suspended machine does.
async fn a_silent_http2_client_does_not_hold_up_the_drain(wasi: Wasi) {
    let host = TestHost::guest(wasi.hello())
        .with(|overlay| overlay.drain = seconds(20))
        .start()
        .await;
    let mut silent = host.raw().await;
    silent.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    silent.send([0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
    let settings = silent.read(9).await;
    assert_eq!(settings[3], 4, "a SETTINGS frame");
    assert_eq!(host.shutdown().await, Drained::Clean);
}

/// The first bytes may come in any pieces; the connection's timers must still know what it is.
async fn a_preface_in_pieces_is_http2(wasi: Wasi) {
    let host = TestHost::guest(wasi.hello())
        .with(|overlay| {
            overlay.head = seconds(1);
            overlay.keep_alive = seconds(2);
        })
        .start()
        .await;
    let mut raw = host.raw().await;
    for piece in ["P", "RI * HT", "TP/2.0\r", "\n\r\nSM\r\n\r\n"] {
        raw.send(piece).await;
        tokio::task::yield_now().await;
    }
    raw.send([0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
    let rest = raw.rest().await;
    assert_eq!(rest[3], 4, "a SETTINGS frame comes first");
    let text = String::from_utf8_lossy(&rest);
    assert!(!text.contains("HTTP/1.1"), "no answer of HTTP/1: {text:?}");
}

versions! {
    a_drain_ends_connections_that_never_pause
    a_preface_in_pieces_is_http2
    a_silent_http2_client_does_not_hold_up_the_drain
}
