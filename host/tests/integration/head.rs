//! The request head as a guest sees it, and the response head as a client sees it: nothing lost, nothing
//! added.

use serde_json::{Value, json};

use crate::support::{Http, RawAnswer, TestHost, Wasi, hex, json, request};

/// What the probe `inspect` saw.
async fn inspect(host: &TestHost, head: impl AsRef<[u8]>) -> Value {
    let mut raw = host.raw().await;
    raw.send(head).await;
    let answer = raw.answer().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    json(&answer.body)
}

/// Headers as `inspect` shows them.
fn fields(headers: &[(&str, &[u8])]) -> Value {
    headers
        .iter()
        .map(|(name, value)| json!([name, hex(value)]))
        .collect()
}

async fn fc_004_scheme_and_authority(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let mut asked = request("GET", "/a?b");
    *asked.uri_mut() = "http://a.example:81/a?b".parse().unwrap();
    let seen = json(client.ask(asked).await.whole());
    assert_eq!(seen["method"], "get");
    assert_eq!(seen["scheme"], "http");
    assert_eq!(seen["authority"], "a.example:81");
    assert_eq!(seen["path_with_query"], "/a?b");
}

async fn fc_005_absolute_form_wins_over_host(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let head = "GET http://a.example/p?q HTTP/1.1\r\nHost: b.example\r\n\r\n";
    let seen = inspect(&host, head).await;
    assert_eq!(seen["scheme"], "http");
    assert_eq!(seen["authority"], "a.example");
    assert_eq!(seen["path_with_query"], "/p?q");
    assert_eq!(seen["headers"], json!([]));
    let head = "GET https://a.example:444 HTTP/1.1\r\nHost: b.example\r\n\r\n";
    let seen = inspect(&host, head).await;
    assert_eq!(seen["scheme"], "https");
    assert_eq!(seen["authority"], "a.example:444");
    assert_eq!(seen["path_with_query"], "/");
}

async fn fc_008_query_byte_for_byte(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for path in [
        "/h/?target=value&test=true&x=%20%2B+%7e&e=&e=",
        "/a%2Fb//c/../d;e=1?",
        "/??a=?&&=;%c3%A9'()*",
    ] {
        let seen = json(client.get(path).await.whole());
        assert_eq!(seen["path_with_query"], path);
    }
}

async fn fc_001_repeated_headers_stay_apart(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let mut asked = request("GET", "/inspect");
    for value in ["1", "", "3, 4", "1"] {
        asked.headers_mut().append("x-a", value.parse().unwrap());
    }
    for value in 0..90 {
        asked.headers_mut().append("x-b", value.into());
    }
    let seen = json(client.ask(asked).await.whole());
    let mut expected = vec![
        json!(["x-a", "31"]),
        json!(["x-a", ""]),
        json!(["x-a", hex(b"3, 4")]),
    ];
    expected.push(json!(["x-a", "31"]));
    expected.extend((0..90).map(|value| json!(["x-b", hex(value.to_string().as_bytes())])));
    let mut headers = seen["headers"].as_array().unwrap().clone();
    // Stable: the order inside one name stays as it came.
    headers.sort_by_key(|header| header[0].as_str().unwrap().to_owned());
    assert_eq!(headers, expected);
}

async fn header_order_as_sent(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let head = "GET /inspect HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nConnection: keep-alive\r\n\
                X-Two: 2\r\nAccept: */*\r\nX-Three: 3\r\n\r\n";
    let seen = inspect(&host, head).await;
    let sent: [(&str, &[u8]); 4] = [
        ("x-one", b"1"),
        ("x-two", b"2"),
        ("accept", b"*/*"),
        ("x-three", b"3"),
    ];
    assert_eq!(seen["headers"], fields(&sent));
}

