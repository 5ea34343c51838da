//! How far a command is: in numbers, and as a line for the person in front of it. Pure: the time is an argument.
//!
//! What is to be done comes from listings, of files and of objects, which go on while the first jobs run. So a total is *at least* what
//! was found until the last listing has ended. The bytes of a job count as passed when it has ended, whatever became of it, and
//! before that as far as they have moved.

use std::time::Duration;

use anyhow::Error;
use indicatif::{HumanBytes, HumanCount, HumanDuration};

/// The time after which a rate says something.
const RATE_AFTER: Duration = Duration::from_secs(1);

/// What became of one job.
#[derive(Debug)]
pub(super) enum Ended {
    /// It was done; so many bytes moved.
    Done(u64),
    /// Its target has these bytes already, or was to be left alone.
    Skipped,
    /// It was not begun, because another one failed before.
    NotBegun,
    /// The file or object that it was about, and why it failed.
    Failed(String, Error),
}

/// The counts of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Listings that have not ended.
    listings: usize,
    /// Jobs that the listings have given so far, and the bytes that they are about.
    found: u64,
    found_bytes: u64,
    /// The bytes of the jobs that have ended.
    passed_bytes: u64,
    /// The bytes that moved for those that were done.
    pub(super) bytes: u64,
    pub(super) done: u64,
    pub(super) skipped: u64,
    pub(super) not_begun: u64,
    pub(super) failed: u64,
}

impl Tally {
    /// So many listings begin, now or later.
    pub(super) fn expects(&mut self, listings: usize) {
        self.listings += listings;
    }

    /// A listing has ended.
    pub(super) fn listing_ended(&mut self) {
        self.listings = self.listings.saturating_sub(1);
    }

    /// A listing gave a job about so many bytes.
    pub(super) fn found(&mut self, bytes: u64) {
        self.found += 1;
        self.found_bytes += bytes;
    }

    /// A job about so many bytes, which was found before, has ended.
    pub(super) fn ended(&mut self, size: u64, ended: &Ended) {
        self.passed_bytes += size;
        match ended {
            Ended::Done(bytes) => {
                self.done += 1;
                self.bytes += bytes;
            }
            Ended::Skipped => self.skipped += 1,
            Ended::NotBegun => self.not_begun += 1,
            Ended::Failed(..) => self.failed += 1,
        }
    }

    /// A line that begins with `verb`. Jobs under way have moved `moving` bytes, and the command has run for `elapsed`.
    pub(super) fn line(&self, verb: &str, moving: u64, elapsed: Duration) -> String {
        let mut line = format!("{verb} {}", HumanCount(self.done));
        for (word, count) in [("skipped", self.skipped), ("failed", self.failed)] {
            if count > 0 {
                line += &format!(", {word} {}", HumanCount(count));
            }
        }
        let at_least = if self.listings > 0 { "at least " } else { "" };
        line += &format!(" of {at_least}{}", HumanCount(self.found));
        let passed = self.passed_bytes + moving;
        if self.found_bytes > 0 {
            let passed = HumanBytes(passed.min(self.found_bytes));
            line += &format!(", {passed} of {at_least}{}", HumanBytes(self.found_bytes));
        } else if moving > 0 {
            line += &format!(", {} so far", HumanBytes(moving));
        }
        let moved = self.bytes + moving;
        if elapsed < RATE_AFTER {
            return line;
        }
        let per_second = |count: u64| count as f64 / elapsed.as_secs_f64();
        if moved > 0 {
            line += &format!(", {}/s", HumanBytes(per_second(moved) as u64));
        } else if self.done > 0 {
            line += &format!(", {}/s", HumanCount(per_second(self.done) as u64));
        }
        let ended = self.done + self.skipped + self.not_begun + self.failed;
        let bytes_left = left(self.found_bytes.saturating_sub(passed), per_second(moved));
        // Many small files take longer than one file with as many bytes.
        let jobs_left = left(self.found.saturating_sub(ended), per_second(self.done));
        match bytes_left.max(jobs_left) {
            Some(left) if self.listings == 0 => line + &format!(", {:#} left", HumanDuration(left)),
            _ => line,
        }
    }
}

