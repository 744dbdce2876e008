//! What can go wrong, one small enum for each boundary: loading, starting, and one request.

use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;

/// A component that cannot be served. The message is one line and says what would help.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct LoadError {
    /// The file as the user named it.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: LoadProblem,
}

/// Why a file is no guest.
#[derive(Debug, thiserror::Error)]
pub enum LoadProblem {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// The bytes are not a component at all.
    #[error("{0}")]
    NotComponent(String),
    /// The bytes begin like a component but do not validate or compile.
    #[error("not a valid component (is the file complete?): {0}")]
    Invalid(String),
    /// A valid component that does not answer HTTP requests.
    #[error(
        "exports neither `wasi:http/incoming-handler@0.2.x` nor `wasi:http/handler@0.3.x`; {0}"
    )]
    NoHandler(String),
    /// Compiled code that this build of the host cannot run.
    #[error("cannot be loaded as precompiled code; compile it again for this version: {0}")]
    Precompiled(String),
    /// An import that nothing here provides.
    #[error("imports `{import}`, which nothing here provides; {help}")]
    MissingImport {
        /// The import's full name.
        import: String,
        /// What would help.
        help: String,
    },
    /// The component asks for more than its limits allow.
    #[error("needs {need} at start but {flag} allows {limit}; raise {flag}")]
    OverLimit {
        /// What the component needs.
        need: String,
        /// What it may have.
        limit: String,
        /// The flag that sets the limit.
        flag: &'static str,
    },
    /// The first instance could not be made.
    #[error("the first instance failed to start: {0}")]
    WarmUp(String),
    /// No engine could be made for this guest.
    #[error("no engine: {0}")]
    Engine(String),
}

/// Why the host did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The component cannot be served.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address that was asked for.
        address: std::net::SocketAddr,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The system has no thread left.
    #[error("cannot start the epoch ticker: {0}")]
    Thread(std::io::Error),
}

/// Why a request gets an answer from the host and not from a guest.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The request is malformed.
    #[error("bad request: {0}")]
    BadRequest(&'static str),
    /// No route leads to a guest.
    #[error("no route")]
    NoRoute,
    /// The client stopped sending its body.
    #[error("the request body did not arrive in time")]
    BodyTimeout,
    /// The request body is larger than the guest's limit.
    #[error("the request body is larger than {0} bytes")]
    BodyTooLarge(u64),
    /// The client's body broke off or was malformed.
    #[error("the request body broke off")]
    BodyCut,
    /// No permit within the bounded wait.
    #[error("overloaded")]
    Overloaded,
    /// The instance could not be made because a limit was reached.
    #[error("instance limit: {0:#}")]
    InstanceLimit(wasmtime::Error),
    /// The guest trapped before its response began.
    #[error("guest trapped: {0:?}")]
    Trap(wasmtime::Error),
    /// The guest ended without a response.
    #[error("guest never invoked `response-outparam::set` method")]
    NoResponse,
    /// The guest asked to exit before its response began.
    #[error("guest exited with status {0}; guest never invoked `response-outparam::set` method")]
    Exit(i32),
    /// The guest's wall time was over.
    #[error("guest timed out after {0:?}")]
    Deadline(Duration),
    /// The guest's response head is not one that may be sent.
    #[error("invalid response: {0}")]
    InvalidResponse(&'static str),
    /// The guest accepted a CONNECT: its client would take what follows for a tunnel.
    #[error("guest answered CONNECT with {0}, and there are no tunnels here")]
    Tunnel(StatusCode),
    /// The guest answered with an error code.
    #[error("guest answered with an error: {code}")]
    Code {
        /// The `wasi:http/types.error-code` as text.
        code: String,
        /// What the client is told.
        status: StatusCode,
    },
}

impl RequestError {
    /// The status that the client gets.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) | Self::BodyCut => StatusCode::BAD_REQUEST,
            Self::NoRoute => StatusCode::NOT_FOUND,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Overloaded | Self::InstanceLimit(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Trap(_) | Self::NoResponse | Self::Exit(_) | Self::InvalidResponse(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::Tunnel(_) => StatusCode::NOT_IMPLEMENTED,
            Self::Deadline(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Code { status, .. } => *status,
        }
    }

    /// What the client may know, one short line. Causes stay in the log.
    pub fn public_text(&self) -> &'static str {
        match self {
            Self::BadRequest(reason) => reason,
            Self::BodyCut => "the request body is incomplete",
            Self::NoRoute => "no such route",
            Self::BodyTimeout => "the request body did not arrive in time",
            Self::BodyTooLarge(_) => "the request body is too large",
            Self::Overloaded | Self::InstanceLimit(_) => "the server is at its limit, try again",
            Self::Trap(_) | Self::NoResponse | Self::Exit(_) | Self::InvalidResponse(_) => {
                "the guest failed"
            }
            Self::Tunnel(_) => "CONNECT opens no tunnel here",
            Self::Deadline(_) => "the guest did not answer in time",
            Self::Code { .. } => "the guest could not answer",
        }
    }

    /// A fixed word for logs and metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::BadRequest(_) => "bad_request",
            Self::NoRoute => "no_route",
            Self::BodyTimeout => "body_timeout",
            Self::BodyTooLarge(_) => "body_too_large",
            Self::BodyCut => "body_cut",
            Self::Overloaded => "overloaded",
            Self::InstanceLimit(_) => "instance_limit",
            Self::Trap(_) => "trap",
            Self::NoResponse => "no_response",
            Self::Exit(_) => "exit",
            Self::InvalidResponse(_) => "invalid_response",
            Self::Tunnel(_) => "tunnel",
            Self::Deadline(_) => "deadline",
            Self::Code { .. } => "error_code",
        }
    }
}
