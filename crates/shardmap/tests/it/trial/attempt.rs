//! An attempt of a writer to write some rows, and what became of it.

use std::fmt;

/// The codes of a session that was ended from outside: by the server, or by a pooler that lost the server's session.
const ENDED: [&str; 2] = ["57P01", "08P01"];
/// The end of a session, if the driver has read it between two requests: the next one finds the connection closed, and has
/// no code.
const CLOSED_AT_COMMIT: &str = "ours: OutcomeUnknown of a closed connection";
/// How the words of a plain client end whose session was ended at its COMMIT.
pub const AT_COMMIT: &str = " at COMMIT";
/// How a line begins that tells of an attempt.
const LINE: &str = "attempt\t";

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Written,
    Refused,
    Unknown,
}

/// An attempt.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub n: i64,
    pub rows: i64,
    pub outcome: Outcome,
    pub door: String,
    pub tenant: i64,
    /// Microseconds since 1970.
    pub began: i64,
    /// Microseconds since 1970.
    pub ended: i64,
    /// How long the writer paused meanwhile, in microseconds.
    pub pause: i64,
    /// The name of its error.
    pub what: String,
}

impl Attempt {
    /// How long it took, without the pause of the writer.
    pub fn waited(&self) -> i64 {
        self.ended - self.began - self.pause
    }

    /// Whether nobody can tell if it was done, because its session was ended. A drain may end a session while its COMMIT is
    /// under way. Then nobody can tell which came first.
    pub fn was_ended(&self) -> bool {
        let ends = |end: &&str| self.what.ends_with(*end);
        self.what == CLOSED_AT_COMMIT || ends(&AT_COMMIT) || ENDED.iter().any(ends)
    }

    /// An attempt from its line. `None` for another line.
    pub fn read(line: &str) -> Option<Self> {
        let (_, fields) = line.split_once(LINE)?;
        let [n, rows, outcome, door, tenant, began, ended, pause, what] =
            fields.split('\t').collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let outcome = [Outcome::Written, Outcome::Refused, Outcome::Unknown]
            .into_iter()
            .find(|one| format!("{one:?}") == outcome)?;
        let number = |text: &str| text.parse().ok();
        let (n, rows, tenant) = (number(n)?, number(rows)?, number(tenant)?);
        let (began, ended, pause) = (number(began)?, number(ended)?, number(pause)?);
        let (door, what) = (door.to_owned(), what.to_owned());
        Some(Self { n, rows, outcome, door, tenant, began, ended, pause, what })
    }
}

impl fmt::Display for Attempt {
    /// One line, which [`Attempt::read`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n, rows, outcome, door, tenant, began, ended, pause, what } = self;
        let what = what.replace(['\t', '\n'], " ");
        write!(f, "{LINE}{n}\t{rows}\t{outcome:?}\t{door}\t{tenant}\t{began}\t{ended}\t{pause}\t{what}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let (door, what) = ("Copy".to_owned(), "ours: Lost\n08P01".to_owned());
        let outcome = Outcome::Unknown;
        let one = Attempt { n: 7, rows: 2, outcome, door, tenant: 3, began: 10, ended: 25, pause: 4, what };
        let line = one.to_string();
        let read = Attempt::read(&format!("test a ... {line}")).unwrap();
        assert_eq!((read.to_string(), read.waited(), read.was_ended()), (line, 11, true));
        assert!(Attempt::read("running 1 test").is_none());
    }
}
