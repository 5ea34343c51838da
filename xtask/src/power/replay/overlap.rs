//! Calls of several threads at one time.
//!
//! A call takes effect after its begin and before its end, and both are in the record. Another thread may meet the effect
//! before the end is written down: it opens a file whose link is still under way, or makes a name that is still being
//! removed. Then the call under way is carried out at that moment, and its own end changes nothing more.

use std::collections::BTreeMap;

use anyhow::Result;

use super::super::disk::Inode;
use super::super::trace::Call;
use super::{Place, Replay};

/// Calls about paths that began and did not end, by thread.
pub(super) type UnderWay = BTreeMap<u32, Begun>;

/// A call that began.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    call: Call,
    /// Of a call that opens a file: what its path stood for when it began, or the file that it made early. The name may be
    /// gone when the call ends.
    pub(super) stood_for: Option<Inode>,
    /// The result of another call showed that this one took effect, and it was carried out.
    pub(super) is_done: bool,
}

/// What a call does with a name.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Effect {
    Makes,
    Removes,
}

impl Replay {
    /// Remembers a call about paths until it ends.
    pub(super) fn remember(&mut self, thread: u32, call: &Call) {
        if call.path_arguments().is_empty() {
            return;
        }
        let stood_for = match self.place_of(call, 0) {
            Ok(Place::Name { directory, name }) if call.opens() && !call.creates() => {
                self.disk.lookup(directory, &name)
            }
            _ => None,
        };
        self.under_way.insert(thread, Begun { call: call.clone(), stood_for, is_done: false });
    }

    /// What a name stands for that a call found.
    pub(super) fn find(&mut self, directory: Inode, name: &[u8]) -> Result<Option<Inode>> {
        if self.disk.lookup(directory, name).is_none() {
            self.carry_out_early(Effect::Makes, directory, name)?;
        }
        Ok(self.disk.lookup(directory, name))
    }

    /// A call found that a name was free.
    pub(super) fn vacate(&mut self, directory: Inode, name: &[u8]) -> Result<()> {
        if self.disk.lookup(directory, name).is_some() {
            self.carry_out_early(Effect::Removes, directory, name)?;
        }
        Ok(())
    }

    /// Carries out the first call under way that has this effect on the name, if there is one.
    fn carry_out_early(&mut self, effect: Effect, directory: Inode, name: &[u8]) -> Result<()> {
        let open: Vec<(u32, Call)> = self
            .under_way
            .iter()
            .filter(|(_, begun)| !begun.is_done)
            .map(|(thread, begun)| (*thread, begun.call.clone()))
            .collect();
        let Some((thread, call)) =
            open.into_iter().find(|(_, call)| self.affects(call, effect, directory, name))
        else {
            return Ok(());
        };
        let made = if call.opens() {
            Some(self.disk.create(directory, name))
        } else {
            self.change_names(&call)?;
            None
        };
        if let Some(begun) = self.under_way.get_mut(&thread) {
            begun.is_done = true;
            begun.stood_for = made;
        }
        Ok(())
    }

