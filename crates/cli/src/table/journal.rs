//! What a command has finished, in a file, so that it can go on after it was killed.
//!
//! The file has a JSON text on each line: first what the command is, then one line for each thing that it finished. A line
//! is on the disk before the command counts on it. If the last line is torn, it is cut off, and its work is done again.

use parking_lot::Mutex;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An open journal.
pub(crate) struct Journal {
    file: Mutex<File>,
    path: PathBuf,
}

impl Journal {
    /// Opens the journal at `path`, or begins it with the line `head`. Returns the lines after the first.
    ///
    /// Fails if another command made it: one with another head.
    pub(crate) fn open<L: DeserializeOwned>(path: &Path, head: &serde_json::Value) -> Result<(Self, Vec<L>)> {
        let cannot = || format!("cannot open {}", path.display());
        let mut file =
            File::options().read(true).append(true).create(true).open(path).with_context(cannot)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(cannot)?;
        let whole = whole_lines(&text);
        file.set_len(whole.len() as u64)?;
        file.seek(SeekFrom::End(0))?;
        let journal = Self { file: Mutex::new(file), path: path.to_owned() };
        let (found, lines) = lines(path, whole)?;
        match found {
            None => {
                journal.append(head)?;
                sync_folder(path)?;
            }
            Some(found) if found == *head => {}
            Some(found) => bail!(
                "{} belongs to another command: it says {found}, and this command would write {head}; take another place, \
                 or remove it",
                path.display()
            ),
        }
        Ok((journal, lines))
    }

    /// Reads a journal that another command has made: its first line, and the others. A torn last line does not count.
    pub(crate) fn read<L: DeserializeOwned>(path: &Path) -> Result<(serde_json::Value, Vec<L>)> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let (head, lines) = lines(path, whole_lines(&text))?;
        Ok((head.with_context(|| format!("{} is empty", path.display()))?, lines))
    }

    /// Adds a line. It is on the disk when this returns.
    pub(crate) fn append(&self, line: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let mut file = self.file.lock();
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Removes the file: the command is done.
    pub(crate) fn remove(self) -> Result<()> {
        std::fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }
}

/// The text without a torn last line.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &text[..end]
}

fn lines<L: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<(Option<serde_json::Value>, Vec<L>)> {
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate();
    let damaged = |number: usize| format!("line {} of {} is damaged", number + 1, path.display());
    let head =
        lines.next().map(|(number, line)| serde_json::from_slice(line).with_context(|| damaged(number)));
    let rest = lines.map(|(number, line)| serde_json::from_slice(line).with_context(|| damaged(number)));
    Ok((head.transpose()?, rest.collect::<Result<_>>()?))
}

/// Makes a change of the folder of `path` durable.
pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.with_context(|| format!("cannot make {} durable", folder.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_torn_line_is_cut_off_and_another_command_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("journal");
        let open = |head: &str| Journal::open::<u64>(&path, &json!(head));
        let (journal, lines) = open("a").expect("it is new");
        assert!(lines.is_empty());
        journal.append(&1).expect("there is room");
        journal.append(&2).expect("there is room");
        drop(journal);
        let whole = std::fs::read(&path).expect("it is there");
        std::fs::write(&path, &whole[..whole.len() - 1]).expect("there is room");
        let (journal, lines) = open("a").expect("it is ours");
        assert_eq!(lines, [1]);
        journal.append(&3).expect("there is room");
        assert_eq!(open("a").expect("it is ours").1, [1, 3]);
        let refused = open("b").err().expect("the head differs").to_string();
        assert!(refused.contains("\"a\"") && refused.contains("\"b\""), "{refused}");
    }
}
