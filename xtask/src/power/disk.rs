//! A model of a disk behind a file system's cache.
//!
//! Files and directories are inodes. What a process sees is the *cache*; what a power loss leaves is
//! the *disk*, and a change moves from the first to the second only when something syncs it:
//!
//! - writing changes a file's pending list; `fsync` or `fdatasync` of that file moves to the disk what
//!   had been written when the call began;
//! - making, linking, renaming and removing names changes the pending list of names; `fsync` of the
//!   *directory* moves them. Syncing a file does not make its name durable: many file systems do that
//!   too, but none has to.
//!
//! A rename is one change: file systems log it in one transaction, so the old name does not vanish
//! without the new one appearing.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// Names an inode.
pub(super) type Inode = usize;
/// The directory that the model begins with.
pub(super) const ROOT: Inode = 0;

/// A change of a file's bytes.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Bytes { offset: u64, data: Vec<u8> },
    Truncate(u64),
}

impl Write {
    /// Carries the change out.
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Bytes { offset, data } => {
                let (start, end) = (*offset as usize, *offset as usize + data.len());
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[start..end].copy_from_slice(data);
            }
            Self::Truncate(length) => content.resize(*length as usize, 0),
        }
    }
}

/// The bytes of a file: those on disk, and those that are not there yet.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) durable: Vec<u8>,
    pub(super) pending: Vec<Write>,
    /// Changes that reached the disk so far; with the pending ones it numbers all changes.
    settled: u64,
    /// Length as the process sees it.
    pub(super) length: u64,
}

/// The names in each directory.
pub(super) type Directories = BTreeMap<Inode, BTreeMap<Vec<u8>, Inode>>;

/// A name in a directory, and what it stands for.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) directory: Inode,
    pub(super) name: Vec<u8>,
    pub(super) inode: Inode,
}

/// A change of names.
#[derive(Clone, Debug)]
pub(super) struct NameChange {
    /// The name that appears.
    add: Option<Entry>,
    /// The name that disappears, if it still stands for this inode.
    remove: Option<Entry>,
    number: u64,
}

impl NameChange {
    /// The directory that must be synced to make the change durable: the one where the name appears, or else the one
    /// where it disappears.
    fn directory(&self) -> Inode {
        self.add.as_ref().or(self.remove.as_ref()).expect("a change changes a name").directory
    }

    /// Carries the change out.
    pub(super) fn apply(&self, directories: &mut Directories) {
        if let Some(Entry { directory, name, inode }) = &self.remove {
            let names = directories.entry(*directory).or_default();
            if names.get(name) == Some(inode) {
                names.remove(name);
            }
        }
        if let Some(Entry { directory, name, inode }) = &self.add {
            directories.entry(*directory).or_default().insert(name.clone(), *inode);
        }
    }
}

/// Marks what a sync that has begun will have made durable when it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    writes: u64,
    names: u64,
}

/// The model.
#[derive(Debug, Default)]
pub(super) struct Disk {
    files: BTreeMap<Inode, File>,
    /// Names as the process sees them.
    cache: Directories,
    /// Names on disk.
    pub(super) durable: Directories,
    /// Changes of names that are not on disk, in the order they were made.
    pub(super) pending: Vec<NameChange>,
    inodes: Inode,
    changes: u64,
}

impl Disk {
    /// A disk with an empty, durable directory.
    pub(super) fn new() -> Self {
        let mut disk = Self::default();
        disk.cache.insert(ROOT, BTreeMap::new());
        disk.inodes = ROOT + 1;
        disk
    }

    /// What a name in a directory stands for, to the process.
    pub(super) fn lookup(&self, directory: Inode, name: &[u8]) -> Option<Inode> {
        self.cache.get(&directory)?.get(name).copied()
    }

    /// All paths to an inode from the root, as the process sees them, without a `/` in front.
    pub(super) fn paths(&self, inode: Inode) -> Vec<Vec<u8>> {
        let (mut found, mut open) = (Vec::new(), vec![(ROOT, Vec::new())]);
        while let Some((at, path)) = open.pop() {
            for (name, inner) in self.cache.get(&at).into_iter().flatten() {
                let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
                open.push((*inner, [path.as_slice(), slash, name].concat()));
            }
            if at == inode {
                found.push(path);
            }
        }
        found
    }

    /// The file behind an inode; `None` for a directory.
    pub(super) fn file(&self, inode: Inode) -> Option<&File> {
        self.files.get(&inode)
    }

    /// A new empty file, named.
    pub(super) fn create(&mut self, directory: Inode, name: &[u8]) -> Inode {
        let inode = self.fresh();
        self.files.insert(inode, File::default());
        self.link(directory, name, inode);
        inode
    }

