//! Declared lengths: of responses that guests do not keep to, and of uploads that they do not read.

use crate::support::{End, Http, TestHost, Wasi, post};

async fn fc_052_a_body_shorter_than_its_content_length_is_cut(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for path in [
        "/craft?cl=9&chunk=abc",
        "/craft?cl=9&chunk=abc&chunk=def",
        "/craft?cl=9&chunk=abc&trailer=x-sum:1",
        "/fail?how=exit-after&cl=20",
    ] {
        // One connection each: HTTP/1 must close it.
        let answer = match http {
            Http::One => host.client(http).await.get(path).await,
            Http::Two => client.get(path).await,
        };
        assert_eq!(answer.status, 200, "{path}");
        let cut = answer.body.expect_err(path);
        assert!(
            !cut.read.is_empty() && cut.read.len() < 20,
            "{path}: {cut:?}"
        );
    }
    assert_eq!(client.get("/slow").await.text(), "slow 0\n");
}

async fn fc_052_a_body_longer_than_its_content_length_never_arrives_whole(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for path in ["/craft?cl=2&chunk=abc", "/craft?cl=4&chunk=abc&chunk=def"] {
        let answer = host.client(http).await.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        let declared: usize = answer.header("content-length").unwrap().parse().unwrap();
        let read = match answer.body {
            Ok(body) => {
                assert_eq!(body.len(), declared, "{path}");
                body
            }
            Err(cut) => cut.read,
        };
        assert!(
            b"abcdef".starts_with(&read) && read.len() <= declared,
            "{path}: {read:?}"
        );
    }
    assert_eq!(client.get("/slow").await.text(), "slow 0\n");
}

/// A client must not send its next request into a connection that the host is about to close.
async fn an_answer_before_the_end_of_the_upload_says_how_it_goes_on(wasi: Wasi) {
    let host = TestHost::guest(wasi.hello()).start().await;
    for body in [1, 20_000, 100_000] {
        let mut raw = host.raw().await;
        raw.send(format!(
            "POST /hello/your HTTP/1.1\r\nhost: h\r\ncontent-length: {body}\r\n\r\n"
        ))
        .await;
        // The upload has not come when the guest answers.
        let answer = raw.answer().await;
        assert_eq!((answer.status, answer.end), (405, End::Framed));
        assert_eq!(answer.header("connection"), Some("close"), "{body}");
    }
}

/// One that was read to its end leaves the connection as it was.
async fn uploads_that_are_read_keep_the_connection(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for _ in 0..20 {
        let answer = client.ask(post("/drain", vec![b'x'; 20_000])).await;
        assert_eq!(answer.header("connection"), None);
        assert_eq!(answer.status, 200);
    }
}

/// A guest that answers while it reads is not one that does not read.
async fn echoes_keep_the_connection(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for _ in 0..20 {
        let answer = client.ask(post("/echo", vec![b'x'; 1024])).await;
        assert_eq!(answer.header("connection"), None);
        assert_eq!(answer.whole().len(), 1024);
    }
}

/// More than any semaphore holds is as good as no limit.
async fn any_number_of_connections_may_be_asked_for() {
    let host = TestHost::guest("hello")
        .with(|overlay| overlay.connections = Some(usize::MAX))
        .start()
        .await;
    let mut client = host.client(Http::One).await;
    assert_eq!(client.get("/").await.text(), "Hello, World!");
}

matrix! {
    echoes_keep_the_connection
    fc_052_a_body_longer_than_its_content_length_never_arrives_whole
    fc_052_a_body_shorter_than_its_content_length_is_cut
    uploads_that_are_read_keep_the_connection
}

versions! {
    an_answer_before_the_end_of_the_upload_says_how_it_goes_on
}

single! {
    any_number_of_connections_may_be_asked_for
}
