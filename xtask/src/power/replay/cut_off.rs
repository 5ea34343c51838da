//! Calls that the end of a process cut off.
//!
//! Such a call has no result in the record: it may have taken effect or not, and a write may have taken effect in
//! part. The data directory tells which. So it is listed when a process has ended and before the next one begins, and
//! the replay carries each such call out as far as the listing shows it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::super::disk::{Inode, Write};
use super::super::trace::Call;
use super::{Open, Place, Replay};

/// Each path below a data directory, and what is there.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Listing(BTreeMap<Vec<u8>, Listed>);

/// What is found under a path.
#[derive(Clone, Copy, Debug)]
enum Listed {
    Directory,
    /// A file of this length in bytes.
    File(u64),
}

impl Listing {
    /// Lists a directory in which nothing changes meanwhile.
    pub(in super::super) fn of(root: &Path) -> Result<Self> {
        let mut found = BTreeMap::new();
        let mut open = vec![root.to_owned()];
        while let Some(directory) = open.pop() {
            let cannot_list = || format!("cannot list {}", directory.display());
            for entry in std::fs::read_dir(&directory).with_context(cannot_list)? {
                let path = entry.with_context(cannot_list)?.path();
                let metadata = path.symlink_metadata().with_context(cannot_list)?;
                let inside = path.strip_prefix(root).expect("found below the root");
                let what = if metadata.is_dir() { Listed::Directory } else { Listed::File(metadata.len()) };
                found.insert(inside.as_os_str().as_encoded_bytes().to_owned(), what);
                if metadata.is_dir() {
                    open.push(path);
                }
            }
        }
        Ok(Self(found))
    }

    fn has(&self, path: &[u8]) -> bool {
        self.0.contains_key(path)
    }

    /// The length of the file with this path.
    fn length(&self, path: &[u8]) -> Option<u64> {
        match self.0.get(path) {
            Some(Listed::File(length)) => Some(*length),
            _ => None,
        }
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, Listed); N]> for Listing {
    fn from(all: [(&str, Listed); N]) -> Self {
        Self(all.into_iter().map(|(path, what)| (path.as_bytes().to_owned(), what)).collect())
    }
}

impl Replay {
    /// The process ended, and left this behind: carries out what it shows of the calls that were cut off.
    pub(in super::super) fn restart(&mut self, found: &Listing) -> Result<()> {
        for call in std::mem::take(&mut self.cut_off) {
            self.settle(&call, found).with_context(|| format!("a cut off call of {}", call.name))?;
        }
        self.end_process();
        Ok(())
    }

    fn settle(&mut self, call: &Call, found: &Listing) -> Result<()> {
        match call.name.as_str() {
            "unlink" | "unlinkat" | "rmdir" | "rename" | "renameat" | "renameat2" | "mkdir" | "mkdirat"
            | "link" | "linkat" => self.settle_names(call, found)?,
            "open" | "openat" | "openat2" | "creat" => self.settle_open(call, found)?,
            "write" | "writev" => self.settle_write(call, None, found)?,
            "pwrite64" | "pwritev" | "pwritev2" => self.settle_write(call, Some(call.number(3)?), found)?,
            "ftruncate" => {
                let length = call.number(1)? as u64;
                if let Some((open, listed)) = self.listed(call, found)?
                    && listed == length
                {
                    self.disk.write(open.inode, Write::Truncate(length))?;
                }
            }
            // A sync that did not return promises nothing, and the rest changes no file.
            _ => {}
        }
        Ok(())
    }

    fn settle_names(&mut self, call: &Call, found: &Listing) -> Result<()> {
        let makes = call.name.starts_with("mkdir") || call.name.starts_with("link");
        // The last path of a call is the name that it makes. Of a rename the old name tells, since the new one may have
        // stood for an older file.
        let telling = if makes { call.path_arguments().len() - 1 } else { 0 };
        let Some(name) = self.named(call, telling)? else { return Ok(()) };
        if name.known.is_none() == makes && found.has(&name.path) == makes {
            self.change_names(call)?;
        }
        Ok(())
    }

