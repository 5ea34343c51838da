//! Mistakes in the fence, made on purpose: SQL that replaces `enter` by one that lets writes through.

const FENCE: &str = include_str!("../../../src/store/postgres/fence.sql");

/// The lock is taken and the row is read in one statement, so in the snapshot of before the lock.
pub const ONE_STATEMENT: &str = include_str!("../../mutants/one_statement.sql");

/// The fence as it is, but above READ COMMITTED the row is read without FOR SHARE, so in the old snapshot.
pub fn no_share() -> String {
    let (before, after) = FENCE.split_once(" for share;").expect("the fence reads the row FOR SHARE");
    assert!(!after.contains("for share;"), "there is one such place");
    format!("{before};{after}")
}
