//! Calls that the end of a process cut off.
//!
//! Such a call has no result in the record: it may have taken effect or not, and a write may have taken effect in
//! part. The data directory tells which. So it is read when a process has ended and before the next one begins, and the
//! replay carries each such call out as far as what was found shows it.
//!
//! Names and lengths would not be enough: the journal writes its records over zeros that it wrote ahead, and such a
//! write changes no length.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::super::disk::{Inode, Write};
use super::super::trace::Call;
use super::{Open, Place, Replay};

/// Each path below a data directory, and what is there.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Found(BTreeMap<Vec<u8>, Kind>);

/// What is found under a path.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Kind {
    Directory,
    /// A file with these bytes.
    File(Vec<u8>),
}

impl Found {
    /// Reads a directory in which nothing changes meanwhile.
    pub(in super::super) fn of(root: &Path) -> Result<Self> {
        let mut found = BTreeMap::new();
        let mut open = vec![root.to_owned()];
        while let Some(directory) = open.pop() {
            let cannot_read = || format!("cannot read {}", directory.display());
            for entry in std::fs::read_dir(&directory).with_context(cannot_read)? {
                let path = entry.with_context(cannot_read)?.path();
                let is_directory = path.symlink_metadata().with_context(cannot_read)?.is_dir();
                let kind = if is_directory {
                    Kind::Directory
                } else {
                    Kind::File(std::fs::read(&path).with_context(cannot_read)?)
                };
                let inside = path.strip_prefix(root).expect("found below the root");
                found.insert(inside.as_os_str().as_encoded_bytes().to_owned(), kind);
                if is_directory {
                    open.push(path);
                }
            }
        }
        Ok(Self(found))
    }

    fn has(&self, path: &[u8]) -> bool {
        self.0.contains_key(path)
    }

