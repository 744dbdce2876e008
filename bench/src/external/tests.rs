use super::*;

const WRK: &str = "Running 1s test @ http://127.0.0.1:9871/hello/testuser
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.55ms    2.86ms  30.01ms   80.73%
    Req/Sec    20.21k     7.56k   30.31k    54.55%
  Latency Distribution
     50%  233.00us
     75%    4.04ms
     90%    7.69ms
     99%    1.35s
  22111 requests in 1.10s, 3.02MB read
Requests/sec:  20060.26
Transfer/sec:      2.74MB
";

const AB: &str = "This is ApacheBench, Version 2.3 <$Revision$>
Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/

Benchmarking 127.0.0.1 (be patient).....done


Server Software:
Server Hostname:        127.0.0.1
Server Port:            9871

Document Path:          /hello/testuser
Document Length:        26 bytes

Concurrency Level:      64
Time taken for tests:   1.000 seconds
Complete requests:      21920
Failed requests:        0
Keep-Alive requests:    21920
Total transferred:      3660640 bytes
HTML transferred:       569920 bytes
Requests per second:    21919.47 [#/sec] (mean)
Time per request:       2.920 [ms] (mean)
Time per request:       0.046 [ms] (mean, across all concurrent requests)
Transfer rate:          3574.76 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.0      0       1
Total:          0    3   2.5      2      23

Percentage of the requests served within a certain time (ms)
  50%      2
  90%      6
  99%     12
 100%     23 (longest request)
";

#[test]
fn the_table_of_wrk_is_read() {
    let table = wrk(WRK).unwrap();
    assert!((table.rate - 20060.26).abs() < 1e-9);
    assert_eq!(table.requests, 22111);
    let expected = [
        (50.0, 233.0),
        (75.0, 4040.0),
        (90.0, 7690.0),
        (99.0, 1_350_000.0),
    ];
    assert_eq!(table.latencies.len(), expected.len());
    for ((percent, value), (at, right)) in table.latencies.iter().zip(expected) {
        assert!((percent - at).abs() < 1e-9 && (value - right).abs() < 1e-6);
    }
    assert_eq!(table.failures, []);
    assert!(table.text.starts_with("Running 1s test"));
}

#[test]
fn failures_of_wrk_are_seen() {
    let text = WRK.replace(
        "Requests/sec",
        "  Socket errors: connect 0, read 7, write 0, timeout 2\n  Non-2xx or 3xx responses: 111\nRequests/sec",
    );
    let table = wrk(&text).unwrap();
    let failures = [("status", 111), ("read", 7), ("timeout", 2)];
    assert_eq!(
        table.failures,
        failures.map(|(kind, count)| (kind.to_owned(), count))
    );
    assert_eq!(table.requests, 22000);
}

#[test]
fn the_table_of_ab_is_read() {
    let table = ab(AB).unwrap();
    assert!((table.rate - 21919.47).abs() < 1e-9);
    assert_eq!(table.requests, 21920);
    assert_eq!(table.latencies.len(), 4);
    assert!((table.latencies[2].1 - 12000.0).abs() < 1e-9);
    assert_eq!(table.failures, []);
    assert!(table.text.starts_with("Server Software:"));
    assert!(table.text.ends_with("(longest request)"));
}

#[test]
fn failures_of_ab_are_seen() {
    let text = AB.replace("Failed requests:        0", "Failed requests:        3");
    let text = text.replace("Keep-Alive", "Non-2xx responses:      20\nKeep-Alive");
    let table = ab(&text).unwrap();
    let failures = [("failed", 3), ("status", 20)];
    assert_eq!(
        table.failures,
        failures.map(|(kind, count)| (kind.to_owned(), count))
    );
    assert_eq!(table.requests, 21897);
}

#[test]
fn what_is_no_table_is_an_error() {
    let error = wrk("unable to connect").unwrap_err().to_string();
    assert_eq!(error, "wrk printed no `requests in` line");
    let error = ab("").unwrap_err().to_string();
    assert_eq!(error, "ab printed no `Complete requests` line");
}
