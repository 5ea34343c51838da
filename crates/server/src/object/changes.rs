//! The changes of several names that this process is making.
//!
//! What is stored decides how such a change ends, whoever meets it. Here is what a process knows besides, so that its own
//! requests do not stand in each other's way:
//!
//! * A change takes its *turn*: all of its names at once. Another change of one of these names waits, and so does a plain
//!   write that meets an intent. Without that, each would undo the other.
//! * From before its commit until its sources are gone, a change has a *window* open. A page of a listing reads each range
//!   as of a moment of its own. If it reads two ranges while a window is open, it could show both names or neither, so it is
//!   made again. After some tries it *holds* the windows of its bucket closed.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use rangehold_map::BucketId;
use tokio::sync::Notify;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Changes {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The names whose turn it is.
    taken: BTreeSet<(BucketId, String)>,
    /// How many windows are open in a bucket.
    windows: BTreeMap<BucketId, u64>,
    /// How many listings hold the windows of a bucket closed.
    holds: BTreeMap<BucketId, u64>,
    /// How many windows were opened so far.
    opened: u64,
}

/// The turn of some names.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    changes: &'a Changes,
    names: Vec<(BucketId, String)>,
}

/// Between the commit of a change and the end of its sources.
#[derive(Debug)]
pub(super) struct Window<'a>(&'a Changes, BucketId);

/// No window is open.
#[derive(Debug)]
pub(super) struct Held<'a>(&'a Changes, BucketId);

impl Changes {
    /// Takes the turn of all of these names, when none of them is taken.
    pub(super) async fn take(&self, bucket: BucketId, names: impl IntoIterator<Item = &str>) -> Turn<'_> {
        let names: BTreeSet<_> = names.into_iter().map(|name| (bucket, name.to_owned())).collect();
        self.when(|state| {
            let is_free = state.taken.is_disjoint(&names);
            if is_free {
                state.taken.extend(names.iter().cloned());
            }
            is_free
        })
        .await;
        Turn { changes: self, names: names.into_iter().collect() }
    }

    /// Waits until no change of this process has the name.
    pub(super) async fn wait_for(&self, bucket: BucketId, name: &str) {
        let name = (bucket, name.to_owned());
        self.when(|state| !state.taken.contains(&name)).await;
    }

    /// Opens a window, when no listing holds it closed.
    pub(super) async fn window(&self, bucket: BucketId) -> Window<'_> {
        self.when(|state| {
            let is_free = !state.holds.contains_key(&bucket);
            if is_free {
                *state.windows.entry(bucket).or_default() += 1;
                state.opened += 1;
            }
            is_free
        })
        .await;
        Window(self, bucket)
    }

    /// A mark for [`was_quiet_since`](Self::was_quiet_since); `None` if a window is open in the bucket.
    pub(super) fn mark(&self, bucket: BucketId) -> Option<u64> {
        let state = self.state.lock();
        (!state.windows.contains_key(&bucket)).then_some(state.opened)
    }

    /// Whether no window was opened since the mark.
    pub(super) fn was_quiet_since(&self, mark: u64) -> bool {
        self.state.lock().opened == mark
    }

    /// Waits until no window is open in the bucket, and lets none be opened.
    pub(super) async fn hold(&self, bucket: BucketId) -> Held<'_> {
        *self.state.lock().holds.entry(bucket).or_default() += 1;
        let held = Held(self, bucket);
        self.when(|state| !state.windows.contains_key(&bucket)).await;
        held
    }

    /// Waits until `ready` says so.
    async fn when(&self, mut ready: impl FnMut(&mut State) -> bool) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // From here on it hears of what is freed, so nothing is missed between the look and the wait.
            freed.as_mut().enable();
            let is_ready = ready(&mut self.state.lock());
            if is_ready {
                return;
            }
            freed.await;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.changes.state.lock();
        for name in &self.names {
            state.taken.remove(name);
        }
        drop(state);
        self.changes.freed.notify_waiters();
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        count_down(&mut self.0.state.lock().windows, self.1);
        self.0.freed.notify_waiters();
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        count_down(&mut self.0.state.lock().holds, self.1);
        self.0.freed.notify_waiters();
    }
}

fn count_down(counts: &mut BTreeMap<BucketId, u64>, bucket: BucketId) {
    if let Some(count) = counts.get_mut(&bucket) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const BUCKET: BucketId = BucketId(1);

    #[test]
    fn a_change_waits_for_each_of_its_names_and_takes_none_of_them_meanwhile() {
        let changes = Changes::default();
        let first = changes.take(BUCKET, ["a", "b"]).now_or_never().expect("free");
        assert!(changes.take(BUCKET, ["b", "c"]).now_or_never().is_none());
        assert!(changes.take(BUCKET, ["c"]).now_or_never().is_some());
        assert!(changes.take(BucketId(2), ["b"]).now_or_never().is_some());
        assert!(changes.wait_for(BUCKET, "a").now_or_never().is_none());
        drop(first);
        assert!(changes.wait_for(BUCKET, "a").now_or_never().is_some());
        assert!(changes.take(BUCKET, ["b", "c"]).now_or_never().is_some());
    }

    #[test]
    fn a_listing_learns_of_windows_and_can_hold_them_closed() {
        let changes = Changes::default();
        let mark = changes.mark(BUCKET).expect("no window is open");
        let window = changes.window(BUCKET).now_or_never().expect("nothing holds it");
        assert!(changes.mark(BUCKET).is_none() && !changes.was_quiet_since(mark));
        assert!(changes.hold(BUCKET).now_or_never().is_none());
        drop(window);
        let held = changes.hold(BUCKET).now_or_never().expect("no window is open");
        assert!(changes.window(BUCKET).now_or_never().is_none());
        assert!(changes.window(BucketId(2)).now_or_never().is_some());
        drop(held);
        assert!(changes.window(BUCKET).now_or_never().is_some());
    }
}
