//! Carries recorded calls out on the model of the disk.
//!
//! Only files below the data directory matter. Descriptors are followed through open, dup and close. A call that could
//! change a file in a way that the model does not know is an error and is never ignored: a model that misses writes
//! would accept what is wrong.
//!
//! Besides files, the record shows answers. An answer is a write to something that is not a file, and its bytes begin
//! an HTTP response with the id of a request. From then on its promise counts.
//!
//! Calls of several threads [overlap], and the end of a process leaves calls [cut off](cut_off).

mod cut_off;
mod names;
mod overlap;

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result, anyhow, bail};

use super::disk::{Disk, Inode, Mark, ROOT, Write};
use super::trace::{Call, Moment};
pub(super) use cut_off::Found;
use names::Place;
use overlap::{Begun, UnderWay};

/// The headers with the id of a request: of tables the client's own, of objects that of the service.
const ID_HEADERS: [&[u8]; 2] = [b"x-ms-client-request-id: ", b"x-guploader-uploadid: "];

/// Which syncs the model takes into account. If a test cannot tell a server without one kind of sync from a correct
/// one, it proves nothing about that kind. So every run tries both controls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Heeded {
    All,
    /// Control: as if directories were never synced.
    FilesOnly,
    /// Control: as if files were never synced.
    DirectoriesOnly,
}

/// What a moment means to the test.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Event {
    /// Nothing that matters.
    Other,
    /// The data directory changed, or something in it became durable.
    Disk,
    /// The answer to the request with this id is on its way.
    Answer(String),
}

/// An open file.
#[derive(Clone, Debug)]
struct Open {
    inode: Inode,
    position: u64,
    append: bool,
    /// Every write is durable when it returns.
    synced: bool,
}

/// The model and the descriptors of the process under record.
pub(super) struct Replay {
    /// Absolute path of the data directory.
    root: Vec<u8>,
    heeded: Heeded,
    pub(super) disk: Disk,
    /// Descriptors that stand for the same open file share it, and its position.
    descriptors: HashMap<i64, usize>,
    opened: Vec<Open>,
    /// Syncs under way, by thread.
    syncs: HashMap<u32, Vec<(Inode, Mark)>>,
    /// Directories that were removed: the one above and the name there.
    removed: HashSet<(Inode, Vec<u8>)>,
    under_way: UnderWay,
    /// Calls that the end of the process cut off.
    cut_off: Vec<Call>,
}

impl Replay {
    /// Begins with an empty, durable data directory.
    pub(super) fn new(root: &std::path::Path, heeded: Heeded) -> Self {
        Self {
            heeded,
            root: root.as_os_str().as_encoded_bytes().to_owned(),
            disk: Disk::new(),
            descriptors: HashMap::new(),
            opened: Vec::new(),
            syncs: HashMap::new(),
            removed: HashSet::new(),
            under_way: UnderWay::new(),
            cut_off: Vec::new(),
        }
    }

    /// The process ended: the cache stays, its descriptors do not.
    fn end_process(&mut self) {
        self.descriptors.clear();
        self.syncs.clear();
        self.under_way.clear();
    }

    /// Takes the next moment of the record.
    pub(super) fn take(&mut self, moment: &Moment) -> Result<Event> {
        match moment {
            Moment::Begin(thread, call) => self.begin(*thread, call),
            Moment::End(thread, call, result) if *result >= 0 => self.end(*thread, call, *result),
            Moment::End(thread, ..) => {
                self.syncs.remove(thread);
                if self.under_way.remove(thread).is_some_and(|begun| begun.is_done) {
                    return Err(anyhow!("a call failed whose effect another call met"));
                }
                Ok(Event::Other)
            }
            Moment::CutOff(call) => {
                self.cut_off.push(call.clone());
                Ok(Event::Other)
            }
        }
        .with_context(|| format!("replaying {moment:?}").chars().take(300).collect::<String>())
    }

