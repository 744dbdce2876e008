//! What can be told about a file before, and about a component after it is compiled, in one line each.

use std::io::Read;
use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker};

use super::Source;
use super::facts::Facts;
use crate::capability::State;
use crate::config::GuestLimits;
use crate::engine::InstanceNeeds;
use crate::error::LoadProblem;

/// A larger file is no component that anybody could serve.
const LARGEST_FILE: u64 = 1 << 30;

/// Reads a file and says what it is.
pub(super) fn read(path: &Path, allow_precompiled: bool) -> Result<Source, LoadProblem> {
    let bytes = read_bytes(path)?;
    let not_component = |what: &str| LoadProblem::NotComponent(what.to_owned());
    if bytes.is_empty() {
        return Err(not_component("the file is empty"));
    }
    if bytes.starts_with(b"\x7fELF") {
        return match Engine::detect_precompiled(&bytes) {
            Some(wasmtime::Precompiled::Component) if allow_precompiled => Ok(Source {
                bytes: bytes.into(),
                facts: None,
            }),
            Some(wasmtime::Precompiled::Component) => Err(not_component(
                "is a precompiled component, which runs unchecked; --allow-precompiled loads it if you trust it",
            )),
            Some(wasmtime::Precompiled::Module) => Err(not_component(
                "is a precompiled core module, not a component",
            )),
            None => Err(not_component(
                "is a native (ELF) file, not a WebAssembly component",
            )),
        };
    }
    let bytes = if bytes.starts_with(b"\0asm") {
        bytes
    } else {
        from_text(bytes)?
    };
    let facts = Facts::read(&bytes)?;
    Ok(Source {
        bytes: bytes.into(),
        facts: Some(facts),
    })
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, LoadProblem> {
    let file = std::fs::File::open(path).map_err(LoadProblem::Unreadable)?;
    let about = file.metadata().map_err(LoadProblem::Unreadable)?;
    if about.is_dir() {
        return Err(LoadProblem::NotComponent(
            "is a folder, not a component".to_owned(),
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len().min(LARGEST_FILE)).unwrap_or(0));
    file.take(LARGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(LoadProblem::Unreadable)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(LoadProblem::NotComponent("is larger than 1 GiB".to_owned()));
    }
    Ok(bytes)
}

/// WebAssembly text becomes binary; anything else is refused.
fn from_text(bytes: Vec<u8>) -> Result<Vec<u8>, LoadProblem> {
    let neither = "is neither a WebAssembly component nor WebAssembly text";
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(LoadProblem::NotComponent(neither.to_owned()));
    };
    if !text.trim_start().starts_with(['(', ';']) {
        return Err(LoadProblem::NotComponent(neither.to_owned()));
    }
    wat::parse_str(&text).map_err(|error| {
        let error = error.to_string();
        LoadProblem::Invalid(error.lines().next().unwrap_or_default().to_owned())
    })
}

/// Refuses a component that starts with more than its limits allow.
pub(super) fn limits(facts: &Facts, limits: &GuestLimits) -> Result<(), LoadProblem> {
    if facts.memory > limits.memory {
        return Err(LoadProblem::OverLimit {
            need: format!("{} of memory", bytesize::ByteSize(facts.memory)),
            limit: bytesize::ByteSize(limits.memory).to_string(),
            flag: "--max-memory",
        });
    }
    if facts.needs.table_elements > limits.table_elements {
        return Err(LoadProblem::OverLimit {
            need: format!("a table of {} elements", facts.needs.table_elements),
            limit: limits.table_elements.to_string(),
            flag: "--max-table-elements",
        });
    }
    Ok(())
}

/// What one instance needs as far as the compiled component tells.
pub(super) fn needs(component: &Component) -> InstanceNeeds {
    let mut needs = InstanceNeeds::default();
    if let Some(resources) = component.resources_required() {
        needs.memories = needs.memories.max(resources.num_memories);
        needs.tables = needs.tables.max(resources.num_tables);
        let elements = resources.max_initial_table_size.unwrap_or(0);
        needs.table_elements = needs
            .table_elements
            .max(usize::try_from(elements).unwrap_or(usize::MAX));
    }
    needs
}

/// What the instances that are alive in this engine take from its pool.
pub(super) fn used(engine: &Engine) -> InstanceNeeds {
    let Some(metrics) = engine.pooling_allocator_metrics() else {
        return InstanceNeeds::default();
    };
    InstanceNeeds {
        core_instances: u32::try_from(metrics.core_instances()).unwrap_or(u32::MAX),
        memories: u32::try_from(metrics.memories()).unwrap_or(u32::MAX),
        tables: u32::try_from(metrics.tables()).unwrap_or(u32::MAX),
        table_elements: 0,
    }
}

/// Refuses a component that imports an interface which the linker does not have.
pub(super) fn imports(component: &Component, linker: &Linker<State>) -> Result<(), LoadProblem> {
    let engine = linker.engine();
    for (name, item) in component.component_type().imports(engine) {
        let is_instance = matches!(item.ty, ComponentItem::ComponentInstance(_));
        if is_instance && known_interface(name) {
            continue;
        }
        return Err(missing_import(name));
    }
    Ok(())
}

/// Whether the component exports an interface whose name begins like this.
pub(super) fn exports(component: &Component, prefix: &str) -> bool {
    let engine = component.engine();
    component
        .component_type()
        .exports(engine)
        .any(|(name, _)| name.starts_with(prefix))
}

/// Whether an interface belongs to a package that is linked in full.
fn known_interface(name: &str) -> bool {
    let Some((path, version)) = name.split_once('@') else {
        return false;
    };
    let Some((package, _)) = path.split_once('/') else {
        return false;
    };
    let packages = [
        "wasi:cli",
        "wasi:clocks",
        "wasi:filesystem",
        "wasi:http",
        "wasi:random",
        "wasi:sockets",
    ];
    match version {
        _ if version.starts_with("0.2.") => packages.contains(&package) || package == "wasi:io",
        _ if version.starts_with("0.3.") => packages.contains(&package),
        _ => false,
    }
}

fn missing_import(name: &str) -> LoadProblem {
    let help = if name.starts_with("wasi:") {
        "it has WASI 0.2.x and 0.3.x: cli, clocks, filesystem, http, io, random and sockets"
    } else {
        "remove the import, or satisfy it by composition (`wac plug`)"
    };
    LoadProblem::MissingImport {
        import: name.to_owned(),
        help: help.to_owned(),
    }
}

/// The linker's refusal as one line, with the import's name where it tells one.
pub(super) fn link_error(error: &wasmtime::Error) -> LoadProblem {
    let text = one_line(error);
    match text.split('`').nth(1) {
        Some(name) => LoadProblem::MissingImport {
            import: name.to_owned(),
            help: text.clone(),
        },
        None => LoadProblem::Invalid(text),
    }
}

/// An error and its causes on one line.
pub(super) fn one_line(error: &wasmtime::Error) -> String {
    let text = format!("{error:#}");
    let lines: Vec<_> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}
