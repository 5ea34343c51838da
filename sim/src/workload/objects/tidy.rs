//! Audits and walks over the buckets, in the middle of everything; and a look at all blobs at the end.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use rangehold_map::Key;
use rangehold_map::blob::{BlobId, Extent};
use rangehold_map::key::{BlobRow, ObjectGeneration, ObjectKey, ObjectRow};
use rangehold_protocol::object::generation::{Content, Generation, Head};
use rangehold_protocol::object::upload::Session;

use crate::check::blobs::{Blobs, Chunks, check};
use crate::client::Client;
use crate::workload::IN_THE_END;
use crate::world::{World, until_some};

/// Has the blobs audited again and again until `end`, while requests are under way.
pub async fn again_and_again(mut client: Client, end: Duration, think: (u64, u64)) {
    while client.world().now() < end {
        client.think(think.0, think.1).await;
        if let Some(process) = client.world().process(0) {
            // If the process ends, or the store fails, the next one goes on.
            let _ = process.tidy_objects().await;
        }
    }
}

/// Audits until nothing is wrong, and reports what is still wrong after a minute.
pub async fn at_last(world: &World) {
    let findings = std::sync::Mutex::new(vec!["the audit of blobs does not end when all is calm".to_owned()]);
    let tell = |found| *findings.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = found;
    let clean = until_some(IN_THE_END, || async {
        let process = world.process(0)?;
        if let Err(error) = process.tidy_objects().await.ok()? {
            tell(vec![format!("the blobs cannot be audited when all is calm: {error}")]);
            return None;
        }
        let blobs = gathered(&process.rows_of_objects().await?, &world.stored("blobs"));
        let found = check(&blobs);
        let clean = found.is_empty();
        tell(found);
        clean.then_some(())
    });
    if clean.await.is_none() {
        let findings = findings.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        findings.iter().for_each(|finding| world.found(format_args!("after the audit {finding}")));
    }
}

/// All that rows and files say of blobs.
fn gathered(rows: &[(Vec<u8>, Bytes)], files: &[String]) -> Blobs {
    let mut blobs = Blobs::default();
    let (mut kept, mut uploads) = (BTreeSet::new(), BTreeSet::new());
    let objects = || {
        rows.iter().filter_map(|(key, row)| match Key::decode(key) {
            Ok(Key::Object(object)) => Some((object, row)),
            _ => None,
        })
    };
    for (key, row) in objects() {
        let ObjectKey { bucket, name, row: sort } = key;
        match sort {
            ObjectRow::Head => {
                kept.extend(Head::decode(row).ok().map(|head| (bucket, name, head.live.id)));
            }
            ObjectRow::NotLive(_) => {
                kept.extend(Generation::decode(row).ok().map(|old| (bucket, name, old.id)));
            }
            ObjectRow::Upload(upload) => {
                let session = Session::decode(row).ok();
                session.iter().for_each(|session| name_all(&mut blobs.named, &session.progress.extents));
                uploads.insert((bucket, name.into_owned(), upload.into_owned()));
            }
            _ => {}
        }
    }
    for (key, row) in objects() {
        let ObjectRow::Content(ObjectGeneration(id)) = key.row else { continue };
        if kept.contains(&(key.bucket, key.name, ObjectGeneration(id)))
            && let Ok(Content::Extents(extents)) = Content::decode(row)
        {
            name_all(&mut blobs.named, &extents);
        }
    }
    for (key, _) in rows {
        match Key::decode(key) {
            Ok(Key::Blob { blob, row: BlobRow::State }) => drop(blobs.counted.insert(blob)),
            // An upload may have a blob of which no byte is saved yet.
            Ok(Key::Blob { blob, row: BlobRow::User(user) })
                if uploads.contains(&(user.bucket, user.name.clone(), user.upload.clone())) =>
            {
                blobs.named.entry(blob).or_default();
                blobs.growing.insert(blob);
            }
            _ => {}
        }
    }
    for (blob, chunk) in files.iter().filter_map(|file| chunk_in(file)) {
        blobs.files.entry(blob).or_default().insert(chunk);
    }
    blobs
}

fn name_all(named: &mut Chunks, extents: &[Extent]) {
    for extent in extents {
        named.entry(extent.blob).or_default().extend(extent.numbers());
    }
}

/// The blob and the number in the name of a chunk's file, `blobs/<id>/<n>.chunk`.
fn chunk_in(file: &str) -> Option<(BlobId, u32)> {
    let (blob, chunk) = file.strip_prefix("blobs/")?.split_once('/')?;
    let blob = u128::from_str_radix(blob, 16).ok()?;
    Some((BlobId(blob), chunk.strip_suffix(".chunk")?.parse().ok()?))
}
