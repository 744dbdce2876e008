//! The hello example for WASI 0.3: the same answers as `hello`, written asynchronously.
//!
//! `handle` returns the head at once; the body is written by a task that goes on afterwards. HEAD has no
//! body and therefore no task.

use hello_logic::{Answer, Method, answer};
use lean as _;
use wasip3::exports::http::handler::Guest;
use wasip3::http::types::{ErrorCode, Fields, Method as HttpMethod, Request, Response};
use wasip3::{spawn_local, wit_future, wit_stream};

struct Hello;

wasip3::http::service::export!(Hello);

impl Guest for Hello {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let method = match request.get_method() {
            HttpMethod::Get => Method::Get,
            HttpMethod::Head => Method::Head,
            _ => Method::Other,
        };
        // A request without a path (OPTIONS *) is no known route.
        let target = request.get_path_with_query().unwrap_or_default();
        respond(answer(method, &target))
    }
}

fn respond(answer: Answer) -> Result<Response, ErrorCode> {
    // No host refuses these headers, but an example should not assume that.
    let headers = Fields::from_list(&answer.headers).map_err(|_| ErrorCode::InternalError(None))?;
    // Dropping the writer sends the default: no trailers.
    let (_, trailers) = wit_future::new(|| Ok(None));
    let contents = if answer.body.is_empty() {
        None
    } else {
        let (mut writer, reader) = wit_stream::new();
        // What is left over when the client is gone has nobody to go to.
        spawn_local(async move { drop(writer.write_all(answer.body.into_owned()).await) });
        Some(reader)
    };
    let (response, _transmitted) = Response::new(headers, contents, trailers);
    if answer.status != 200 {
        let _ = response.set_status_code(answer.status);
    }
    Ok(response)
}
