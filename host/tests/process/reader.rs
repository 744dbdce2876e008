//! A reader of stderr that is gone or does not read: the log is lost, and nothing else.

use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write, pipe};
use std::net::SocketAddr;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::ioctl_fionread;
use rustix::process::Signal;

use crate::client::Client;
use crate::support::{Launch, Process, SOON, eventually, folder};

/// Prints far more than a pipe holds, and checks that the host serves and ends as if somebody had read it.
fn serves_without_a_reader(host: &mut Process, address: SocketAddr) {
    let target = format!("/print?text={}%0A&times=100", "x".repeat(1000));
    let mut client = Client::connect(address);
    for _ in 0..20 {
        assert_eq!(client.get(&target).ok(), "printed\n");
        assert_eq!(client.get("/fail?how=trap").head.status, 500);
    }
    host.signal(Signal::TERM);
    let exit = host.exit_within(SOON);
    assert_eq!(exit.code(), 0, "{exit:?}");
}

#[test]
fn a_closed_stderr_does_not_stop_serving() {
    let (mut host, address, stderr) = Launch::guest("probe_p2").serve_unread();
    drop(stderr);
    serves_without_a_reader(&mut host, address);
}

#[test]
fn a_full_stderr_does_not_stop_serving() {
    let (mut host, address, stderr) = Launch::guest("probe_p2").serve_unread();
    serves_without_a_reader(&mut host, address);
    drop(stderr);
}

/// The address still fits into the pipe, the lines that were held back for it do not. Whoever writes them
/// must not be the one who waits for signals.
#[test]
fn a_stderr_that_is_full_at_the_start_does_not_stop_the_exit() {
    const ROOM: usize = 80;
    let cache = folder();
    let (reader, writer, filled) = almost_full_pipe(ROOM);
    let mut host = Launch::guest_in(cache.path(), "hello").spawn_into(writer);
    eventually("the address is told", || {
        ioctl_fionread(&reader).is_ok_and(|length| length > filled as u64)
    });
    host.signal(Signal::TERM);
    let exit = host.exit_within(SOON);
    assert_eq!(exit.code(), 0, "{exit:?}");
}

/// A pipe with so many bytes of room, and how many it holds.
fn almost_full_pipe(room: usize) -> (PipeReader, PipeWriter, usize) {
    let (mut reader, mut writer) = pipe().expect("a pipe");
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    let mut capacity = 0;
    loop {
        match writer.write(&[b'.'; 4096]) {
            Ok(count) => capacity += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    fcntl_setfl(&writer, flags).unwrap();
    let mut filling = vec![0; capacity];
    reader.read_exact(&mut filling).unwrap();
    // Written again from the first page on, so that the room is at the end of the last one.
    let filling = &filling[room..];
    writer.write_all(filling).unwrap();
    (reader, writer, filling.len())
}
