//! The hello example for WASI 0.2: the smallest honest guest, made to be copied.
//!
//! Every host call costs time, so the headers go over in one call, a body of up to 4 KiB in one write, and
//! HEAD asks for no body at all.

use hello_logic::{Answer, Method, answer};
use lean as _;
use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingRequest, Method as HttpMethod, OutgoingBody, OutgoingResponse,
    ResponseOutparam,
};

/// The most that one `blocking-write-and-flush` accepts.
const WRITE_LIMIT: usize = 4096;

struct Hello;

wasip2::http::proxy::export!(Hello);

impl Guest for Hello {
    fn handle(request: IncomingRequest, outparam: ResponseOutparam) {
        let method = match request.method() {
            HttpMethod::Get => Method::Get,
            HttpMethod::Head => Method::Head,
            _ => Method::Other,
        };
        // A request without a path (OPTIONS *) is no known route.
        let target = request.path_with_query().unwrap_or_default();
        send(answer(method, &target), outparam);
    }
}

fn send(answer: Answer, outparam: ResponseOutparam) {
    // No host refuses these headers, but an example should not assume that.
    let Ok(headers) = Fields::from_list(&answer.headers) else {
        return ResponseOutparam::set(outparam, Err(ErrorCode::InternalError(None)));
    };
    let response = OutgoingResponse::new(headers);
    if answer.status != 200 {
        let _ = response.set_status_code(answer.status);
    }
    if answer.body.is_empty() {
        return ResponseOutparam::set(outparam, Ok(response));
    }
    let body = response.body();
    ResponseOutparam::set(outparam, Ok(response));
    if let Ok(body) = body {
        write(body, &answer.body);
    }
}

/// A failed write means that the client is gone: there is nobody left to tell.
fn write(body: OutgoingBody, bytes: &[u8]) {
    let Ok(stream) = body.write() else { return };
    for chunk in bytes.chunks(WRITE_LIMIT) {
        if stream.blocking_write_and_flush(chunk).is_err() {
            return;
        }
    }
    // A body cannot be finished while its stream lives.
    drop(stream);
    let _ = OutgoingBody::finish(body, None);
}
