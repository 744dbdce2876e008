//! Bodies on their way: both directions at once, large ones, slow readers, broken uploads.

use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::support::{
    Answer, End, Http, TestHost, Wasi, json, millis, never, post, request, spawn, upload,
};

const MIB: usize = 1 << 20;
/// SHA-256 of a MiB of `x`.
const MIB_OF_X: &str = "8f990ba0b577b51cf009ea049368c16bbda1b21e1b93be07a824758bb253c39b";

async fn fc_061_full_duplex_echo(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let (mut sender, post) = upload("/echo");
    let mut echoed = client.send(post).await.unwrap().into_body();
    for round in 0..20_u8 {
        let part = vec![round; 1024];
        sender.send_data(Bytes::from(part.clone())).await.unwrap();
        let mut back = Vec::new();
        while back.len() < part.len() {
            back.extend(echoed.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        assert_eq!(back, part);
    }
    drop(sender);
    assert_eq!(
        echoed.collect().await.unwrap().to_bytes(),
        "",
        "nothing else, and a clean end"
    );
}

async fn fc_061_echo_at_full_speed(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let (mut sender, post) = upload("/echo");
    let sent: Bytes = (0..8 * MIB)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect();
    let parts = sent.clone();
    let sending = spawn(async move {
        for at in (0..parts.len()).step_by(64 << 10) {
            sender
                .send_data(parts.slice(at..at + (64 << 10)))
                .await
                .unwrap();
        }
    });
    let answer = client.ask(post).await;
    sending.await.unwrap();
    assert_eq!(answer.whole().len(), sent.len());
    assert!(*answer.whole() == sent, "the bytes differ");
}

async fn uploads_arrive_whole(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let (mut sender, chunked) = upload("/drain");
    let sending = spawn(async move {
        for _ in 0..MIB / 4096 {
            sender
                .send_data(Bytes::from(vec![b'x'; 4096]))
                .await
                .unwrap();
        }
    });
    let chunked = client.ask(chunked).await;
    sending.await.unwrap();
    let declared = client.ask(post("/drain", vec![b'x'; MIB])).await;
    for answer in [chunked, declared] {
        let drained = json(answer.whole());
        assert_eq!(drained["bytes"], MIB);
        assert_eq!(drained["sha256"], MIB_OF_X);
        assert_eq!(drained["error"], Value::Null);
    }
}

async fn request_trailers_arrive(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let (mut sender, mut post) = upload("/drain");
    post.headers_mut()
        .insert("trailer", "x-sum".parse().unwrap());
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-sum", "1".parse().unwrap());
    let sending = spawn(async move {
        sender
            .send_data(Bytes::from_static(b"hello"))
            .await
            .unwrap();
        sender.send_trailers(trailers).await.unwrap();
    });
    let answer = client.ask(post).await;
    sending.await.unwrap();
    let drained = json(answer.whole());
    assert_eq!(
        (&drained["bytes"], &drained["error"]),
        (&Value::from(5), &Value::Null)
    );
    assert_eq!(drained["trailers"], serde_json::json!([["x-sum", "31"]]));
}

async fn fc_062_large_responses_are_complete(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for (path, size) in [
        ("/craft?size=2097152", 2 * MIB),
        ("/craft?size=2097153", 2 * MIB + 1),
        ("/craft?size=2097153&write=4096", 2 * MIB + 1),
        ("/craft?size=16777216&cl=16777216", 16 * MIB),
        ("/craft?size=8388608&write=8388608", 8 * MIB),
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.whole().len(), size, "{path}");
        assert!(answer.whole().iter().all(|byte| *byte == b'x'), "{path}");
    }
}

async fn fc_071_client_leaves_an_endless_response(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .one_at_a_time(1)
        .with(|overlay| {
            overlay.wall = never();
            overlay.response_idle = never();
        });
    let host = host.start().await;
    for _ in 0..5 {
        let mut client = host.client(http).await;
        let mut body = client
            .send(request("GET", "/craft?endless"))
            .await
            .unwrap()
            .into_body();
        let mut read = 0;
        while read < MIB {
            read += body
                .frame()
                .await
                .unwrap()
                .unwrap()
                .into_data()
                .unwrap()
                .len();
        }
        drop((body, client));
        // It gets the only place, once the guest before it has lost it.
        assert_eq!(
            host.client(http).await.get("/slow").await.text(),
            "slow 0\n"
        );
    }
}

/// An HTTP/2 client can leave one response alone and go on with others.
async fn fc_034_a_stream_that_is_never_read(wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .one_at_a_time(1)
        .with(|overlay| overlay.response_idle = millis(1000))
        .start()
        .await;
    let mut client = host.client(Http::Two).await;
    let unread = client.send(request("GET", "/craft?endless")).await.unwrap();
    assert_eq!(unread.status(), 200);
    // The only place comes free although the stream is still open, and the connection still serves.
    assert_eq!(client.get("/slow").await.text(), "slow 0\n");
    let cut = Answer::of(unread).await;
    let read = cut
        .body
        .expect_err("a response that was given up is no whole one")
        .read;
    assert!(!read.is_empty(), "what was sent before is still there");
}

async fn fc_071_reset_in_mid_response(wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .one_at_a_time(1)
        .with(|overlay| {
            overlay.wall = never();
            overlay.response_idle = never();
        });
    let host = host.start().await;
    for _ in 0..20 {
        let mut raw = host.raw().await;
        raw.get("/craft?endless").await;
        assert_eq!(raw.read(1000).await.len(), 1000);
        raw.reset();
    }
    let mut raw = host.raw().await;
    raw.get("/slow").await;
    assert_eq!(raw.answer().await.text(), "slow 0\n");
}

/// The most memory that this process has had at any time, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn fc_034_a_client_that_never_reads(wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .one_at_a_time(1)
        .with(|overlay| overlay.response_idle = millis(1000))
        .start()
        .await;
    let before = peak();
    let mut idle = host.raw().await;
    idle.get("/craft?size=1073741824").await;
    assert_eq!(idle.read(MIB).await.len(), MIB);
    // The only place comes free although this client is still connected: the host has cut it off.
    let mut next = host.raw().await;
    next.get("/slow").await;
    assert_eq!(next.answer().await.text(), "slow 0\n");
    let grown = (peak() - before) >> 10;
    assert!(
        grown < 512,
        "the host has buffered the response: {grown} MiB"
    );
    let left = idle.rest().await.len();
    assert!(left < 512 * MIB, "{left} bytes were on their way");
}