    fn affects(&mut self, call: &Call, effect: Effect, directory: Inode, name: &[u8]) -> bool {
        let last = call.path_arguments().len() - 1;
        let (path, has_effect) = match (effect, call.name.as_str()) {
            (Effect::Makes, _) if call.opens() => (0, call.creates()),
            (Effect::Makes, kind) => (last, !kind.starts_with("unlink") && kind != "rmdir"),
            (Effect::Removes, kind) => {
                (0, ["unlink", "rmdir", "rename"].iter().any(|start| kind.starts_with(start)))
            }
        };
        let is_it =
            |place| matches!(place, Ok(Place::Name { directory: d, name: n }) if d == directory && n == name);
        has_effect && is_it(self.place_of(call, path))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::super::disk::ROOT;
    use super::super::super::trace;
    use super::super::Heeded;
    use super::*;

    fn replay(record: &[&str]) -> Result<Replay> {
        let mut replay = Replay::new(Path::new("/d"), Heeded::All);
        trace::read(record.join("\n").as_bytes(), |moment| replay.take(&moment).map(drop))?;
        Ok(replay)
    }

    fn lookup(replay: &Replay, name: &str) -> Option<Inode> {
        replay.disk.lookup(ROOT, name.as_bytes())
    }

    const STAGED: &str = "1 openat(AT_FDCWD, \"/d/1#1\", O_WRONLY|O_CREAT|O_EXCL, 0666) = 4";

    #[test]
    fn a_file_is_opened_whose_link_is_under_way() {
        let after = replay(&[
            STAGED,
            "1 linkat(AT_FDCWD, \"/d/1#1\", AT_FDCWD, \"/d/1\", 0 <unfinished ...>",
            "2 openat(AT_FDCWD, \"/d/1\", O_RDONLY|O_CLOEXEC) = 5",
            "1 <... linkat resumed>) = 0",
            "1 unlink(\"/d/1#1\") = 0",
        ])
        .expect("every call is modelled");
        assert!(lookup(&after, "1").is_some() && lookup(&after, "1#1").is_none());
        assert_eq!(after.disk.pending.len(), 3, "the link is one change");
    }

    #[test]
    fn a_file_is_renamed_and_removed_whose_making_is_under_way() {
        let after = replay(&[
            "1 openat(AT_FDCWD, \"/d/1#1\", O_WRONLY|O_CREAT|O_EXCL, 0666 <unfinished ...>",
            "2 rename(\"/d/1#1\", \"/d/2\") = 0",
            "2 unlink(\"/d/2\") = 0",
            "1 <... openat resumed>) = 4",
            "1 write(4, \"ab\", 2) = 2",
        ])
        .expect("every call is modelled");
        assert!(lookup(&after, "1#1").is_none() && lookup(&after, "2").is_none());
    }

    #[test]
    fn a_name_is_made_again_while_its_removal_is_under_way() {
        for made in [
            "2 openat(AT_FDCWD, \"/d/1#1\", O_WRONLY|O_CREAT|O_EXCL, 0666) = 5",
            "2 link(\"/d/other\", \"/d/1#1\") = 0",
        ] {
            let after = replay(&[
                STAGED,
                "2 openat(AT_FDCWD, \"/d/other\", O_WRONLY|O_CREAT|O_EXCL, 0666) = 6",
                "1 unlink(\"/d/1#1\" <unfinished ...>",
                made,
                "1 <... unlink resumed>) = 0",
            ])
            .expect("every call is modelled");
            assert!(lookup(&after, "1#1").is_some(), "{made}");
        }
    }

    #[test]
    fn a_file_is_opened_and_then_removed_while_the_open_is_under_way() {
        let opened = "2 openat(AT_FDCWD, \"/d/1#1\", O_RDONLY|O_CLOEXEC";
        let (removed, resumed) = ("1 unlink(\"/d/1#1\") = 0", "2 <... openat resumed>) = 5");
        let begun_before = format!("{opened} <unfinished ...>");
        replay(&[STAGED, &begun_before, removed, resumed]).expect("every call is modelled");
        let begun_after = format!("{opened}) = 5");
        assert!(replay(&[STAGED, removed, &begun_after]).is_err(), "the name was gone when the call began");
    }

    #[test]
    fn a_directory_is_met_while_several_calls_below_it_are_under_way() {
        let after = replay(&[
            "1 mkdir(\"/d/w\", 0777 <unfinished ...>",
            "2 openat(AT_FDCWD, \"/d/w/1\", O_WRONLY|O_CREAT|O_EXCL, 0666 <unfinished ...>",
            "3 openat(AT_FDCWD, \"/d/w/2\", O_WRONLY|O_CREAT|O_EXCL, 0666 <unfinished ...>",
            "3 <... openat resumed>) = 5",
            "2 <... openat resumed>) = 4",
            "1 <... mkdir resumed>) = 0",
        ])
        .expect("every call is modelled");
        let w = lookup(&after, "w").expect("a directory");
        assert!(after.disk.lookup(w, b"1").is_some() && after.disk.lookup(w, b"2").is_some());
    }

    #[test]
    fn a_call_that_was_carried_out_early_must_end_well() {
        let error = replay(&[
            STAGED,
            "1 linkat(AT_FDCWD, \"/d/1#1\", AT_FDCWD, \"/d/1\", 0 <unfinished ...>",
            "2 openat(AT_FDCWD, \"/d/1\", O_RDONLY|O_CLOEXEC) = 5",
            "1 <... linkat resumed>) = -1 EEXIST (File exists)",
        ]);
        assert!(error.is_err(), "nothing explains the name that was found");
    }
}
