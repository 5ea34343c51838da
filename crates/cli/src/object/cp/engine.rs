//! What a copy is about, and what all copies of a command share.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use rangehold_client::bulk::Gate;
use rangehold_client::object::{Bucket, Object};
use tokio::sync::Semaphore;

use super::entry::{Body, Entry};
use crate::object::limits::LARGE_AT_ONCE;
use crate::object::moving::Flow;

/// What a copy writes.
#[derive(Clone)]
pub(in crate::object) enum To {
    Path(PathBuf),
    Object(Bucket, String),
}

/// What is known of the target.
#[derive(Debug, Clone)]
pub(in crate::object) enum Existing {
    /// Nobody has looked.
    Unknown,
    /// There was nothing a moment ago.
    Nothing,
    /// This.
    There(Body),
}

/// One file or object to copy.
pub(in crate::object) struct Job {
    pub(in crate::object) from: Entry,
    /// The bucket of the source, if it is an object.
    pub(in crate::object) bucket: Option<Bucket>,
    pub(in crate::object) to: To,
    pub(in crate::object) existing: Existing,
}

/// What all jobs of a command share.
pub(in crate::object) struct Engine {
    pub(in crate::object) gate: Gate,
    /// The bytes that have moved.
    pub(in crate::object) flow: Flow,
    pub(in crate::object) at_once: usize,
    pub(in crate::object) no_clobber: bool,
    pub(in crate::object) continue_on_error: bool,
    /// The media type of what goes up; `None` goes by the name's ending.
    pub(in crate::object) content_type: Option<String>,
    /// Where sessions of uploads are remembered.
    pub(in crate::object) sessions: Option<PathBuf>,
    /// Removes the source once it is copied.
    pub(in crate::object) moves: bool,
    /// Lets a few large files be moved at the same time.
    pub(in crate::object) large: Semaphore,
    pub(in crate::object) stop: AtomicBool,
}

impl Engine {
    pub(in crate::object) fn new(gate: Gate, flow: Flow, at_once: usize) -> Self {
        Self {
            gate,
            flow,
            at_once,
            no_clobber: false,
            continue_on_error: false,
            content_type: None,
            sessions: None,
            moves: false,
            large: Semaphore::new(LARGE_AT_ONCE),
            stop: AtomicBool::new(false),
        }
    }
}

/// The object at the target.
pub(super) async fn look(bucket: &Bucket, name: &str, existing: Existing) -> Result<Option<Object>> {
    match existing {
        Existing::Nothing => Ok(None),
        Existing::There(Body::Object(object)) => Ok(Some(*object)),
        Existing::There(Body::File { .. }) => bail!("the target is an object, and a file was found"),
        Existing::Unknown => Ok(bucket.stat(name, None).await?),
    }
}
