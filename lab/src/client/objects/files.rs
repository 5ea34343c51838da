//! The files, and whether a bucket has the same.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rangehold_testkit::http::{Connection, Request};
use rangehold_testkit::workspace::files;
use serde_json::Value;

/// Bytes of a file.
const BYTES: usize = 1024;
/// The files lie in so many folders.
const FOLDERS: u64 = 100;

/// Size, and CRC32C as the API writes it.
type Sums = BTreeMap<String, (u64, String)>;

/// Makes so many files of random bytes below a folder.
pub(super) fn make(folder: &Path, count: u64) -> Result<()> {
    for number in 0..FOLDERS {
        fs::create_dir_all(folder.join(format!("{number:02}")))?;
    }
    for number in 0..count {
        let mut bytes = [0_u8; BYTES];
        StdRng::seed_from_u64(number).fill(&mut bytes);
        let path = folder.join(format!("{:02}/{:06}", number % FOLDERS, number / FOLDERS));
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Files below a folder that have their names: a part of a download begins with a dot.
pub(super) fn whole_below(folder: &Path) -> Result<u64> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut count = 0;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            count += whole_below(&entry.path())?;
        } else if !entry.file_name().to_string_lossy().starts_with('.') {
            count += 1;
        }
    }
    Ok(count)
}

/// Fails if the bucket does not have exactly the files below `folder`, each with its size and CRC32C.
pub(super) fn compare_with_bucket(folder: &Path, address: SocketAddr, bucket: &str) -> Result<()> {
    compare(&sums_below(folder)?, &sums_in(address, bucket)?)
}

fn compare(here: &Sums, there: &Sums) -> Result<()> {
    for name in here.keys().chain(there.keys()) {
        let (here, there) = (here.get(name), there.get(name));
        ensure!(here == there, "{name} is {here:?} here and {there:?} in the bucket");
    }
    Ok(())
}

/// The files below a folder, by their names in the bucket.
fn sums_below(folder: &Path) -> Result<Sums> {
    let base = folder.file_name().context("the folder has a name")?.to_string_lossy().into_owned();
    let mut sums = Sums::new();
    for path in files(folder)?.into_keys() {
        let bytes = fs::read(folder.join(&path))?;
        let sum = STANDARD.encode(crc32c::crc32c(&bytes).to_be_bytes());
        sums.insert(format!("{base}/{}", path.display()), (bytes.len() as u64, sum));
    }
    Ok(sums)
}

/// The objects of a bucket, as its listing tells them.
fn sums_in(address: SocketAddr, bucket: &str) -> Result<Sums> {
    let (mut connection, mut sums, mut token) = (Connection::open(address)?, Sums::new(), String::new());
    loop {
        let fields = "fields=nextPageToken,items(name,size,crc32c)&prettyPrint=false";
        let target = format!("/storage/v1/b/{bucket}/o?{fields}&pageToken={}", token.replace('=', "%3D"));
        let answer = connection.send(&Request::new("GET", &target, &[], b""))?;
        ensure!(answer.status == 200, "{target} was answered {} {:.300}", answer.status, answer.body);
        let page: Value = serde_json::from_str(&answer.body)?;
        for item in page["items"].as_array().into_iter().flatten() {
            let text = |name: &str| item[name].as_str().with_context(|| format!("{item} has no {name}"));
            let size = text("size")?.parse()?;
            if sums.insert(text("name")?.to_owned(), (size, text("crc32c")?.to_owned())).is_some() {
                bail!("{item} was listed twice");
            }
        }
        match page["nextPageToken"].as_str() {
            Some(next) => token = next.to_owned(),
            None => return Ok(sums),
        }
    }
}

#[cfg(test)]
mod tests {
    use rangehold_testkit::workspace::scratch;

    use super::*;

    #[test]
    fn files_are_in_folders_and_parts_of_downloads_do_not_count() {
        let folder = scratch("lab-test-files").expect("a folder").join("files");
        assert_eq!(whole_below(&folder).expect("it is not there"), 0);
        make(&folder, 250).expect("files");
        assert_eq!(whole_below(&folder).expect("they can be counted"), 250);
        fs::write(folder.join("07/.0123-4.rangehold-part"), "x").expect("a file");
        assert_eq!(whole_below(&folder).expect("they can be counted"), 250);
        let sums = sums_below(&folder).expect("sums");
        assert_eq!(sums.len(), 251);
        assert_eq!(sums["files/07/.0123-4.rangehold-part"], (1, "qTxfkw==".to_owned()));
        assert_ne!(sums["files/00/000000"].1, sums["files/00/000001"].1);
    }

    #[test]
    fn a_file_that_is_missing_or_left_over_or_has_another_checksum_is_found() {
        let sums = |names: &[(&str, &str)]| -> Sums {
            names.iter().map(|(name, sum)| ((*name).to_owned(), (1024, (*sum).to_owned()))).collect()
        };
        let here = sums(&[("a", "AAAAAA=="), ("b", "BBBBBA==")]);
        assert!(compare(&here, &here).is_ok());
        for there in [
            sums(&[("a", "AAAAAA==")]),
            sums(&[("a", "AAAAAA=="), ("b", "CCCCCA==")]),
            sums(&[("a", "AAAAAA=="), ("b", "BBBBBA=="), ("c", "AAAAAA==")]),
        ] {
            assert!(compare(&here, &there).is_err(), "{there:?}");
        }
    }
}
