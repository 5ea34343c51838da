//! `--metrics FILE`: what a command has counted, as text for Prometheus.
//!
//! The file is made for the textfile collector of Prometheus' node exporter, which reads the files `*.prom` of a folder at
//! any time. So the text is first written beside the file, under a name that does not end in `.prom`, and then gets the
//! file's name: a reader sees the old text or the new one, and never a part.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// Writes the text to the file.
pub(super) fn write(file: &Path, text: &str) -> Result<()> {
    let cannot = || format!("the command has ended, but its metrics cannot be written to {}", file.display());
    // A link or a device such as /dev/stdout would be replaced.
    let is_other = std::fs::symlink_metadata(file).is_ok_and(|there| !there.is_file());
    let Some(name) = file.file_name().filter(|_| !is_other) else {
        bail!("{}: it is not a file", cannot());
    };
    let mut beside = name.to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let part = file.with_file_name(beside);
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, file));
    if written.is_err() {
        // If this fails too, the first error says why.
        let _ = std::fs::remove_file(&part);
    }
    written.with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shards.prom");
        for text in ["old 1\n", "new 2\n"] {
            write(&file, text).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        let link = folder.path().join("link.prom");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for other in [folder.path(), link.as_path(), Path::new(".."), Path::new("/")] {
            let refused = write(other, "text").unwrap_err().to_string();
            assert!(refused.contains("it is not a file"), "{refused}");
        }
        assert!(write(&folder.path().join("none/shards.prom"), "text").is_err());
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["link.prom", "shards.prom"]);
    }
}
