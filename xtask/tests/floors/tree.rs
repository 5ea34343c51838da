//! The modules of a crate, read from its sources: what each defines, and which names it takes from where.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, UseTree};

/// Index of a module in [`Crate::modules`].
pub(crate) type ModuleId = usize;

/// All modules of a crate but those of tests. The first is the root.
pub(crate) struct Crate {
    pub(crate) modules: Vec<Module>,
}

/// A module.
pub(crate) struct Module {
    /// Its path from the root, such as `range::gate`; empty for the root.
    pub(crate) path: String,
    pub(crate) parent: Option<ModuleId>,
    pub(crate) children: BTreeMap<String, ModuleId>,
    /// Everything in it that is neither a module nor compiled for tests only.
    pub(crate) items: Vec<Item>,
    /// Names that it imports or passes on, with the path that each stands for.
    pub(crate) imports: Vec<(String, Vec<String>)>,
    /// Modules of which it imports everything.
    pub(crate) globs: Vec<Vec<String>>,
}

impl Crate {
    /// Reads a crate from its root file.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self { modules: Vec::new() };
        let folder = root.parent().expect("a file has a folder").to_owned();
        tree.read_file(root, folder, String::new(), None)?;
        Ok(tree)
    }

    /// Reads a module from its file; its children lie in `folder`.
    fn read_file(
        &mut self,
        file: &Path,
        folder: PathBuf,
        path: String,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let parsed = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        self.add(parsed.items, folder, path, parent)
    }

    fn add(
        &mut self,
        items: Vec<Item>,
        folder: PathBuf,
        path: String,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId, String> {
        let id = self.modules.len();
        let mut module = Module {
            path,
            parent,
            children: BTreeMap::new(),
            items: Vec::new(),
            imports: Vec::new(),
            globs: Vec::new(),
        };
        let mut children = Vec::new();
        for item in items {
            if is_for_tests(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(child) => children.push(child),
                Item::Use(item) => {
                    collect(&item.tree, &mut Vec::new(), &mut module);
                    module.items.push(Item::Use(item));
                }
                other => module.items.push(other),
            }
        }
        let own_path = module.path.clone();
        self.modules.push(module);
        for child in children {
            let name = child.ident.to_string();
            let path = if own_path.is_empty() { name.clone() } else { format!("{own_path}::{name}") };
            let below = folder.join(&name);
            let child = match child.content {
                Some((_, items)) => self.add(items, below, path, Some(id))?,
                None => {
                    let flat = folder.join(format!("{name}.rs"));
                    let file = if flat.is_file() { flat } else { below.join("mod.rs") };
                    self.read_file(&file, below, path, Some(id))?
                }
            };
            self.modules[id].children.insert(name, child);
        }
        Ok(id)
    }
}

/// Notes what a `use` brings into a module.
fn collect(tree: &UseTree, before: &mut Vec<String>, module: &mut Module) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            collect(&path.tree, before, module);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            let own = before.last().cloned().unwrap_or_default();
            module.imports.push((own, before.clone()));
        }
        UseTree::Name(name) => note(name.ident.to_string(), name.ident.to_string(), before, module),
        UseTree::Rename(rename) => {
            note(rename.rename.to_string(), rename.ident.to_string(), before, module);
        }
        UseTree::Glob(_) => module.globs.push(before.clone()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, before, module)),
    }
}

fn note(name: String, last: String, before: &[String], module: &mut Module) {
    let mut path = before.to_vec();
    path.push(last);
    module.imports.push((name, path));
}

/// Whether an item is compiled for tests only.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