async fn fc_073_upload_cut_in_the_middle(wasi: Wasi) {
    let host = TestHost::guest(wasi.probe()).one_at_a_time(1).start().await;
    for (framing, body, bytes) in [
        ("content-length: 1000", vec![b'x'; 400], 400),
        ("transfer-encoding: chunked", b"5\r\nhello\r\n".to_vec(), 5),
        ("transfer-encoding: chunked", b"a\r\nhello".to_vec(), 5),
    ] {
        let mut raw = host.raw().await;
        raw.send(format!(
            "POST /drain HTTP/1.1\r\nhost: h\r\n{framing}\r\n\r\n"
        ))
        .await;
        raw.send(body).await;
        raw.half_close().await;
        // The reading side is open: the client may be told, and must not be told that all is well.
        if let Some(answer) = raw.answer_to("POST").await {
            assert_eq!(answer.end, End::Framed);
            if answer.status == 200 {
                let drained = json(&answer.body);
                assert_eq!(drained["bytes"], bytes, "{framing}");
                assert!(
                    !drained["error"].is_null(),
                    "{framing}: looks whole to the guest"
                );
            } else {
                assert_eq!(answer.status, 400, "{framing}");
            }
        }
        let mut next = host.raw().await;
        next.get("/slow").await;
        assert_eq!(next.answer().await.text(), "slow 0\n", "{framing}");
    }
}

async fn fc_073_upload_reset_in_the_middle(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .one_at_a_time(1)
        .with(|overlay| {
            overlay.wall = never();
            overlay.body_idle = never();
        });
    let host = host.start().await;
    for _ in 0..5 {
        let mut client = host.client(http).await;
        let (mut sender, post) = upload("/echo");
        let mut body = client.send(post).await.unwrap().into_body();
        sender
            .send_data(Bytes::from_static(b"hello"))
            .await
            .unwrap();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "hello");
        drop((client, body, sender));
        assert_eq!(
            host.client(http).await.get("/slow").await.text(),
            "slow 0\n"
        );
    }
}

async fn a_broken_upload_breaks_its_echo(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.body_idle = millis(300))
        .start()
        .await;
    let mut client = host.client(http).await;
    let (mut sender, post) = upload("/echo");
    let response = client.send(post).await.unwrap();
    sender
        .send_data(Bytes::from_static(b"hello"))
        .await
        .unwrap();
    let answer = Answer::of(response).await;
    assert_eq!(answer.body.expect_err("a cut").read, "hello");
    drop(sender);
}

async fn fc_074_parts_arrive_as_they_are_written(http: Http, wasi: Wasi) {
    let host = TestHost::guest(wasi.probe())
        .with(|o| o.response_idle = never())
        .start()
        .await;
    let mut client = host.client(http).await;
    // The pause outlasts the test: what comes, came before it.
    let path = "/craft?chunk=one&pause=20&chunk=two&pause=3600000&chunk=three";
    let mut body = client.send(request("GET", path)).await.unwrap().into_body();
    let mut read = Vec::new();
    while read.len() < 6 {
        read.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    assert_eq!(read, b"onetwo");
}

matrix! {
    a_broken_upload_breaks_its_echo
    fc_061_echo_at_full_speed
    fc_061_full_duplex_echo
    fc_062_large_responses_are_complete
    fc_071_client_leaves_an_endless_response
    fc_073_upload_reset_in_the_middle
    fc_074_parts_arrive_as_they_are_written
    request_trailers_arrive
    uploads_arrive_whole
}

versions! {
    fc_034_a_client_that_never_reads
    fc_034_a_stream_that_is_never_read
    fc_071_reset_in_mid_response
    fc_073_upload_cut_in_the_middle
}