    /// The bytes of the file with this path.
    fn file(&self, path: &[u8]) -> Option<&[u8]> {
        match self.0.get(path) {
            Some(Kind::File(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

impl Replay {
    /// The process ended, and left this behind: carries out what it shows of the calls that were cut off.
    pub(in super::super) fn restart(&mut self, found: &Found) -> Result<()> {
        for call in std::mem::take(&mut self.cut_off) {
            self.settle(&call, found).with_context(|| format!("a cut off call of {}", call.name))?;
        }
        self.end_process();
        Ok(())
    }

    fn settle(&mut self, call: &Call, found: &Found) -> Result<()> {
        match call.name.as_str() {
            "unlink" | "unlinkat" | "rmdir" | "rename" | "renameat" | "renameat2" | "mkdir" | "mkdirat"
            | "link" | "linkat" => self.settle_names(call, found)?,
            "open" | "openat" | "openat2" | "creat" => self.settle_open(call, found)?,
            "write" | "writev" => self.settle_write(call, None, found)?,
            "pwrite64" | "pwritev" | "pwritev2" => self.settle_write(call, Some(call.number(3)?), found)?,
            "ftruncate" => {
                let length = call.number(1)? as u64;
                if let Some((open, bytes)) = self.found(call, found)?
                    && bytes.len() as u64 == length
                {
                    self.disk.write(open.inode, Write::Truncate(length))?;
                }
            }
            // A sync that did not return promises nothing, and the rest changes no file.
            _ => {}
        }
        Ok(())
    }

    fn settle_names(&mut self, call: &Call, found: &Found) -> Result<()> {
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

    fn settle_open(&mut self, call: &Call, found: &Found) -> Result<()> {
        let flags = call.open_flags()?;
        let Some(Named { directory, name, path, known }) = self.named(call, 0)? else { return Ok(()) };
        match (known, found.file(&path)) {
            (None, Some(_)) if flags.contains("O_CREAT") => {
                self.disk.create(directory, &name);
            }
            (Some(inode), Some([])) if flags.contains("O_TRUNC") => {
                self.disk.write(inode, Write::Truncate(0))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes over as many of a write's bytes as the file holds in their place: a write that is cut off has written its
    /// first bytes.
    fn settle_write(&mut self, call: &Call, at: Option<i64>, found: &Found) -> Result<()> {
        let Some((open, bytes)) = self.found(call, found)? else { return Ok(()) };
        let offset = self.offset(&open, at)?;
        let there = bytes.get(offset as usize..).unwrap_or_default();
        let written =
            call.argument(1)?.bytes.iter().zip(there).take_while(|(wanted, held)| wanted == held).count();
        if written > 0 {
            self.write(call, at, written as i64)?;
        }
        Ok(())
    }

    /// The open file that a call's descriptor stands for, and its bytes as they were found; `None` for what has no name
    /// in the data directory.
    fn found<'a>(&mut self, call: &Call, found: &'a Found) -> Result<Option<(Open, &'a [u8])>> {
        let Some(open) = self.open_file(call.number(0)?).cloned() else { return Ok(None) };
        let bytes = self.disk.paths(open.inode).iter().find_map(|path| found.file(path));
        Ok(bytes.map(|bytes| (open, bytes)))
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
    use super::Kind::{Directory, File};
    use super::*;

    /// A directory with a staged file of two bytes, which stays open.
    const STAGED: &str = concat!(
        "1 mkdir(\"/d/w\", 0777) = 0\n",
        "1 openat(AT_FDCWD, \"/d/w/1#1\", O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0666) = 4\n",
        "1 write(4, \"ab\", 2) = 2\n",
    );

    /// What a process leaves behind.
    type Left = [(&'static str, Kind)];

    fn file(bytes: &[u8]) -> Kind {
        File(bytes.to_vec())
    }

    fn unchanged() -> [(&'static str, Kind); 2] {
        [("w", Directory), ("w/1#1", file(b"ab"))]
    }

    fn by_path(all: &Left) -> BTreeMap<Vec<u8>, Kind> {
        all.iter().map(|(path, kind)| (path.as_bytes().to_vec(), kind.clone())).collect()
    }

    /// What the model holds after a process that was cut off in `call`, when `left` was found.
    fn after(call: &str, left: &Left) -> BTreeMap<Vec<u8>, Kind> {
        let mut replay = Replay::new(Path::new("/d"), Heeded::All);
        for end in [" <unfinished ...>\n", ") = ?\n"] {
            replay = Replay::new(Path::new("/d"), Heeded::All);
            trace::read(format!("{STAGED}1 {call}{end}").as_bytes(), |moment| replay.take(&moment).map(drop))
                .expect("every call is modelled");
            replay.restart(&Found(by_path(left))).expect("what was found can be taken over");
        }
        let mut held = BTreeMap::new();
        for inode in ROOT + 1..10 {
            let kind = replay.disk.file(inode).map_or(Directory, |file| {
                let mut bytes = file.durable.clone();
                file.pending.iter().for_each(|write| write.apply(&mut bytes));
                File(bytes)
            });
            held.extend(replay.disk.paths(inode).into_iter().map(|path| (path, kind.clone())));
        }
        held
    }

    #[track_caller]
    fn is_taken_over(call: &str, left: &Left) {
        assert_eq!(after(call, left), by_path(left), "{call}");
    }

    #[test]
    fn a_cut_off_call_took_effect_if_the_directory_shows_it() {
        is_taken_over("unlink(\"/d/w/1#1\"", &[("w", Directory)]);
        is_taken_over("unlinkat(AT_FDCWD, \"/d/w/1#1\", 0", &[("w", Directory)]);
        is_taken_over("rename(\"/d/w/1#1\", \"/d/w/1\"", &[("w", Directory), ("w/1", file(b"ab"))]);
        is_taken_over("mkdir(\"/d/x\", 0777", &[("w", Directory), ("w/1#1", file(b"ab")), ("x", Directory)]);
        let linked = [("w", Directory), ("w/1", file(b"ab")), ("w/1#1", file(b"ab"))];
        is_taken_over("linkat(AT_FDCWD, \"/d/w/1#1\", AT_FDCWD, \"/d/w/1\", 0", &linked);
        let made = [("w", Directory), ("w/1#1", file(b"ab")), ("w/2#1", file(b""))];
        is_taken_over("openat(AT_FDCWD, \"/d/w/2#1\", O_WRONLY|O_CREAT|O_EXCL, 0666", &made);
        let emptied = [("w", Directory), ("w/1#1", file(b""))];
        is_taken_over("openat(AT_FDCWD, \"/d/w/1#1\", O_WRONLY|O_TRUNC", &emptied);
        is_taken_over("ftruncate(4, 1", &[("w", Directory), ("w/1#1", file(b"a"))]);
    }

    #[test]
    fn a_cut_off_write_wrote_the_first_bytes_that_the_file_holds() {
        for (call, bytes) in [
            ("write(4, \"cdef\", 4", b"abcde".as_slice()),
            ("write(4, \"cdef\", 4", b"abcdef"),
            ("pwrite64(4, \"cdef\", 4, 2", b"abcdef"),
            ("pwrite64(4, \"cd\", 2, 0", b"cd"),
            ("pwrite64(4, \"cd\", 2, 0", b"cb"),
            ("pwrite64(4, \"cdef\", 4, 1", b"acdef"),
            ("pwritev(4, [{iov_base=\"cd\", iov_len=2}, {iov_base=\"ef\", iov_len=2}], 2, 2", b"abcde"),
        ] {
            is_taken_over(call, &[("w", Directory), ("w/1#1", file(bytes))]);
        }
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
            "pwrite64(4, \"cd\", 2, 0",
            "ftruncate(4, 1",
            "fsync(4",
            "unlink(\"/elsewhere/1\"",
        ] {
            is_taken_over(call, &unchanged());
        }
    }

    #[test]
    fn what_no_call_explains_is_not_made_up() {
        let [directory, staged] = unchanged();
        let with_a_stranger = [directory, staged, ("w/9", file(b"xyz"))];
        assert_eq!(after("fsync(4", &with_a_stranger), by_path(&unchanged()));
    }
}
