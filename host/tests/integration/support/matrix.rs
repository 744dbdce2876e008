//! One test body over protocols and versions of WASI, each as a test of its own with a time limit.

use std::future::Future;
use std::time::Duration;

/// How a test's client talks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    One,
    Two,
}

/// Which guest a test's host serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wasi {
    P2,
    P3,
}

impl Wasi {
    pub(crate) fn probe(self) -> &'static str {
        match self {
            Self::P2 => "probe_p2",
            Self::P3 => "probe_p3",
        }
    }

    pub(crate) fn hello(self) -> &'static str {
        match self {
            Self::P2 => "hello",
            Self::P3 => "hello_p3",
        }
    }
}

/// A test that has not ended by then hangs. It includes the compilation of a guest on a slow machine.
const LONGEST_TEST: Duration = Duration::from_secs(60);

/// Runs one test on a runtime of its own.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let bounded = async { tokio::time::timeout(LONGEST_TEST, Box::pin(test)).await };
    let ended = runtime.block_on(bounded);
    // What a test leaves behind (a guest that computes without end) must not hold up the next one.
    runtime.shutdown_background();
    assert!(ended.is_ok(), "the test hangs");
}

/// `async fn name(http: Http, wasi: Wasi)` becomes four tests.
macro_rules! matrix {
    ($($test:ident)*) => {$(
        mod $test {
            use crate::support::{Http, Wasi, run};

            #[test]
            fn http1_p2() {
                run(super::$test(Http::One, Wasi::P2));
            }

            #[test]
            fn http1_p3() {
                run(super::$test(Http::One, Wasi::P3));
            }

            #[test]
            fn http2_p2() {
                run(super::$test(Http::Two, Wasi::P2));
            }

            #[test]
            fn http2_p3() {
                run(super::$test(Http::Two, Wasi::P3));
            }
        }
    )*};
}

/// `async fn name(wasi: Wasi)` becomes two tests, for what only raw HTTP/1 can show.
macro_rules! versions {
    ($($test:ident)*) => {$(
        mod $test {
            use crate::support::{Wasi, run};

            #[test]
            fn p2() {
                run(super::$test(Wasi::P2));
            }

            #[test]
            fn p3() {
                run(super::$test(Wasi::P3));
            }
        }
    )*};
}

/// `async fn name()` becomes one test.
macro_rules! single {
    ($($test:ident)*) => {$(
        mod $test {
            #[test]
            fn once() {
                crate::support::run(super::$test());
            }
        }
    )*};
}
