//! What each answer told a writer of objects.

use std::collections::HashMap;

use super::model::Op;
use super::session::Session;
use crate::http::Answer;

/// The header with the id of an answer.
const ID_HEADER: &str = "x-guploader-uploadid";

/// What an answer told.
#[derive(Debug)]
pub(super) enum Heard {
    /// An operation was made; the generation that it made.
    Ended(Op, Option<u64>),
    /// An upload has begun.
    Began(Session),
    /// So many bytes of the upload are stored.
    Told(usize),
}

/// The answers that a writer got, from the first.
#[derive(Debug, Default)]
pub(super) struct Journal(pub(super) Vec<(String, Heard)>);

impl Journal {
    pub(super) fn note(&mut self, answer: &Answer, heard: Heard) {
        self.0.push((answer.header(ID_HEADER).unwrap_or_default(), heard));
    }

    /// The id of each answer, and how many answers before it had the same id.
    pub(super) fn answers(&self) -> impl Iterator<Item = (&str, usize)> {
        let mut times = HashMap::new();
        self.0.iter().map(move |(id, _)| {
            let before = times.entry(id.as_str()).or_insert(0);
            *before += 1;
            (id.as_str(), *before - 1)
        })
    }
}