/// How long the rest takes at this rate; `None` if there is no rest, or nothing has been done yet.
fn left(rest: u64, per_second: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(rest as f64 / per_second).ok().filter(|_| rest > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn line(tally: &Tally, moving: u64, seconds: u64) -> String {
        tally.line("copied", moving, Duration::from_secs(seconds))
    }

    #[test]
    fn the_total_is_what_was_found_and_grows_until_the_last_listing_has_ended() {
        let mut tally = Tally::default();
        tally.expects(2);
        assert_eq!(line(&tally, 0, 0), "copied 0 of at least 0");
        tally.found(3 * MIB);
        tally.found(MIB);
        tally.listing_ended();
        assert_eq!(line(&tally, 0, 0), "copied 0 of at least 2, 0 B of at least 4.00 MiB");
        tally.found(4 * MIB);
        tally.listing_ended();
        assert_eq!(line(&tally, 0, 0), "copied 0 of 3, 0 B of 8.00 MiB");
    }

    #[test]
    fn bytes_count_as_they_move_and_files_that_are_skipped_or_failed_are_passed_too() {
        let mut tally = Tally::default();
        for size in [4 * MIB, 2 * MIB, MIB, MIB] {
            tally.found(size);
        }
        // Half of the first file has moved, in two seconds.
        assert_eq!(line(&tally, 2 * MIB, 2), "copied 0 of 4, 2.00 MiB of 8.00 MiB, 1.00 MiB/s, 6s left");
        tally.ended(2 * MIB, &Ended::Skipped);
        assert_eq!(
            line(&tally, 2 * MIB, 2),
            "copied 0, skipped 1 of 4, 4.00 MiB of 8.00 MiB, 1.00 MiB/s, 4s left"
        );
        tally.ended(MIB, &Ended::Failed("a".to_owned(), anyhow::anyhow!("there is no room")));
        tally.ended(4 * MIB, &Ended::Done(4 * MIB));
        assert_eq!(
            line(&tally, 0, 4),
            "copied 1, skipped 1, failed 1 of 4, 7.00 MiB of 8.00 MiB, 1.00 MiB/s, 4s left"
        );
        tally.ended(MIB, &Ended::NotBegun);
        assert_eq!(
            line(&tally, 0, 4),
            "copied 1, skipped 1, failed 1 of 4, 8.00 MiB of 8.00 MiB, 1.00 MiB/s"
        );
        let counts = (tally.done, tally.skipped, tally.failed, tally.not_begun, tally.bytes);
        assert_eq!(counts, (1, 1, 1, 1, 4 * MIB));
    }

    #[test]
    fn jobs_without_bytes_and_input_of_unknown_size_have_lines_too() {
        let mut tally = Tally::default();
        for _ in 0..1_500 {
            tally.found(0);
        }
        for _ in 0..1_234 {
            tally.ended(0, &Ended::Done(0));
        }
        assert_eq!(tally.line("moved", 0, Duration::from_secs(9)), "moved 1,234 of 1,500, 137/s, 2s left");
        let mut input = Tally::default();
        input.found(0);
        assert_eq!(line(&input, 512 * KIB, 2), "copied 0 of 1, 512.00 KiB so far, 256.00 KiB/s");
    }

    #[test]
    fn the_rest_takes_as_long_as_its_files_where_these_are_small() {
        let mut tally = Tally::default();
        tally.found(64 * MIB);
        (0..300).for_each(|_| tally.found(KIB));
        tally.ended(64 * MIB, &Ended::Done(64 * MIB));
        (0..99).for_each(|_| tally.ended(KIB, &Ended::Done(KIB)));
        assert_eq!(line(&tally, 0, 10), "copied 100 of 301, 64.10 MiB of 64.29 MiB, 6.41 MiB/s, 20s left");
    }

    #[test]
    fn no_more_is_passed_than_was_found() {
        let mut tally = Tally::default();
        tally.found(MIB);
        tally.ended(MIB, &Ended::Done(MIB));
        // The bytes of a job that has just ended are still among those that move.
        assert_eq!(line(&tally, MIB, 0), "copied 1 of 1, 1.00 MiB of 1.00 MiB");
    }
}
