//! In which folders the methods of each type are.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, Type};

use super::tree::{Crate, ModuleId};

/// The types whose inherent `impl` blocks lie outside the folder of the type, each as `type: folder, ...`.
pub(crate) fn find(tree: &Crate) -> Vec<String> {
    let mut elsewhere: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for from in 0..tree.modules.len() {
        for item in &tree.modules[from].items {
            let Item::Impl(item) = item else { continue };
            let (None, Type::Path(path)) = (&item.trait_, &*item.self_ty) else { continue };
            let names: Vec<String> = path.path.segments.iter().map(|part| part.ident.to_string()).collect();
            let Some(home) = tree.resolve(from, &names) else { continue };
            let (own, others) = (folder(tree, home), folder(tree, from));
            if own != others {
                let name = names.last().cloned().unwrap_or_default();
                elsewhere.entry(format!("{own}::{name}")).or_default().insert(if others.is_empty() {
                    "the root".to_owned()
                } else {
                    others
                });
            }
        }
    }
    let text = |(name, folders): (String, BTreeSet<String>)| {
        format!("{name} in {}", folders.into_iter().collect::<Vec<_>>().join(", "))
    };
    elsewhere.into_iter().map(text).collect()
}

/// The folder of a module: its own where it has children, else that of its parent.
fn folder(tree: &Crate, module: ModuleId) -> String {
    let found = &tree.modules[module];
    match found.parent {
        Some(parent) if found.children.is_empty() => tree.modules[parent].path.clone(),
        _ => found.path.clone(),
    }
}