    fn begin(&mut self, thread: u32, call: &Call) -> Result<Event> {
        self.remember(thread, call);
        match call.name.as_str() {
            "fsync" | "fdatasync" => {
                if let Some(open) = self.open_file(call.number(0)?) {
                    let inode = open.inode;
                    let is_file = self.disk.file(inode).is_some();
                    if self.heeded == if is_file { Heeded::DirectoriesOnly } else { Heeded::FilesOnly } {
                        return Ok(Event::Other);
                    }
                    self.syncs.insert(thread, vec![(inode, self.disk.mark(inode))]);
                }
            }
            // The number is free for another open as soon as the call is in the kernel.
            "close" => {
                self.descriptors.remove(&call.number(0)?);
            }
            "write" | "writev" | "sendto" | "sendmsg" if self.open_file(call.number(0)?).is_none() => {
                return Ok(answer(&call.argument(1)?.bytes).map_or(Event::Other, Event::Answer));
            }
            "sendmmsg" if !call.argument(1)?.bytes.is_empty() => bail!("several answers in one call"),
            _ => {}
        }
        Ok(Event::Other)
    }

    fn end(&mut self, thread: u32, call: &Call, result: i64) -> Result<Event> {
        let begun = self.under_way.remove(&thread);
        match call.name.as_str() {
            _ if call.opens() => self.open(call, result, begun.and_then(|begun| begun.stood_for)),
            "dup" | "dup2" | "dup3" => self.duplicate(call.number(0)?, result),
            "fcntl" if call.argument(1)?.text.starts_with("F_DUPFD") => {
                self.duplicate(call.number(0)?, result)
            }
            "lseek" => {
                if let Some(open) = self.open_file(call.number(0)?) {
                    open.position = result as u64;
                }
                Ok(Event::Other)
            }
            "write" | "writev" => self.write(call, None, result),
            "pwrite64" => self.write(call, Some(call.number(3)?), result),
            "pwritev" | "pwritev2" => self.write(call, Some(call.number(3)?), result),
            "fsync" | "fdatasync" => {
                let ready = self.syncs.remove(&thread).unwrap_or_default();
                ready.iter().for_each(|(inode, mark)| self.disk.settle(*inode, *mark));
                Ok(if ready.is_empty() { Event::Other } else { Event::Disk })
            }
            "ftruncate" => match self.open_file(call.number(0)?).map(|open| open.inode) {
                Some(inode) => {
                    self.disk.write(inode, Write::Truncate(call.number(1)? as u64))?;
                    Ok(Event::Disk)
                }
                None => Ok(Event::Other),
            },
            "close" | "sendto" | "sendmsg" | "sendmmsg" | "fcntl" | "sync" | "syncfs" | "sync_file_range" => {
                // Syncs of more than one file are ignored: so the model is stricter than a real disk.
                Ok(Event::Other)
            }
            "rename" | "renameat" | "renameat2" | "link" | "linkat" | "unlink" | "unlinkat" | "mkdir"
            | "mkdirat" | "rmdir" => match begun {
                Some(Begun { is_done: true, .. }) => Ok(Event::Other),
                _ => self.change_names(call),
            },
            _ => self.refuse(call),
        }
    }

    /// A call that the model does not know is fine as long as it has nothing to do with the directory.
    fn refuse(&mut self, call: &Call) -> Result<Event> {
        if call.name.starts_with("io_") {
            bail!("{} hides writes from the record", call.name);
        }
        if call.name == "mmap"
            && !(call.argument(3)?.text.contains("MAP_SHARED") && call.argument(2)?.text.contains("WRITE"))
        {
            return Ok(Event::Other);
        }
        let root = String::from_utf8_lossy(&self.root).into_owned();
        for argument in &call.arguments {
            let descriptor = argument.text.parse().ok().and_then(|number| self.open_file(number));
            if descriptor.is_some() || String::from_utf8_lossy(&argument.bytes).starts_with(&root) {
                bail!("{} on the data directory is not modelled", call.name);
            }
        }
        Ok(Event::Other)
    }

    /// The open file that a descriptor stands for; `None` for what is not in the data directory.
    fn open_file(&mut self, descriptor: i64) -> Option<&mut Open> {
        let index = *self.descriptors.get(&descriptor)?;
        Some(&mut self.opened[index])
    }

