//! Change records: which attempt at a split or a merge counts, or that none does.
//!
//! `changes/<range>/<generation>` is created once and never changed. Its creation is the commit point of the change that
//! would bring the range (in a merge, the left one) into that generation. Before it everything can be undone; after it
//! everything must be finished. A process that wants to undo the change creates the same record, with the word
//! `undone`. The store lets only the first of them create it.
//!
//! An epoch cannot do this: a split makes *new* databases, and the epoch of the parent does not say who may write to
//! those.

use std::collections::BTreeSet;
use std::sync::Arc;

use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use rangehold_map::{BucketId, TableId, Timestamp};
use serde::{Deserialize, Serialize};

use super::StepError;
use crate::error::Damaged;
use crate::range::Inheritance;
use crate::record_name::RecordName;
use crate::store::ObjectError;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The change was made by this attempt; the new ranges take this over.
    Done { attempt: u64, inheritance: Inheritance },
    /// The change is undone. It can never be made any more.
    Undone,
}

/// What came of an attempt to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decided {
    /// The record says what was asked for.
    ByUs,
    /// Another process was faster, and decided this.
    Before(Decision),
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase", deny_unknown_fields)]
enum RecordObject {
    Done {
        attempt: u64,
        high_water: i64,
        dropped: Vec<DroppedObject>,
        /// Left out if there are none, as in the records of releases without objects.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        closed: BTreeSet<BucketId>,
        /// Left out if there are none, too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fences: Vec<(BucketId, u64)>,
    },
    Undone,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DroppedObject {
    account: String,
    table: u64,
    at: i64,
}

/// What was decided; `None` if nothing was decided yet.
pub(crate) async fn read(
    record: RecordName,
    objects: &Arc<dyn ObjectStore>,
) -> Result<Option<Decision>, StepError> {
    let failed = ObjectError::while_doing("reading", &record);
    let bytes = match objects.get(&record.path()).await {
        Ok(got) => got.bytes().await.map_err(&failed)?,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(failed(error).into()),
    };
    let object: RecordObject = serde_json::from_slice(&bytes)
        .map_err(|error| Damaged::new(format!("the change record {record}: {error}")))?;
    Ok(Some(object.into()))
}

/// Decides, unless that was done before. After an error nobody knows whether it was decided: ask again.
pub(crate) async fn decide(
    record: RecordName,
    objects: &Arc<dyn ObjectStore>,
    decision: &Decision,
) -> Result<Decided, StepError> {
    let json = serde_json::to_vec(&RecordObject::from(decision)).expect("numbers and texts are JSON");
    match objects.put_opts(&record.path(), PutPayload::from(json), PutMode::Create.into()).await {
        Ok(_) => Ok(Decided::ByUs),
        // It may be our own: an earlier try may have worked, and its answer was lost.
        Err(object_store::Error::AlreadyExists { .. }) => match read(record, objects).await? {
            Some(there) if there == *decision => Ok(Decided::ByUs),
            Some(there) => Ok(Decided::Before(there)),
            None => Err(Damaged::new(format!("the change record {record} vanished")).into()),
        },
        Err(error) => Err(ObjectError::while_doing("creating", &record)(error).into()),
    }
}

impl From<RecordObject> for Decision {
    fn from(object: RecordObject) -> Self {
        match object {
            RecordObject::Undone => Self::Undone,
            RecordObject::Done { attempt, high_water, dropped, closed, fences } => Self::Done {
                attempt,
                inheritance: Inheritance {
                    high_water: Timestamp::from_ticks(high_water),
                    dropped: dropped
                        .into_iter()
                        .map(|table| (table.account, TableId(table.table), Timestamp::from_ticks(table.at)))
                        .collect(),
                    closed,
                    fences: fences.into_iter().collect(),
                },
            },
        }
    }
}

impl From<&Decision> for RecordObject {
    fn from(decision: &Decision) -> Self {
        match decision {
            Decision::Undone => Self::Undone,
            Decision::Done { attempt, inheritance } => Self::Done {
                attempt: *attempt,
                high_water: inheritance.high_water.ticks(),
                dropped: inheritance
                    .dropped
                    .iter()
                    .map(|(account, table, at)| DroppedObject {
                        account: account.clone(),
                        table: table.0,
                        at: at.ticks(),
                    })
                    .collect(),
                closed: inheritance.closed.clone(),
                fences: inheritance.fences.iter().map(|(bucket, fence)| (*bucket, *fence)).collect(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use rangehold_map::{Generation, RangeId};

    use super::*;

    #[tokio::test]
    async fn the_first_decision_counts_and_its_author_recognises_it() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let name = RecordName { range: RangeId(7), generation: Generation(4) };
        assert_eq!(read(name, &objects).await.unwrap(), None);
        let inheritance = Inheritance {
            high_water: Timestamp::from_ticks(17),
            dropped: vec![("a\u{1F980}".into(), TableId(3), Timestamp::from_ticks(5))],
            closed: BTreeSet::from([BucketId(9)]),
            fences: std::collections::BTreeMap::from([(BucketId(10), 3)]),
        };
        let done = Decision::Done { attempt: 2, inheritance };
        assert_eq!(decide(name, &objects, &done).await.unwrap(), Decided::ByUs);
        assert_eq!(decide(name, &objects, &done).await.unwrap(), Decided::ByUs, "a lost answer");
        assert_eq!(
            decide(name, &objects, &Decision::Undone).await.unwrap(),
            Decided::Before(done.clone()),
            "a process that comes to undo it learns that it is done"
        );
        assert_eq!(read(name, &objects).await.unwrap(), Some(done));
    }

    #[test]
    fn a_record_without_closed_buckets_is_as_it_was_before_there_were_any() {
        let json = r#"{"decision":"done","attempt":2,"high_water":17,"dropped":[]}"#;
        let object: RecordObject = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&object).unwrap(), json);
    }
}
