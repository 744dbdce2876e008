//! Files that are no guests, each refused in one line that names it, and compiled guests on disk.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cloudgo_host::config::units::SizeLimit;
use tempfile::TempDir;

use crate::support::{Http, TestHost, guest_file};

/// A folder with one file in it.
fn file(name: &str, content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    (folder, path)
}

/// Why this file is refused, without its path.
async fn refusal(path: &Path) -> String {
    let path = path.to_owned();
    let named = format!("{}: ", path.display());
    let started = TestHost::guest("hello")
        .with(|overlay| overlay.component = path)
        .try_start()
        .await;
    let error = started.expect_err("it was loaded").to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    let reason = error
        .strip_prefix(&named)
        .unwrap_or_else(|| panic!("no path in {error}"));
    reason.to_owned()
}

async fn refused_content(name: &str, content: impl AsRef<[u8]>) -> String {
    let (_folder, path) = file(name, content);
    refusal(&path).await
}

#[track_caller]
fn assert_says(reason: &str, words: &[&str]) {
    for word in words {
        assert!(reason.contains(word), "`{word}` is not in: {reason}");
    }
}

async fn fc_100_command_components() {
    let reason = refusal(&guest_file("command")).await;
    assert_says(
        &reason,
        &[
            "wasi:http/incoming-handler",
            "wasi:http/handler",
            "wasi:cli/run",
        ],
    );
}

async fn fc_104_core_modules() {
    for (name, content) in [
        ("a.wasm", wat::parse_str("(module)").unwrap()),
        ("a.wat", b"(module)".to_vec()),
    ] {
        assert_says(
            &refused_content(name, content).await,
            &["core module", "wasm32-wasip2"],
        );
    }
}

async fn fc_104_odd_files() {
    let folder = TempDir::new().unwrap();
    assert_says(
        &refusal(&folder.path().join("missing.wasm")).await,
        &["cannot be read", "No such file"],
    );
    assert_says(&refusal(folder.path()).await, &["is a folder"]);
    assert_says(&refused_content("empty.wasm", "").await, &["is empty"]);
    let neither = ["is neither a WebAssembly component nor WebAssembly text"];
    assert_says(
        &refused_content("text.wasm", "hello, world\n").await,
        &neither,
    );
    assert_says(
        &refused_content("bytes.wasm", [0xff, 0xfe, 0]).await,
        &neither,
    );
    assert_says(
        &refused_content("native", b"\x7fELF\x02\x01\x01\0rest").await,
        &["native (ELF)"],
    );
    assert_says(
        &refused_content("broken.wat", "(component\n  (what)\n)").await,
        &["not a valid component"],
    );
    assert_says(
        &refused_content("none.wat", "(component)").await,
        &["exports neither", "exports nothing"],
    );
}

async fn fc_104_truncated_components() {
    let whole = std::fs::read(guest_file("hello")).unwrap();
    for length in [5, 8, 9, 100, whole.len() / 2, whole.len() - 1] {
        let reason = refused_content("hello.wasm", &whole[..length]).await;
        assert!(!reason.contains("backtrace"), "{reason}");
        if length > 8 {
            assert_says(&reason, &["not a valid component (is the file complete?)"]);
        }
    }
}

async fn unknown_imports_are_named() {
    for (import, exported) in [
        ("foo:bar/baz@1.0.0", "wasi:http/incoming-handler@0.2.0"),
        ("foo:bar/baz@1.0.0", "wasi:http/handler@0.3.0"),
        (
            "wasi:keyvalue/store@0.2.0-draft",
            "wasi:http/incoming-handler@0.2.0",
        ),
    ] {
        let text = format!(
            "(component (import \"{import}\" (instance)) (instance $e) (export \"{exported}\" (instance $e)))"
        );
        let reason = refused_content("imports.wat", text).await;
        assert_says(
            &reason,
            &[&format!("imports `{import}`, which nothing here provides")],
        );
    }
}

async fn fc_085_initial_memory_beyond_the_limit() {
    let limit = Some(SizeLimit(Some(1 << 20)));
    let started = TestHost::guest("hello")
        .with(|overlay| overlay.memory = limit)
        .try_start()
        .await;
    let error = started.expect_err("it was loaded").to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    assert_says(
        &error,
        &[
            "hello.wasm: needs",
            "of memory",
            "1.0 MiB",
            "raise --max-memory",
        ],
    );
}