async fn fc_011_bytes_from_0x80_survive(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let head = b"GET /inspect HTTP/1.1\r\nHost: h\r\nX-L: caf\xe9\r\nX-U: \xc3\xa9\r\n\r\n";
    let seen = inspect(&host, head).await;
    let mut headers = seen["headers"].as_array().unwrap().clone();
    headers.sort_by_key(Value::to_string);
    let sent: [(&str, &[u8]); 2] = [("x-l", b"caf\xe9"), ("x-u", b"\xc3\xa9")];
    assert_eq!(Value::Array(headers), fields(&sent));

    let mut raw = host.raw().await;
    raw.get("/craft?hx=x-l:636166e9&hx=x-u:c3a9&cl=0").await;
    let answer = raw.answer().await;
    assert_eq!(answer.values("x-l"), [b"caf\xe9"]);
    assert_eq!(answer.values("x-u"), [b"\xc3\xa9"]);
}

async fn connection_headers_are_hidden(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let head = "POST /inspect HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, x-hop\r\n\
                Keep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nProxy-Authorization: Basic eA==\r\n\
                Proxy-Connection: keep-alive\r\nTransfer-Encoding: chunked\r\nUpgrade: websocket\r\n\
                HTTP2-Settings: AAMAAABkAAQAAP__\r\nTE: trailers\r\n\r\n0\r\n\r\n";
    let seen = inspect(&host, head).await;
    assert_eq!(seen["headers"], fields(&[("te", b"trailers")]));
}

async fn nothing_is_added_to_a_request(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let bare = json(client.get("/inspect").await.whole());
    assert_eq!(bare["headers"], json!([]));
    let mut asked = request("GET", "/inspect");
    asked
        .headers_mut()
        .insert("x-request-id", "mine".parse().unwrap());
    let seen = json(client.ask(asked).await.whole());
    assert_eq!(seen["headers"], fields(&[("x-request-id", b"mine")]));
}

async fn nothing_is_added_to_a_response(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let answer = client
        .get("/craft?h=x-b:2&h=x-a:1&h=x-a:&h=x-a:1&cl=5&chunk=hello")
        .await;
    assert_eq!((answer.status.as_u16(), answer.text()), (200, "hello"));
    let mut headers: Vec<_> = answer
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    headers.sort_by_key(|(name, _)| *name);
    let date = headers
        .iter()
        .position(|(name, _)| *name == "date")
        .expect("a date");
    headers.remove(date);
    let guests = [
        ("content-length", "5"),
        ("x-a", "1"),
        ("x-a", ""),
        ("x-a", "1"),
        ("x-b", "2"),
    ];
    assert_eq!(headers, guests);
}

async fn fc_059_one_date_and_the_guests_wins(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let guests = "Sun, 06 Nov 1994 08:49:37 GMT";
    let path = format!(
        "/craft?h=date:{}&h=server:mine&cl=0",
        guests.replace(' ', "%20")
    );
    let answer = client.get(&path).await;
    let dates: Vec<_> = answer.headers.get_all("date").iter().collect();
    assert_eq!(dates, [guests]);
    assert_eq!(answer.header("server"), Some("mine"));
    assert_eq!(answer.header("content-type"), None);
}

/// One request with this Host line, or with none.
async fn with_host(host: &TestHost, line: &[u8]) -> RawAnswer {
    let mut raw = host.raw().await;
    raw.send([b"GET /inspect HTTP/1.1\r\n", line, b"\r\n"].concat())
        .await;
    raw.answer().await
}

async fn fc_013_odd_hosts(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    for invalid in [
        &b"Host: a b\r\n"[..],
        b"Host: user@h\r\n",
        b"Host: h:99999\r\n",
        b"Host: h:1:2\r\n",
        b"Host: \xe9.example\r\n",
        b"Host: [::1\r\n",
        b"Host: h/p\r\n",
        b"Host: a\r\nHost: a\r\n",
        b"Host: a\r\nHost: b\r\n",
        b"",
    ] {
        with_host(&host, invalid)
            .await
            .assert_by_host(400, "Bad Request");
    }
    let own = host.addr().to_string();
    for (line, authority) in [
        ("Host:\r\n", own.as_str()),
        ("Host: [::1]:80\r\n", "[::1]:80"),
        (
            "Host: xn--caf-dma.example:8080\r\n",
            "xn--caf-dma.example:8080",
        ),
    ] {
        let answer = with_host(&host, line.as_bytes()).await;
        assert_eq!(answer.status, 200, "{line} {answer:?}");
        assert_eq!(json(&answer.body)["authority"], authority, "{line}");
    }
}

