//! From a path in the source to the module in which the thing that it names is defined.

use syn::Item;

use super::tree::{Crate, Import, ModuleId};

/// Re-exports that are followed at most, one after the other.
const DETOURS_MAX: usize = 16;

impl Crate {
    /// Where the thing that `path` names, as written in the module `from`, is defined. `None` where it comes from
    /// another crate, or is a local variable or a generic parameter.
    pub(crate) fn resolve(&self, from: ModuleId, path: &[String]) -> Option<ModuleId> {
        self.follow(from, path, DETOURS_MAX)
    }

    fn follow(&self, from: ModuleId, path: &[String], detours: usize) -> Option<ModuleId> {
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (0, &path[1..]),
            "self" => (from, &path[1..]),
            "super" => (self.modules[from].parent?, &path[1..]),
            first => {
                let module = &self.modules[from];
                let is_imported =
                    |import: &Import| import.name.as_deref() == Some(first) && import.path[0] != *first;
                let is_known = module.children.contains_key(first)
                    || self.defines(from, first)
                    || module.imports.iter().any(is_imported);
                if !is_known {
                    return None;
                }
                (from, path)
            }
        };
        while let Some((name, behind)) = rest.split_first() {
            if name == "super" {
                (at, rest) = (self.modules[at].parent?, behind);
            } else if let Some(child) = self.modules[at].children.get(name) {
                (at, rest) = (*child, behind);
            } else if self.defines(at, name) {
                return Some(at);
            } else {
                return self.by_import(at, name, behind, detours.checked_sub(1)?);
            }
        }
        Some(at)
    }

    fn by_import(&self, at: ModuleId, name: &str, behind: &[String], detours: usize) -> Option<ModuleId> {
        let module = &self.modules[at];
        let by_name = |import: &&Import| import.name.as_deref() == Some(name);
        if let Some(import) = module.imports.iter().find(by_name) {
            let path: Vec<String> = import.path.iter().chain(behind).cloned().collect();
            return self.follow(at, &path, detours);
        }
        module.imports.iter().filter(|import| import.name.is_none()).find_map(|glob| {
            let source = self.follow(at, &glob.path, detours)?;
            let path: Vec<String> = std::iter::once(name.to_owned()).chain(behind.iter().cloned()).collect();
            self.follow(source, &path, detours)
        })
    }

    fn defines(&self, module: ModuleId, name: &str) -> bool {
        self.modules[module].items.iter().any(|item| match item {
            Item::Const(item) => item.ident == name,
            Item::Enum(item) => item.ident == name,
            Item::Fn(item) => item.sig.ident == name,
            Item::Static(item) => item.ident == name,
            Item::Struct(item) => item.ident == name,
            Item::Trait(item) => item.ident == name,
            Item::Type(item) => item.ident == name,
            _ => false,
        })
    }
}
