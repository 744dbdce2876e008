//! What is refused as a component, and precompiled files, which need their flag.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::client::get;
use crate::support::{BINARY, Launch, folder, guest};

/// Starts with a file that must be refused, and gives the reason.
fn refusal(path: &Path, args: &[&str]) -> String {
    let exit = Launch::file(path).args(args).run();
    assert_eq!(exit.code(), 2, "{}: {exit:?}", path.display());
    let line = exit.one_error();
    let path = path.display().to_string();
    assert!(line.contains(&path), "no path: {line}");
    line.replace(&path, "FILE")
}

/// A file with this content.
fn file(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).expect("a file for the test");
    path
}

/// The compiled form of a guest, as the host's own cache keeps it.
fn compiled(name: &str, folder: &Path) -> Vec<u8> {
    let cache = folder.join(format!("{name}-cache"));
    drop(Launch::guest_in(&cache, name).serve());
    let entries: Vec<_> = fs::read_dir(cache)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [entry] = entries.as_slice() else {
        panic!("not one entry: {entries:?}")
    };
    fs::read(entry).unwrap()
}

#[test]
fn fc_100_a_command_is_refused_and_told_what_is_missing() {
    let reason = refusal(&guest("command"), &[]);
    for text in [
        "wasi:http/incoming-handler",
        "wasi:http/handler",
        "wasi:cli/run",
    ] {
        assert!(reason.contains(text), "no {text}: {reason}");
    }
}

#[test]
fn fc_104_a_truncated_component_is_refused() {
    let folder = folder();
    for name in ["hello", "hello_p3"] {
        let whole = fs::read(guest(name)).unwrap();
        let length = whole.len();
        // The last cut is inside the last section; cuts of a few bytes are inside the preamble.
        for cut in [4, 7, 9, length / 4, length / 2, length * 3 / 4, length - 1] {
            let path = file(folder.path(), &format!("{name}-{cut}.wasm"), &whole[..cut]);
            let reason = refusal(&path, &[]);
            assert!(reason.contains("not a valid component"), "{cut}: {reason}");
            assert!(reason.contains("is the file complete?"), "{cut}: {reason}");
        }
    }
}

#[test]
fn fc_104_a_component_with_damaged_bytes_is_refused_or_served() {
    let folder = folder();
    let whole = fs::read(guest("hello")).unwrap();
    let path = file(
        folder.path(),
        "tail.wasm",
        &[whole.as_slice(), b"and more"].concat(),
    );
    assert!(refusal(&path, &[]).contains("not a valid component"));
    let mut no_magic = whole.clone();
    no_magic[0] = b'x';
    let path = file(folder.path(), "magic.wasm", &no_magic);
    assert!(refusal(&path, &[]).contains("neither"));
    let mut version = whole;
    version[4] = 99;
    let path = file(folder.path(), "version.wasm", &version);
    assert!(refusal(&path, &[]).contains("not a valid component"));
}

#[test]
fn fc_104_what_is_no_file_is_refused() {
    let folder = folder();
    let empty = file(folder.path(), "empty.wasm", b"");
    assert_eq!(refusal(&empty, &[]), "error: FILE: the file is empty");
    assert_eq!(
        refusal(folder.path(), &[]),
        "error: FILE: is a folder, not a component"
    );
    let missing = refusal(&folder.path().join("missing.wasm"), &[]);
    assert!(
        missing.contains("cannot be read: No such file"),
        "{missing}"
    );
    let below_a_file = refusal(&empty.join("below.wasm"), &[]);
    assert!(below_a_file.contains("cannot be read"), "{below_a_file}");
}

#[test]
fn fc_104_an_unreadable_file_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    // Nothing is unreadable for root.
    if geteuid().is_root() {
        return;
    }
    let folder = folder();
    let path = file(
        folder.path(),
        "hello.wasm",
        &fs::read(guest("hello")).unwrap(),
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
    assert!(refusal(&path, &[]).contains("cannot be read: Permission denied"));
}

