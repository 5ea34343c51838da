//! What each answer told a writer of objects. From it, what the writer knew at any moment of its run is made again.

use std::collections::HashMap;

use super::model::Op;
use super::writer::{ObjectWriter, Session};
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
pub(super) struct Journal(Vec<(String, Heard)>);

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

impl ObjectWriter {
    /// This writer as it was when it had `answered` of the answers in its journal.
    pub(super) fn as_of(&self, answered: usize) -> Self {
        let journal = self.journal.as_ref().map_or(&[][..], |journal| &journal.0);
        let mut then = Self::new(self.index, 0);
        for (_, heard) in &journal[..answered.min(journal.len())] {
            match heard {
                Heard::Ended(op, generation) => {
                    then.session = None;
                    then.took(op, *generation);
                }
                Heard::Began(session) => then.session = Some(session.clone()),
                Heard::Told(bytes) => {
                    if let Some(session) = &mut then.session {
                        session.told = *bytes;
                    }
                }
            }
        }
        then.pending = journal.iter().skip(answered).find_map(|(_, heard)| match heard {
            Heard::Ended(op, _) => Some(op.clone()),
            Heard::Began(_) | Heard::Told(_) => None,
        });
        then
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(id: &str) -> Answer {
        Answer { status: 200, headers: vec![(ID_HEADER.to_owned(), id.to_owned())], body: String::new() }
    }

    #[test]
    fn a_writer_as_it_was_waits_for_the_answer_that_came_next() {
        let put = |name: &str| Op::Put(name.to_owned(), "x".to_owned());
        let mut journal = Journal::default();
        journal.note(&answer("1"), Heard::Ended(put("w0/0"), Some(5)));
        journal.note(&answer("2"), Heard::Ended(put("w0/1"), Some(6)));
        journal.note(&answer("2"), Heard::Ended(Op::Delete("w0/0".to_owned()), None));
        assert_eq!(journal.answers().collect::<Vec<_>>(), [("1", 0), ("2", 0), ("2", 1)]);
        let mut writer = ObjectWriter::new(0, 1);
        writer.journal = Some(journal);
        assert_eq!(writer.as_of(0).pending, Some(put("w0/0")));
        assert_eq!(writer.as_of(2).pending, Some(Op::Delete("w0/0".to_owned())));
        assert_eq!(writer.as_of(3).pending, None);
    }
}