    /// A call gave this descriptor to a file, whose path stood for `stood_for` when the call began.
    fn open(&mut self, call: &Call, descriptor: i64, stood_for: Option<Inode>) -> Result<Event> {
        let flags = call.open_flags()?;
        let (inode, created) = match self.met_place_of(call, 0)? {
            Place::Outside => {
                self.descriptors.remove(&descriptor);
                return Ok(Event::Other);
            }
            _ if flags.contains("O_TMPFILE") => bail!("a file without a name is not modelled"),
            Place::Root => (ROOT, false),
            Place::Name { directory, name } if flags.contains("O_CREAT") => {
                if flags.contains("O_EXCL") && stood_for.is_none() {
                    self.vacate(directory, &name)?;
                }
                match self.disk.lookup(directory, &name).or(stood_for) {
                    Some(inode) => (inode, false),
                    None => (self.disk.create(directory, &name), true),
                }
            }
            Place::Name { directory, name } => {
                let inode = self.find(directory, &name)?.or(stood_for);
                (inode.context("opens a file that the model has not")?, false)
            }
            Place::Removed => (stood_for.context("opens a file in a directory that was removed")?, false),
        };
        let emptied = flags.contains("O_TRUNC") && self.disk.file(inode).is_some_and(|file| file.length > 0);
        if emptied {
            self.disk.write(inode, Write::Truncate(0))?;
        }
        self.opened.push(Open {
            inode,
            position: 0,
            append: flags.contains("O_APPEND"),
            synced: flags.contains("O_SYNC") || flags.contains("O_DSYNC"),
        });
        self.descriptors.insert(descriptor, self.opened.len() - 1);
        Ok(if created || emptied { Event::Disk } else { Event::Other })
    }

    fn duplicate(&mut self, old: i64, new: i64) -> Result<Event> {
        match self.descriptors.get(&old).copied() {
            Some(index) => self.descriptors.insert(new, index),
            None => self.descriptors.remove(&new),
        };
        Ok(Event::Other)
    }

    /// Carries out a write of the first `written` bytes of a call's buffer, to the offset `at` or where the file stands.
    fn write(&mut self, call: &Call, at: Option<i64>, written: i64) -> Result<Event> {
        let Some(index) = self.descriptors.get(&call.number(0)?).copied() else {
            return Ok(Event::Other);
        };
        let mut data = call.argument(1)?.bytes.clone();
        if data.len() < written as usize {
            bail!("{written} bytes were written, the record holds {}", data.len());
        }
        data.truncate(written as usize);
        let offset = self.offset(&self.opened[index], at)?;
        let Open { inode, synced, .. } = self.opened[index].clone();
        if at.is_none() {
            self.opened[index].position = offset + data.len() as u64;
        }
        self.disk.write(inode, Write::Bytes { offset, data })?;
        if synced {
            self.disk.settle(inode, self.disk.mark(inode));
        }
        Ok(Event::Disk)
    }

    /// Where a write to the offset `at`, or else to where the file stands, begins.
    fn offset(&self, open: &Open, at: Option<i64>) -> Result<u64> {
        match at {
            Some(offset) => u64::try_from(offset).context("a write before the file's start"),
            None if open.append => Ok(self.disk.file(open.inode).map_or(0, |file| file.length)),
            None => Ok(open.position),
        }
    }
}

