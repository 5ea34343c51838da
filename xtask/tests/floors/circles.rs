//! Which modules need which, and the circles among them.

use std::collections::{BTreeMap, BTreeSet};

use syn::ItemUse;
use syn::visit::Visit;

use super::tree::{Crate, ModuleId, imports, is_for_tests};

/// For each module, which of its children need which others.
type Needs = BTreeMap<ModuleId, BTreeMap<ModuleId, BTreeSet<ModuleId>>>;

/// The circles of a crate, each as `parent: child, child, ...`.
pub(crate) fn find(tree: &Crate) -> Vec<String> {
    let mut needs = Needs::new();
    for from in 0..tree.modules.len() {
        let mut paths = Paths::default();
        tree.modules[from].items.iter().for_each(|item| paths.visit_item(item));
        for target in paths.0.iter().filter_map(|path| tree.resolve(from, path)) {
            if let Some((parent, needing, needed)) = siblings(tree, from, target) {
                needs.entry(parent).or_default().entry(needing).or_default().insert(needed);
            }
        }
    }
    needs.iter().flat_map(|(parent, needs)| circles_below(tree, *parent, needs)).collect()
}

/// Two modules as children of the module that holds both; `None` where one holds the other.
fn siblings(tree: &Crate, from: ModuleId, target: ModuleId) -> Option<(ModuleId, ModuleId, ModuleId)> {
    let (above_from, above_target) = (chain(tree, from), chain(tree, target));
    let shared = above_from.iter().zip(&above_target).take_while(|(one, other)| one == other).count();
    Some((above_from[shared - 1], *above_from.get(shared)?, *above_target.get(shared)?))
}

/// A module and all that hold it, the root first.
fn chain(tree: &Crate, module: ModuleId) -> Vec<ModuleId> {
    let mut chain: Vec<ModuleId> =
        std::iter::successors(Some(module), |at| tree.modules[*at].parent).collect();
    chain.reverse();
    chain
}

fn circles_below(
    tree: &Crate,
    parent: ModuleId,
    needs: &BTreeMap<ModuleId, BTreeSet<ModuleId>>,
) -> Vec<String> {
    let reached: BTreeMap<ModuleId, BTreeSet<ModuleId>> =
        needs.keys().map(|from| (*from, reach(*from, needs))).collect();
    let mut circles = BTreeSet::new();
    for (from, reachable) in &reached {
        let back = |other: &&ModuleId| reached.get(other).is_some_and(|there| there.contains(from));
        let circle: BTreeSet<ModuleId> = reachable.iter().filter(back).copied().collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    let name = |id: &ModuleId| tree.modules[*id].path.rsplit("::").next().unwrap_or_default().to_owned();
    let text = |circle: BTreeSet<ModuleId>| {
        let names: Vec<String> = circle.iter().map(name).collect();
        let place = &tree.modules[parent].path;
        format!("in {}: {}", if place.is_empty() { "the crate" } else { place }, names.join(", "))
    };
    circles.into_iter().map(text).collect()
}

fn reach(from: ModuleId, needs: &BTreeMap<ModuleId, BTreeSet<ModuleId>>) -> BTreeSet<ModuleId> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        for next in needs.get(&at).into_iter().flatten() {
            if reached.insert(*next) {
                open.push(*next);
            }
        }
    }
    reached
}

/// All paths that stand in some items, tests left out.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.0.extend(imports(&item.tree).into_iter().map(|import| import.path));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_impl_item_fn(self, item);
        }
    }
}
