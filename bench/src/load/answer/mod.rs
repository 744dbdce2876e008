//! An HTTP/1.1 answer, read piece by piece and compared with what was expected. Keeps nothing of the body.

use std::mem::MaybeUninit;

use crate::load::{Expect, ExpectBody, Failure};

const MOST_HEADERS: usize = 100;

/// Compares a body with the expected one while it arrives.
#[derive(Debug)]
pub(super) struct Check<'a> {
    expect: &'a Expect,
    seen: u64,
    same: bool,
}

impl<'a> Check<'a> {
    pub(super) fn new(expect: &'a Expect) -> Self {
        Self {
            expect,
            seen: 0,
            same: true,
        }
    }

    pub(super) fn body(&mut self, piece: &[u8]) {
        if let ExpectBody::Bytes(bytes) = &self.expect.body {
            let rest = usize::try_from(self.seen)
                .ok()
                .and_then(|seen| bytes.get(seen..));
            self.same &= rest.is_some_and(|rest| rest.starts_with(piece));
        }
        self.seen += piece.len() as u64;
    }

    /// The verdict once the answer is complete.
    pub(super) fn verdict(&self, status: u16) -> Result<(), Failure> {
        if status != self.expect.status {
            return Err(Failure::Status(status));
        }
        let expected = match &self.expect.body {
            ExpectBody::Any => return Ok(()),
            ExpectBody::Length(length) => *length,
            ExpectBody::Bytes(bytes) => bytes.len() as u64,
        };
        if self.same && self.seen == expected {
            Ok(())
        } else {
            Err(Failure::Body)
        }
    }
}

/// The state of one answer.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    check: Check<'a>,
    bodiless: bool,
    status: u16,
    keep_alive: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Head,
    Length(u64),
    Chunked(Chunk),
    UntilEnd,
    Done,
}

/// RFC 9112 section 7.1.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Chunk {
    Size { size: u64, digits: u8 },
    Extension { size: u64 },
    Data { left: u64 },
    DataEnd,
    TrailerStart,
    Trailer,
}

impl<'a> Answer<'a> {
    pub(super) fn new(expect: &'a Expect, bodiless: bool) -> Self {
        Self {
            check: Check::new(expect),
            bodiless,
            status: 0,
            keep_alive: true,
            state: State::Head,
        }
    }

    /// Takes in what it can of `input` and says how much that was. Less than all: a head that is not complete,
    /// or bytes after the end of the answer.
    pub(super) fn feed(&mut self, input: &[u8]) -> Result<usize, Failure> {
        let mut taken = 0;
        while let Some(rest) = input.get(taken..).filter(|rest| !rest.is_empty()) {
            let step = match self.state {
                State::Head => self.head(rest)?,
                State::Length(left) => {
                    let step = self.pass(rest, left);
                    let left = left - step as u64;
                    self.state = if left == 0 {
                        State::Done
                    } else {
                        State::Length(left)
                    };
                    step
                }
                State::Chunked(chunk) => self.chunked(chunk, rest)?,
                State::UntilEnd => self.pass(rest, u64::MAX),
                State::Done => 0,
            };
            if step == 0 {
                break;
            }
            taken += step;
        }
        Ok(taken)
    }

    /// The connection ended.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        if self.state != State::UntilEnd {
            return Err(Failure::Cut);
        }
        self.state = State::Done;
        Ok(())
    }

    pub(super) fn done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the server keeps the connection for the next request.
    pub(super) fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    pub(super) fn verdict(&self) -> Result<(), Failure> {
        self.check.verdict(self.status)
    }

    /// Body bytes: at most `limit` of `input`.
    fn pass(&mut self, input: &[u8], limit: u64) -> usize {
        let take = usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .min(input.len());
        self.check.body(input.get(..take).unwrap_or_default());
        take
    }

    fn head(&mut self, input: &[u8]) -> Result<usize, Failure> {
        let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
        let mut head = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut head,
            input,
            &mut headers,
        );
        let length = match parsed {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(0),
            Err(_) => return Err(Failure::Malformed),
        };
        self.status = head.code.unwrap_or_default();
        self.keep_alive = head.version == Some(1);
        let mut said = None;
        let mut chunked = false;
        for header in head.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") {
                said = Some(parse_length(header.value)?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = header.value.to_ascii_lowercase().ends_with(b"chunked");
            } else if header.name.eq_ignore_ascii_case("connection") {
                self.keep_alive = !header.value.eq_ignore_ascii_case(b"close")
                    && (self.keep_alive || header.value.eq_ignore_ascii_case(b"keep-alive"));
            }
        }
        self.state = self.body_state(said, chunked);
        Ok(length)
    }

    /// RFC 9112 section 6.3.
    fn body_state(&mut self, said: Option<u64>, chunked: bool) -> State {
        match (self.status, chunked, said) {
            (100..=199, ..) => State::Head,
            (204 | 304, ..) => State::Done,
            _ if self.bodiless => State::Done,
            (_, true, _) => State::Chunked(Chunk::Size { size: 0, digits: 0 }),
            (_, _, Some(0)) => State::Done,
            (_, _, Some(length)) => State::Length(length),
            _ => {
                self.keep_alive = false;
                State::UntilEnd
            }
        }
    }

    fn chunked(&mut self, chunk: Chunk, input: &[u8]) -> Result<usize, Failure> {
        if let Chunk::Data { left } = chunk {
            let step = self.pass(input, left);
            let left = left - step as u64;
            self.state = State::Chunked(if left == 0 {
                Chunk::DataEnd
            } else {
                Chunk::Data { left }
            });
            return Ok(step);
        }
        let byte = input.first().copied().unwrap_or_default();
        self.state = match (chunk, byte) {
            (Chunk::Size { digits: 0, .. }, b'\r' | b'\n' | b';') => {
                return Err(Failure::Malformed);
            }
            (Chunk::Size { size, .. } | Chunk::Extension { size }, b'\n') => {
                State::Chunked(match size {
                    0 => Chunk::TrailerStart,
                    left => Chunk::Data { left },
                })
            }
            (Chunk::Size { size, .. }, b'\r' | b';' | b' ' | b'\t') => {
                State::Chunked(Chunk::Extension { size })
            }
            (Chunk::Size { size, digits }, digit) => {
                let value = char::from(digit)
                    .to_digit(16)
                    .filter(|_| digits < 15)
                    .ok_or(Failure::Malformed)?;
                State::Chunked(Chunk::Size {
                    size: size * 16 + u64::from(value),
                    digits: digits + 1,
                })
            }
            (Chunk::Extension { size }, _) => State::Chunked(Chunk::Extension { size }),
            (Chunk::DataEnd, b'\r') => State::Chunked(Chunk::DataEnd),
            (Chunk::DataEnd, b'\n') => State::Chunked(Chunk::Size { size: 0, digits: 0 }),
            (Chunk::DataEnd, _) => return Err(Failure::Malformed),
            (Chunk::TrailerStart, b'\n') => State::Done,
            (Chunk::TrailerStart, b'\r') => State::Chunked(Chunk::TrailerStart),
            (Chunk::Trailer, b'\n') => State::Chunked(Chunk::TrailerStart),
            (Chunk::TrailerStart | Chunk::Trailer | Chunk::Data { .. }, _) => {
                State::Chunked(Chunk::Trailer)
            }
        };
        Ok(1)
    }
}

fn parse_length(value: &[u8]) -> Result<u64, Failure> {
    let text = str::from_utf8(value)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok())
        .ok_or(Failure::Malformed)
}

#[cfg(test)]
mod tests;