/// Whatever a guest needs from the pool, it gets: this one is refused for its handler alone.
async fn fc_085_large_guests_fit_the_pool() {
    let many_tables: String = (0..9).map(|_| "(table 10 funcref)").collect();
    let many_instances: String = (0..20)
        .map(|n| format!("(core instance $more{n} (instantiate $m))"))
        .collect();
    for (module, more) in [
        ("(table 60000 funcref)", ""),
        (many_tables.as_str(), ""),
        ("(memory 1000)", ""),
        ("", many_instances.as_str()),
    ] {
        let text = format!(
            "(component (core module $m {module}) (core instance $i (instantiate $m)) {more}
               (instance $e) (export \"wasi:http/incoming-handler@0.2.0\" (instance $e)))"
        );
        let reason = refused_content("large.wat", text).await;
        assert!(
            reason.starts_with("exports neither"),
            "{module}{more}: {reason}"
        );
    }
}

async fn fc_103_the_newer_interface_wins() {
    let host = TestHost::guest("both").start().await;
    assert_eq!(host.client(Http::One).await.get("/").await.text(), "p3\n");
}

/// Starts hello with this cache and checks that it serves.
async fn serves_with(cache: &Path) {
    let host = TestHost::guest("hello").with(|overlay| overlay.cache_dir = Some(cache.to_owned()));
    let host = host.start().await;
    assert_eq!(
        host.client(Http::One).await.get("/").await.text(),
        "Hello, World!"
    );
}

/// The files in a folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// A cache folder with hello's entry in it.
async fn filled_cache() -> (TempDir, PathBuf) {
    let cache = TempDir::new().unwrap();
    serves_with(cache.path()).await;
    let found = entries(cache.path());
    assert_eq!(found.len(), 1, "{found:?}");
    (cache, found[0].clone())
}

async fn the_cache_is_used() {
    let (cache, entry) = filled_cache().await;
    let written = std::fs::metadata(&entry).unwrap().modified().unwrap();
    serves_with(cache.path()).await;
    assert_eq!(entries(cache.path()), std::slice::from_ref(&entry));
    assert_eq!(
        std::fs::metadata(&entry).unwrap().modified().unwrap(),
        written,
        "compiled again"
    );
}

async fn damaged_cache_entries_are_rewritten() {
    let (cache, entry) = filled_cache().await;
    let sound = std::fs::read(&entry).unwrap();
    let flip = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        bytes
    };
    let long = [sound.as_slice(), b"x"].concat();
    for (damage, bytes) in [
        ("first byte", flip(0)),
        ("middle byte", flip(sound.len() / 2)),
        ("last byte", flip(sound.len() - 1)),
        ("truncated", sound[..sound.len() / 2].to_vec()),
        ("one byte short", sound[..sound.len() - 1].to_vec()),
        ("one byte long", long),
        ("short", b"x".to_vec()),
        ("empty", Vec::new()),
        ("garbage", vec![0x5a; 100_000]),
    ] {
        std::fs::write(&entry, &bytes).unwrap();
        serves_with(cache.path()).await;
        assert_eq!(
            entries(cache.path()),
            std::slice::from_ref(&entry),
            "{damage}"
        );
        let now = std::fs::read(&entry).unwrap();
        assert!(
            now.len() == sound.len() && now != bytes,
            "{damage}: not rewritten"
        );
    }
}

async fn folders_that_others_can_write_to_are_not_used() {
    let (cache, entry) = filled_cache().await;
    std::fs::write(&entry, b"poison").unwrap();
    std::fs::set_permissions(cache.path(), PermissionsExt::from_mode(0o777)).unwrap();
    serves_with(cache.path()).await;
    assert_eq!(
        std::fs::read(&entry).unwrap(),
        b"poison",
        "the folder was written to"
    );
    assert_eq!(entries(cache.path()), [entry]);
}

async fn a_missing_cache_folder_is_made_private() {
    let parent = TempDir::new().unwrap();
    let cache = parent.path().join("a/b");
    serves_with(&cache).await;
    assert_eq!(
        std::fs::metadata(&cache).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(entries(&cache).len(), 1);
}

async fn precompiled_files_need_their_flag() {
    let (_cache, entry) = filled_cache().await;
    let reason = refusal(&entry).await;
    assert_says(&reason, &["precompiled component", "--allow-precompiled"]);
    let host = TestHost::guest("hello").with(|overlay| {
        overlay.component.clone_from(&entry);
        overlay.allow_precompiled = true;
        overlay.no_cache = true;
    });
    let host = host.start().await;
    assert_eq!(
        host.client(Http::One).await.get("/").await.text(),
        "Hello, World!"
    );
}

async fn fc_094_a_port_in_use_is_refused() {
    let first = TestHost::guest("hello").start().await;
    let address = first.addr();
    let second = TestHost::guest("hello").with(|overlay| {
        overlay.address = Some(address.to_string().parse().unwrap());
    });
    let error = second
        .try_start()
        .await
        .expect_err("two hosts on one port")
        .to_string();
    assert!(
        error.starts_with(&format!("cannot listen on {address}: ")),
        "{error}"
    );
    assert_eq!(
        first.client(Http::One).await.get("/").await.text(),
        "Hello, World!"
    );
}

single! {
    a_missing_cache_folder_is_made_private
    damaged_cache_entries_are_rewritten
    fc_085_initial_memory_beyond_the_limit
    fc_085_large_guests_fit_the_pool
    fc_094_a_port_in_use_is_refused
    fc_100_command_components
    fc_103_the_newer_interface_wins
    fc_104_core_modules
    fc_104_odd_files
    fc_104_truncated_components
    folders_that_others_can_write_to_are_not_used
    precompiled_files_need_their_flag
    the_cache_is_used
    unknown_imports_are_named
}
