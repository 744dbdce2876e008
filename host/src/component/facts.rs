//! What a component's bytes tell before it is compiled: which handler it exports, and what an instance starts with.

use wasmparser::{Encoding, Instance, Parser, Payload};

use crate::engine::{InstanceNeeds, Wasi};
use crate::error::LoadProblem;

const WASM_PAGE: u64 = 64 << 10;

/// What is known of a component without compiling it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The engine that it belongs to.
    pub(super) wasi: Wasi,
    /// What an instance takes from the pool, so far as it can be counted.
    pub(super) needs: InstanceNeeds,
    /// Bytes that the largest of its memories starts with.
    pub(super) memory: u64,
}

#[derive(Default)]
struct Reader {
    depth: usize,
    imports: Vec<String>,
    exports: Vec<String>,
    core_instances: u32,
    memories: u32,
    tables: u32,
    table_elements: u64,
    memory: u64,
}

impl Facts {
    /// Reads a binary component.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, LoadProblem> {
        let mut reader = Reader::default();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(|error| invalid(&error))?;
            if reader.depth == 0
                && let Payload::Version {
                    encoding: Encoding::Module,
                    ..
                } = payload
            {
                return Err(LoadProblem::NotComponent(
                    "is a core module, and only components can be served; \
                     build for wasm32-wasip2 or wrap it with `wasm-tools component new`"
                        .to_owned(),
                ));
            }
            reader.see(payload).map_err(|error| invalid(&error))?;
        }
        let wasi = reader.wasi()?;
        let usual = InstanceNeeds::default();
        Ok(Self {
            wasi,
            needs: usual.union(InstanceNeeds {
                core_instances: reader.core_instances,
                memories: reader.memories,
                tables: reader.tables,
                table_elements: usize::try_from(reader.table_elements).unwrap_or(usize::MAX),
            }),
            memory: reader.memory,
        })
    }
}

fn invalid(error: &wasmparser::BinaryReaderError) -> LoadProblem {
    LoadProblem::Invalid(error.message().to_owned())
}

impl Reader {
    fn see(&mut self, payload: Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => self.depth += 1,
            Payload::End(_) => self.depth = self.depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if self.depth == 0 => {
                for import in section {
                    self.imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if self.depth == 0 => {
                for export in section {
                    self.exports.push(export?.name.name.to_owned());
                }
            }
            Payload::InstanceSection(section) => {
                for instance in section {
                    if let Instance::Instantiate { .. } = instance? {
                        self.core_instances = self.core_instances.saturating_add(1);
                    }
                }
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    self.memories = self.memories.saturating_add(1);
                    self.memory = self.memory.max(memory?.initial.saturating_mul(WASM_PAGE));
                }
            }
            Payload::TableSection(section) => {
                for table in section {
                    self.tables = self.tables.saturating_add(1);
                    self.table_elements = self.table_elements.max(table?.ty.initial);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn wasi(&self) -> Result<Wasi, LoadProblem> {
        let exports = |prefix: &str| self.exports.iter().any(|name| name.starts_with(prefix));
        if !exports(Wasi::P3.handler()) && !exports(Wasi::P2.handler()) {
            return Err(LoadProblem::NoHandler(self.what_it_is()));
        }
        // One that imports asynchronous interfaces needs their engine, whatever it exports.
        let asynchronous = |name: &String| name.starts_with("wasi:") && name.contains("@0.3.");
        if exports(Wasi::P3.handler()) || self.imports.iter().any(asynchronous) {
            Ok(Wasi::P3)
        } else {
            Ok(Wasi::P2)
        }
    }

    fn what_it_is(&self) -> String {
        if self
            .exports
            .iter()
            .any(|name| name.starts_with("wasi:cli/run@"))
        {
            return "it is a command (`wasi:cli/run`): run it with `wasmtime run`, \
                    or build it against the world `wasi:http/proxy` or `wasi:http/service`"
                .to_owned();
        }
        match self.exports.as_slice() {
            [] => "it exports nothing".to_owned(),
            exports => {
                let shown: Vec<_> = exports
                    .iter()
                    .take(4)
                    .map(|name| format!("`{name}`"))
                    .collect();
                format!("it exports {}", shown.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Result<Facts, String> {
        Facts::read(&wat::parse_str(text).unwrap()).map_err(|problem| problem.to_string())
    }

    fn exporting(name: &str, rest: &str) -> String {
        format!("(component {rest} (instance $i) (export \"{name}\" (instance $i)))")
    }

    #[test]
    fn the_newer_handler_and_asynchronous_imports_decide() {
        let p2 = exporting("wasi:http/incoming-handler@0.2.3", "");
        assert_eq!(facts(&p2).unwrap().wasi, Wasi::P2);
        let p3 = exporting("wasi:http/handler@0.3.0", "");
        assert_eq!(facts(&p3).unwrap().wasi, Wasi::P3);
        let mixed = exporting(
            "wasi:http/incoming-handler@0.2.3",
            "(import \"wasi:clocks/types@0.3.0\" (instance))",
        );
        assert_eq!(facts(&mixed).unwrap().wasi, Wasi::P3);
    }

    #[test]
    fn memories_tables_and_instances_are_counted() {
        let text = exporting(
            "wasi:http/incoming-handler@0.2.0",
            "(core module $m (memory 7) (table 30000 funcref) (table 1 funcref))
             (core instance (instantiate $m)) (core instance (instantiate $m))",
        );
        let facts = facts(&text).unwrap();
        assert_eq!(facts.memory, 7 * WASM_PAGE);
        assert_eq!(facts.needs.table_elements, 30_000);
        assert_eq!(
            facts.needs.core_instances,
            InstanceNeeds::default().core_instances
        );
    }

    #[test]
    fn what_is_no_http_component_is_named() {
        assert!(facts("(module)").unwrap_err().contains("core module"));
        assert!(
            facts("(component)")
                .unwrap_err()
                .contains("it exports nothing")
        );
        let command = facts(&exporting("wasi:cli/run@0.2.0", "")).unwrap_err();
        assert!(
            command.contains("wasi:http/incoming-handler") && command.contains("a command"),
            "{command}"
        );
        let other = facts(&exporting("a:b/c@1.0.0", "")).unwrap_err();
        assert!(other.contains("`a:b/c@1.0.0`"), "{other}");
    }
}