async fn fc_013_a_refused_head_does_not_harm_the_next(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    raw.send("GET / HTTP/1.1\r\nHost: a b\r\n\r\n").await;
    raw.answer().await.assert_by_host(400, "Bad Request");
    raw.send("GET /count HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let answer = raw.answer().await;
    assert_eq!((answer.status, answer.text()), (200, "1\n"));
}

async fn fc_014_http10_without_host(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let seen = inspect(&host, "GET /x HTTP/1.0\r\n\r\n").await;
    assert_eq!(seen["authority"], host.addr().to_string());
    assert_eq!(seen["scheme"], "http");
    assert_eq!(seen["path_with_query"], "/x");

    let mut raw = host.raw().await;
    raw.send("GET /craft?chunk=one&chunk=two HTTP/1.0\r\n\r\n")
        .await;
    let answer = raw.answer().await;
    assert_eq!(answer.status, 200);
    assert!(answer.values("transfer-encoding").is_empty(), "{answer:?}");
    assert_eq!(
        (answer.text(), answer.end),
        ("onetwo", crate::support::End::Closed)
    );
}

async fn guest_answers_carry_no_mark_of_the_host(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    for path in [
        "/inspect",
        "/craft?status=500&chunk=x",
        "/craft?status=404&cl=0",
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.header("x-request-id"), None, "{path}");
        assert_eq!(answer.header("server"), None, "{path}");
    }
}

async fn request_ids_differ(http: Http, wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut client = host.client(http).await;
    let mut ids = std::collections::HashSet::new();
    for _ in 0..3 {
        let answer = client.get("/fail?how=trap").await;
        answer.assert_by_host(500);
        assert!(ids.insert(answer.header("x-request-id").unwrap().to_owned()));
    }
}

async fn fc_007_asterisk(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let seen = inspect(&host, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(seen["method"], "options");
    assert_eq!(seen["path_with_query"], "*");
}

async fn fc_007_connect_is_no_tunnel(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    let mut raw = host.raw().await;
    raw.send("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
        .await;
    raw.send("GET /count HTTP/1.1\r\nHost: h\r\n\r\n").await;
    raw.half_close().await;
    let all = raw.rest().await;
    let text = String::from_utf8_lossy(&all);
    assert!(
        text.starts_with("HTTP/1.1 "),
        "an answer, whichever: {text:?}"
    );
    let (head, tunnel) = text.split_once("\r\n\r\n").unwrap();
    let tunnelled = head.starts_with("HTTP/1.1 2") && !tunnel.is_empty();
    assert!(
        !tunnelled,
        "what follows a 2xx to CONNECT is a tunnel: {text:?}"
    );

    let seen = inspect(&host, "GET /after HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(seen["path_with_query"], "/after");
}

async fn fc_010_unknown_methods(wasi: Wasi) {
    let host = TestHost::probe(wasi).await;
    for method in ["PROPFIND", "QUERY", "M-SEARCH", "get"] {
        let seen = inspect(&host, format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n")).await;
        assert_eq!(seen["method"], "other", "{method}");
        assert_eq!(seen["method_text"], method);
    }
    let mut raw = host.raw().await;
    raw.send("GE(T / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(raw.answer().await.status, 400);
}

matrix! {
    fc_001_repeated_headers_stay_apart
    fc_004_scheme_and_authority
    fc_008_query_byte_for_byte
    fc_059_one_date_and_the_guests_wins
    guest_answers_carry_no_mark_of_the_host
    nothing_is_added_to_a_request
    nothing_is_added_to_a_response
    request_ids_differ
}

versions! {
    connection_headers_are_hidden
    fc_005_absolute_form_wins_over_host
    fc_007_asterisk
    fc_007_connect_is_no_tunnel
    fc_010_unknown_methods
    fc_011_bytes_from_0x80_survive
    fc_013_a_refused_head_does_not_harm_the_next
    fc_013_odd_hosts
    fc_014_http10_without_host
    header_order_as_sent
}