    fn settle_open(&mut self, call: &Call, found: &Listing) -> Result<()> {
        let flags = call.open_flags()?;
        let Some(Named { directory, name, path, known }) = self.named(call, 0)? else { return Ok(()) };
        match (known, found.length(&path)) {
            (None, Some(_)) if flags.contains("O_CREAT") => {
                self.disk.create(directory, &name);
            }
            (Some(inode), Some(0)) if flags.contains("O_TRUNC") => {
                self.disk.write(inode, Write::Truncate(0))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes over as many bytes of a write at a file's end as the listed length shows.
    fn settle_write(&mut self, call: &Call, at: Option<i64>, found: &Listing) -> Result<()> {
        let Some((open, listed)) = self.listed(call, found)? else { return Ok(()) };
        let offset = self.offset(&open, at)?;
        if offset < self.disk.file(open.inode).map_or(0, |file| file.length) {
            bail!("it wrote over bytes that were there, and a length does not tell whether it took effect");
        }
        if listed > offset {
            self.write(call, at, (listed - offset) as i64)?;
        }
        Ok(())
    }

    /// The open file that a call's descriptor stands for, and its listed length; `None` for what has no name in the
    /// data directory.
    fn listed(&mut self, call: &Call, found: &Listing) -> Result<Option<(Open, u64)>> {
        let Some(open) = self.open_file(call.number(0)?).cloned() else { return Ok(None) };
        let length = self.disk.paths(open.inode).iter().find_map(|path| found.length(path));
        Ok(length.map(|length| (open, length)))
    }

    /// The name that the path of this number among the paths of a call leads to; `None` for what lies outside of the
    /// data directory.
    fn named(&mut self, call: &Call, number: usize) -> Result<Option<Named>> {
        let Place::Name { directory, name } = self.met_place_of(call, number)? else { return Ok(None) };
        let paths = self.disk.paths(directory);
        let above = paths.first().context("a directory without a name")?;
        let slash: &[u8] = if above.is_empty() { b"" } else { b"/" };
        let path = [above.as_slice(), slash, &name].concat();
        let known = self.disk.lookup(directory, &name);
        Ok(Some(Named { directory, name, path, known }))
    }
}

/// A name that a call is about.
struct Named {
    directory: Inode,
    name: Vec<u8>,
    /// Its path below the data directory.
    path: Vec<u8>,
    /// What it stands for in the model.
    known: Option<Inode>,
}

#[cfg(test)]
mod tests {
    use super::super::super::disk::ROOT;
    use super::super::super::trace;
    use super::super::Heeded;
    use super::Listed::{Directory, File};
    use super::*;

    /// A directory with a staged file of two bytes, which stays open.
    const STAGED: &str = concat!(
        "1 mkdir(\"/d/w\", 0777) = 0\n",
        "1 openat(AT_FDCWD, \"/d/w/1#1\", O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0666) = 4\n",
        "1 write(4, \"ab\", 2) = 2\n",
    );

    /// The paths and lengths that the model holds after a process that was cut off in `call`, when `found` was listed.
    fn after<const N: usize>(call: &str, found: [(&str, Listed); N]) -> Result<Vec<(String, Option<u64>)>> {
        let mut replay = Replay::new(Path::new("/d"), Heeded::All);
        for end in [" <unfinished ...>\n", ") = ?\n"] {
            replay = Replay::new(Path::new("/d"), Heeded::All);
            trace::read(format!("{STAGED}1 {call}{end}").as_bytes(), |moment| {
                replay.take(&moment).map(drop)
            })?;
            replay.restart(&Listing::from(found))?;
        }
        let mut held = Vec::new();
        for inode in ROOT + 1..10 {
            let length = replay.disk.file(inode).map(|file| file.length);
            let paths = replay.disk.paths(inode).into_iter();
            held.extend(paths.map(|path| (String::from_utf8(path).expect("a plain name"), length)));
        }
        held.sort();
        Ok(held)
    }

    fn held<const N: usize>(all: [(&str, Listed); N]) -> Vec<(String, Option<u64>)> {
        let length = |what| match what {
            Directory => None,
            File(length) => Some(length),
        };
        all.into_iter().map(|(path, what)| (path.to_owned(), length(what))).collect()
    }

    #[track_caller]
    fn is_taken_over<const N: usize>(call: &str, found: [(&str, Listed); N]) {
        assert_eq!(after(call, found).expect("every call is modelled"), held(found), "{call}");
    }

    const UNCHANGED: [(&str, Listed); 2] = [("w", Directory), ("w/1#1", File(2))];

    #[test]
    fn a_cut_off_call_took_effect_if_the_directory_shows_it() {
        is_taken_over("unlink(\"/d/w/1#1\"", [("w", Directory)]);
        is_taken_over("unlinkat(AT_FDCWD, \"/d/w/1#1\", 0", [("w", Directory)]);
        is_taken_over("rename(\"/d/w/1#1\", \"/d/w/1\"", [("w", Directory), ("w/1", File(2))]);
        is_taken_over("mkdir(\"/d/x\", 0777", [("w", Directory), ("w/1#1", File(2)), ("x", Directory)]);
        let linked = [("w", Directory), ("w/1", File(2)), ("w/1#1", File(2))];
        is_taken_over("linkat(AT_FDCWD, \"/d/w/1#1\", AT_FDCWD, \"/d/w/1\", 0", linked);
        let made = [("w", Directory), ("w/1#1", File(2)), ("w/2#1", File(0))];
        is_taken_over("openat(AT_FDCWD, \"/d/w/2#1\", O_WRONLY|O_CREAT|O_EXCL, 0666", made);
        is_taken_over(
            "openat(AT_FDCWD, \"/d/w/1#1\", O_WRONLY|O_TRUNC",
            [("w", Directory), ("w/1#1", File(0))],
        );
        is_taken_over("write(4, \"cdef\", 4", [("w", Directory), ("w/1#1", File(5))]);
        is_taken_over("pwrite64(4, \"cdef\", 4, 2", [("w", Directory), ("w/1#1", File(6))]);
        is_taken_over("ftruncate(4, 1", [("w", Directory), ("w/1#1", File(1))]);
    }

    #[test]
    fn a_cut_off_call_had_no_effect_if_the_directory_does_not_show_it() {
        for call in [
            "unlink(\"/d/w/1#1\"",
            "rename(\"/d/w/1#1\", \"/d/w/1\"",
            "mkdir(\"/d/x\", 0777",
            "linkat(AT_FDCWD, \"/d/w/1#1\", AT_FDCWD, \"/d/w/1\", 0",
            "openat(AT_FDCWD, \"/d/w/2#1\", O_WRONLY|O_CREAT|O_EXCL, 0666",
            "openat(AT_FDCWD, \"/d/w/1#1\", O_WRONLY|O_TRUNC",
            "write(4, \"cdef\", 4",
            "ftruncate(4, 1",
            "fsync(4",
            "unlink(\"/elsewhere/1\"",
        ] {
            is_taken_over(call, UNCHANGED);
        }
    }

    #[test]
    fn a_cut_off_write_over_bytes_that_were_there_is_refused() {
        let error = after("pwrite64(4, \"cd\", 2, 0", UNCHANGED).expect_err("a length does not tell");
        assert!(format!("{error:#}").contains("wrote over bytes"), "{error:#}");
    }

    #[test]
    fn what_no_call_explains_is_not_made_up() {
        let with_a_stranger = [("w", Directory), ("w/1#1", File(2)), ("w/9", File(3))];
        assert_eq!(after("fsync(4", with_a_stranger).expect("every call is modelled"), held(UNCHANGED));
    }
}
