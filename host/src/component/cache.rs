//! Compiled components on disk. An entry's name is the hash of the component's bytes together with what
//! wasmtime's compiler depends on; its content ends with its own checksum. Entries are written to a
//! temporary file and renamed, in a folder that only its owner may enter.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes of the checksum at an entry's end. The compiled file's own sections end before it.
const CHECKSUM: usize = blake3::OUT_LEN;

/// A folder of compiled components.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Opens a folder, which is made if it is missing. `None`, with a log line, if it cannot be trusted or used.
    pub(super) fn open(folder: &Path) -> Option<Self> {
        match prepare(folder) {
            Ok(()) => Some(Self {
                folder: folder.to_owned(),
            }),
            Err(problem) => {
                tracing::warn!(folder = %folder.display(), problem, "compiled components are not cached");
                None
            }
        }
    }

    /// The compiled component for these bytes, if there is a sound entry.
    pub(super) fn get(&self, engine: &Engine, bytes: &[u8]) -> Option<Component> {
        let path = self.entry(engine, bytes);
        // Also keeps a pipe in the entry's place from being waited for.
        if !fs::symlink_metadata(&path).is_ok_and(|about| about.is_file() && is_private(&about)) {
            return None;
        }
        let content = fs::read(&path).ok()?;
        let sound = content
            .split_last_chunk::<CHECKSUM>()
            .is_some_and(|(compiled, sum)| blake3::hash(compiled).as_bytes() == sum);
        if !sound {
            tracing::warn!(entry = %path.display(), "damaged cache entry ignored");
            return None;
        }
        drop(content);
        match deserialize(engine, &path) {
            Ok(component) => Some(component),
            Err(error) => {
                tracing::warn!(entry = %path.display(), error = format!("{error:#}"), "foreign cache entry ignored");
                None
            }
        }
    }

    /// Keeps a compiled component. What goes wrong is only logged: the component is there already.
    pub(super) fn put(&self, engine: &Engine, bytes: &[u8], component: &Component) {
        let write = || -> Result<(), String> {
            let compiled = component.serialize().map_err(|error| error.to_string())?;
            let io = |error: std::io::Error| error.to_string();
            let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(io)?;
            file.write_all(&compiled).map_err(io)?;
            file.write_all(blake3::hash(&compiled).as_bytes())
                .map_err(io)?;
            file.as_file().sync_all().map_err(io)?;
            file.persist(self.entry(engine, bytes))
                .map_err(|error| error.to_string())?;
            Ok(())
        };
        if let Err(problem) = write() {
            tracing::warn!(folder = %self.folder.display(), problem, "compiled component not kept");
        }
    }

    fn entry(&self, engine: &Engine, bytes: &[u8]) -> PathBuf {
        let mut key = KeyHasher(blake3::Hasher::new());
        engine.precompile_compatibility_hash().hash(&mut key);
        key.0.update(bytes);
        self.folder
            .join(format!("{}.cwasm", key.0.finalize().to_hex()))
    }
}

fn prepare(folder: &Path) -> Result<(), String> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| error.to_string())?;
    let about = fs::metadata(folder).map_err(|error| error.to_string())?;
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err("the folder belongs to another user".to_owned());
    }
    if !is_private(&about) {
        return Err("others may write to the folder; chmod 700 it".to_owned());
    }
    Ok(())
}

/// Whether nobody but this user may write to it.
fn is_private(about: &fs::Metadata) -> bool {
    about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0
}

/// Lets anything that implements `Hash` go into a cryptographic hash.
struct KeyHasher(blake3::Hasher);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.0.finalize();
        u64::from_le_bytes(*hash.as_bytes().first_chunk::<8>().unwrap_or(&[0; 8]))
    }
}

/// Loads compiled code that the user trusts, by `--allow-precompiled`. The bytes are copied: a file that is
/// overwritten while its code runs would end the process.
#[allow(
    unsafe_code,
    reason = "wasmtime has no checked way to load compiled code"
)]
pub(super) fn deserialize_precompiled(
    engine: &Engine,
    bytes: &[u8],
) -> wasmtime::Result<Component> {
    // SAFETY: the user has declared that wasmtime compiled these bytes; wasmtime itself compares version and
    // settings.
    unsafe { Component::deserialize(engine, bytes) }
}

#[allow(
    unsafe_code,
    reason = "wasmtime has no checked way to load compiled code"
)]
fn deserialize(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file is code that wasmtime compiled. `Cache::put` wrote it into a folder where only this user
    // may write, replaces it only by renaming, and its checksum was right a moment ago; wasmtime itself compares
    // version and settings.
    unsafe { Component::deserialize_file(engine, path) }
}