    /// A new empty directory, named.
    pub(super) fn make_directory(&mut self, directory: Inode, name: &[u8]) -> Inode {
        let inode = self.fresh();
        self.cache.insert(inode, BTreeMap::new());
        self.link(directory, name, inode);
        inode
    }

    fn fresh(&mut self) -> Inode {
        self.inodes += 1;
        self.inodes - 1
    }

    /// Gives an inode one more name.
    pub(super) fn link(&mut self, directory: Inode, name: &[u8], inode: Inode) {
        self.change(Some(Entry { directory, name: name.to_owned(), inode }), None);
    }

    /// Removes a name.
    pub(super) fn unlink(&mut self, directory: Inode, name: &[u8]) -> Result<()> {
        let Some(inode) = self.lookup(directory, name) else { bail!("removes a name the model lacks") };
        self.change(None, Some(Entry { directory, name: name.to_owned(), inode }));
        Ok(())
    }

    /// Moves a name, and replaces what has the new name already.
    pub(super) fn rename(&mut self, from: (Inode, &[u8]), to: (Inode, &[u8])) -> Result<()> {
        let Some(inode) = self.lookup(from.0, from.1) else { bail!("renames a name the model lacks") };
        let entry = |(directory, name): (Inode, &[u8])| Entry { directory, name: name.to_owned(), inode };
        self.change(Some(entry(to)), Some(entry(from)));
        Ok(())
    }

    fn change(&mut self, add: Option<Entry>, remove: Option<Entry>) {
        let change = NameChange { add, remove, number: self.changes };
        self.changes += 1;
        change.apply(&mut self.cache);
        self.pending.push(change);
    }

    /// Changes a file's bytes, in the cache.
    pub(super) fn write(&mut self, inode: Inode, write: Write) -> Result<()> {
        let Some(file) = self.files.get_mut(&inode) else { bail!("writes to a directory") };
        file.length = match &write {
            Write::Bytes { offset, data } => file.length.max(offset + data.len() as u64),
            Write::Truncate(length) => *length,
        };
        file.pending.push(write);
        Ok(())
    }

    /// What is in the cache for this inode now: the mark of a sync that begins.
    pub(super) fn mark(&self, inode: Inode) -> Mark {
        let writes = self.files.get(&inode).map_or(0, |file| file.settled + file.pending.len() as u64);
        Mark { writes, names: self.changes }
    }

    /// Ends a sync: everything up to the mark is on disk.
    pub(super) fn settle(&mut self, inode: Inode, mark: Mark) {
        if let Some(file) = self.files.get_mut(&inode) {
            let ready = mark.writes.saturating_sub(file.settled) as usize;
            for write in file.pending.drain(..ready) {
                write.apply(&mut file.durable);
                file.settled += 1;
            }
            return;
        }
        let durable = &mut self.durable;
        self.pending.retain(|change| {
            let ready = change.number < mark.names && change.directory() == inode;
            if ready {
                change.apply(durable);
            }
            !ready
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(offset: u64, data: &[u8]) -> Write {
        Write::Bytes { offset, data: data.to_owned() }
    }

    #[test]
    fn a_sync_settles_what_was_written_when_it_began() {
        let mut disk = Disk::new();
        let file = disk.create(ROOT, b"a");
        disk.write(file, bytes(0, b"one")).expect("a file");
        let mark = disk.mark(file);
        disk.write(file, bytes(3, b"two")).expect("a file");
        disk.settle(file, mark);
        let content = disk.file(file).expect("a file");
        assert_eq!((content.durable.as_slice(), content.pending.len(), content.length), (&b"one"[..], 1, 6));
        assert!(disk.durable.is_empty(), "the file's name is not durable yet");
    }

    #[test]
    fn a_name_is_durable_when_its_directory_is_synced() {
        let mut disk = Disk::new();
        let inner = disk.make_directory(ROOT, b"inner");
        let file = disk.create(inner, b"a#1");
        disk.rename((inner, b"a#1"), (inner, b"a")).expect("the name is there");
        disk.settle(ROOT, disk.mark(ROOT));
        assert_eq!(disk.durable, Directories::from([(ROOT, BTreeMap::from([(b"inner".to_vec(), inner)]))]));
        disk.settle(inner, disk.mark(inner));
        assert_eq!(disk.durable[&inner], BTreeMap::from([(b"a".to_vec(), file)]));
        assert_eq!((disk.lookup(inner, b"a"), disk.lookup(inner, b"a#1")), (Some(file), None));
    }
}
