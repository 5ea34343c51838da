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
    /// What it imports or passes on.
    pub(crate) imports: Vec<Import>,
}

/// What one name of a `use` brings into a module.
pub(crate) struct Import {
    /// The name; `None` where everything of a module is imported.
    pub(crate) name: Option<String>,
    /// What the name stands for, or the module.
    pub(crate) path: Vec<String>,
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
        let mut module =
            Module { path, parent, children: BTreeMap::new(), items: Vec::new(), imports: Vec::new() };
        let mut children = Vec::new();
        for item in items {
            if is_for_tests(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(child) => children.push(child),
                Item::Use(item) => {
                    module.imports.extend(imports(&item.tree));
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

/// Everything that a `use` brings into its module.
pub(crate) fn imports(tree: &UseTree) -> Vec<Import> {
    let one = |name: Option<String>, path: Vec<String>| vec![Import { name, path }];
    match tree {
        UseTree::Path(path) => {
            let mut found = imports(&path.tree);
            for import in &mut found {
                // `use a::b::{self}` imports `b`.
                if import.name.as_deref() == Some("self") {
                    *import = Import { name: Some(path.ident.to_string()), path: Vec::new() };
                }
                import.path.insert(0, path.ident.to_string());
            }
            found
        }
        UseTree::Name(name) => one(Some(name.ident.to_string()), vec![name.ident.to_string()]),
        UseTree::Rename(rename) => one(Some(rename.rename.to_string()), vec![rename.ident.to_string()]),
        UseTree::Glob(_) => one(None, Vec::new()),
        UseTree::Group(group) => group.items.iter().flat_map(imports).collect(),
    }
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