#[test]
fn fc_104_text_is_read_as_webassembly_text() {
    let folder = folder();
    let cases = [
        ("module", "(module)", "is a core module"),
        (
            "comment",
            ";; a comment\n  (module (func))\n",
            "is a core module",
        ),
        ("component", "(component)", "it exports nothing"),
        (
            "unclosed",
            "(component (import \"x\"\n",
            "not a valid component",
        ),
        ("words", "(not webassembly)", "not a valid component"),
        (
            "prose",
            "dear host, please serve",
            "neither a WebAssembly component nor WebAssembly text",
        ),
        (
            "bytes",
            "\u{7f}\0\u{1}",
            "neither a WebAssembly component nor WebAssembly text",
        ),
    ];
    for (name, content, expected) in cases {
        let path = file(folder.path(), &format!("{name}.wat"), content.as_bytes());
        let reason = refusal(&path, &[]);
        assert!(reason.contains(expected), "{name}: {reason}");
    }
    let path = file(folder.path(), "not-text.wat", b"\xff\xfe\xfd");
    assert!(refusal(&path, &[]).contains("neither"));
}

#[test]
fn fc_104_a_core_module_is_refused() {
    let folder = folder();
    let path = file(folder.path(), "module.wasm", b"\0asm\x01\0\0\0");
    let reason = refusal(&path, &[]);
    assert!(
        reason.contains("is a core module") && reason.contains("wasm32-wasip2"),
        "{reason}"
    );
}

#[test]
fn fc_104_a_native_program_is_refused() {
    for args in [&[][..], &["--allow-precompiled"]] {
        let reason = refusal(Path::new(BINARY), args);
        assert_eq!(
            reason,
            "error: FILE: is a native (ELF) file, not a WebAssembly component"
        );
    }
}

#[test]
fn fc_104_a_precompiled_file_needs_its_flag() {
    let folder = folder();
    for (name, answer) in [
        ("hello", "Hello, World!"),
        ("hello_p3", "Hello, World!"),
        ("both", "p3\n"),
    ] {
        let path = file(
            folder.path(),
            &format!("{name}.cwasm"),
            &compiled(name, folder.path()),
        );
        let reason = refusal(&path, &[]);
        assert!(reason.contains("--allow-precompiled"), "{name}: {reason}");
        let (mut host, address) = Launch::file(&path).args(["--allow-precompiled"]).serve();
        assert_eq!(get(address, "/").ok(), answer, "{name}");
        host.terminate();
    }
    // The flag is only about precompiled files.
    let (_host, address) = Launch::guest("hello").args(["--allow-precompiled"]).serve();
    assert_eq!(get(address, "/").ok(), "Hello, World!");
}

#[test]
fn fc_104_a_precompiled_file_of_another_version_is_refused() {
    let folder = folder();
    for name in ["hello", "hello_p3"] {
        let mut bytes = compiled(name, folder.path());
        let version = section(&bytes, ".wasmtime.engine");
        // A byte for the format, one for the length of the version, then its digits.
        let digit = version + 2;
        assert!(bytes[digit].is_ascii_digit(), "the format has changed");
        bytes[digit] = if bytes[digit] == b'1' { b'2' } else { b'1' };
        let path = file(folder.path(), &format!("{name}.cwasm"), &bytes);
        let reason = refusal(&path, &["--allow-precompiled"]);
        assert!(reason.contains("version"), "{name}: {reason}");
    }
}

#[test]
fn fc_104_a_truncated_precompiled_file_is_refused() {
    let folder = folder();
    let whole = compiled("hello", folder.path());
    let length = whole.len();
    for cut in [16, 63, 64, 200, length / 4, length / 2, length - 2000] {
        let path = file(folder.path(), &format!("{cut}.cwasm"), &whole[..cut]);
        for args in [&[][..], &["--allow-precompiled"]] {
            let reason = refusal(&path, args);
            assert!(!reason.contains("Serving"), "{cut}: {reason}");
        }
    }
}

/// Where a section of a 64-bit little-endian ELF file begins.
fn section(elf: &[u8], name: &str) -> usize {
    let number = |at: usize, bytes: usize| {
        elf[at..at + bytes]
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let (table, entry, count, names) = (
        number(0x28, 8),
        number(0x3a, 2),
        number(0x3c, 2),
        number(0x3e, 2),
    );
    let header = |index: usize| table + index * entry;
    let offset = |index: usize| number(header(index) + 0x18, 8);
    let has_name = |index: &usize| {
        let begin = offset(names) + number(header(*index), 4);
        elf[begin..].split(|byte| *byte == 0).next() == Some(name.as_bytes())
    };
    offset((0..count).find(has_name).expect("the section is there"))
}
