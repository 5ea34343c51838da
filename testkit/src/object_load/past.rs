//! A writer of objects as it was earlier: what it knew at any moment of its run is made again from its journal.

use super::journal::Heard;
use super::writer::ObjectWriter;

impl ObjectWriter {
    /// This writer as it was after the first `answered` answers of its journal.
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
    use super::super::journal::Journal;
    use super::super::model::Op;
    use super::*;
    use crate::http::Answer;

    fn answer(id: &str) -> Answer {
        Answer {
            status: 200,
            headers: vec![("x-guploader-uploadid".to_owned(), id.to_owned())],
            body: String::new(),
        }
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