/// The id of the request that these bytes answer, if they are the beginning of an answer.
fn answer(bytes: &[u8]) -> Option<String> {
    if !bytes.starts_with(b"HTTP/1.") {
        return None;
    }
    let lower = bytes.to_ascii_lowercase();
    let head = &lower[..lower.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(lower.len())];
    let after =
        |header: &[u8]| Some(head.windows(header.len()).position(|window| window == header)? + header.len());
    let start = ID_HEADERS.into_iter().find_map(after)?;
    let end = bytes[start..].iter().position(|byte| *byte == b'\r')? + start;
    String::from_utf8(bytes[start..end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::trace;
    use super::*;

    fn replay(record: &str) -> Result<(Replay, Vec<Event>)> {
        let mut replay = Replay::new(Path::new("/d"), Heeded::All);
        let mut events = Vec::new();
        trace::read(record.as_bytes(), |moment| {
            events.push(replay.take(&moment)?);
            Ok(())
        })?;
        events.retain(|event| *event != Event::Other);
        Ok((replay, events))
    }

    /// The way an object is published: written aside, synced, linked, its directory synced, answered.
    const PUBLISHED: &str = concat!(
        "1 mkdir(\"/d/w\", 0777) = 0\n",
        "1 openat(AT_FDCWD, \"/d\", O_RDONLY|O_CLOEXEC) = 4\n",
        "1 fsync(4) = 0\n",
        "1 close(4) = 0\n",
        "1 openat(AT_FDCWD, \"/d/w/1#1\", O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0666) = 4\n",
        "1 write(4, \"ab\", 2) = 2\n",
        "1 write(4, \"cd\", 2 <unfinished ...>\n",
        "2 openat(AT_FDCWD, \"/elsewhere\", O_WRONLY|O_CREAT, 0666) = 5\n",
        "2 write(5, \"zz\", 2) = 2\n",
        "1 <... write resumed>) = 2\n",
        "1 fsync(4) = 0\n",
        "1 link(\"/d/w/1#1\", \"/d/w/1\") = 0\n",
        "2 openat(AT_FDCWD, \"/d/w\", O_RDONLY|O_CLOEXEC|O_DIRECTORY) = 6\n",
        "2 fsync(6) = 0\n",
        "1 unlink(\"/d/w/1#1\") = 0\n",
        "2 writev(9, [{iov_base=\"HTTP/1.1 204 No Content\\r\\nX-Ms-Client-Request-Id: w1-5\\r\\n\", iov_len=50}], 1) = 50\n",
    );

    #[test]
    fn a_published_object_is_durable_and_its_answer_seen() {
        let (replay, events) = replay(PUBLISHED).expect("every call is modelled");
        assert_eq!(events.last(), Some(&Event::Answer("w1-5".into())));
        let w = replay.disk.durable[&ROOT][b"w".as_slice()];
        let object = replay.disk.durable[&w][b"1".as_slice()];
        assert_eq!(replay.disk.file(object).expect("a file").durable, b"abcd");
        assert!(replay.disk.lookup(w, b"1#1").is_none());
        assert_eq!(replay.disk.pending.len(), 1, "only the removal of the staged name is not durable");
    }

    #[test]
    fn without_a_sync_of_the_directory_the_name_is_not_durable() {
        let record = PUBLISHED.replace("2 fsync(6) = 0\n", "");
        let (replay, _) = replay(&record).expect("every call is modelled");
        let w = replay.disk.durable[&ROOT][b"w".as_slice()];
        assert!(!replay.disk.durable.contains_key(&w));
    }

    #[test]
    fn a_name_whose_removal_is_recorded_after_that_of_its_directory_is_gone() {
        let record = concat!(
            "1 mkdir(\"/d/w\", 0777) = 0\n",
            "1 openat(AT_FDCWD, \"/d/w/1\", O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0666) = 4\n",
            "1 unlink(\"/d/w/1\" <unfinished ...>\n",
            "2 rmdir(\"/d/w\") = 0\n",
            "1 <... unlink resumed>) = 0\n",
        );
        let (after, _) = replay(record).expect("every call is modelled");
        assert!(after.disk.lookup(ROOT, b"w").is_none());
        let never_made = record.replace("/d/w/1\" <", "/d/v/1\" <");
        assert!(replay(&never_made).is_err(), "a directory that never was is a gap in the record");
    }

    #[test]
    fn what_is_not_modelled_is_refused() {
        for call in [
            "1 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4, 0) = 0x7f0000000000",
            "1 copy_file_range(4, NULL, 7, NULL, 10, 0) = 10",
            "1 truncate(\"/d/w/1\", 10) = 0",
            "1 io_uring_setup(8, {flags=0}) = 5",
            "1 rename(\"/d/w/1\", \"/tmp/1\") = 0",
        ] {
            assert!(replay(&format!("{PUBLISHED}{call}\n")).is_err(), "{call}");
        }
        assert!(
            replay(&format!(
                "{PUBLISHED}1 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 4, 0) = 0x7f0000000000\n"
            ))
            .is_ok()
        );
    }
}
