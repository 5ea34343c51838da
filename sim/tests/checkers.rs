//! The checkers fail on bad histories, and only on those.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use rangehold_map::blob::BlobId;
use rangehold_map::{RangeId, RangeMap};
use rangehold_sim::check::bank::{self, Account};
use rangehold_sim::check::blobs::{self, Blobs, Chunks};
use rangehold_sim::check::etags::{self, Sight};
use rangehold_sim::check::ids;
use rangehold_sim::check::ledger::{self, Batch, Fate, Row};
use rangehold_sim::check::pages::{self, Walk};
use rangehold_sim::check::register::{self, Call, Expected, Operation, Return, Value, Verdict};

/// A history in short: who, from when, until when, what, and what was told.
fn history(lines: &[(&str, u64, u64, Call, Return)]) -> Vec<Operation> {
    lines
        .iter()
        .map(|&(who, begun, ended, call, told)| Operation {
            who: who.to_owned(),
            call,
            begun: Duration::from_millis(begun),
            told,
            ended: Duration::from_millis(ended),
        })
        .collect()
}

fn is_good(lines: &[(&str, u64, u64, Call, Return)]) -> bool {
    match register::check(&history(lines)) {
        Verdict::Linearizable => true,
        Verdict::Not(_) => false,
        Verdict::Undecided => panic!("this history can be decided"),
    }
}

use Call::{Delete, Insert, Read, Replace, Upsert};
use Return::{Done, Exists, Mismatch, Missing, Unknown};

const fn value(value: Value) -> Return {
    Return::Value(Some(value))
}

const NONE: Return = Return::Value(None);

#[test]
fn a_stale_read_is_found() {
    let write_then =
        |told| [("a", 0, 10, Upsert(1), Done), ("a", 20, 30, Upsert(2), Done), ("b", 40, 50, Read, told)];
    assert!(is_good(&write_then(value(2))));
    assert!(!is_good(&write_then(value(1))));
    assert!(!is_good(&write_then(NONE)));
    // While the second write is under way, either may be read, but not back again.
    let during = |first, second| {
        [
            ("a", 0, 10, Upsert(1), Done),
            ("a", 20, 90, Upsert(2), Done),
            ("b", 40, 50, Read, first),
            ("b", 60, 70, Read, second),
        ]
    };
    assert!(is_good(&during(value(1), value(2))));
    assert!(!is_good(&during(value(2), value(1))));
}

#[test]
fn a_lost_write_is_found() {
    assert!(!is_good(&[("a", 0, 10, Insert(1), Done), ("b", 20, 30, Insert(2), Done)]));
    assert!(is_good(&[("a", 0, 10, Insert(1), Done), ("b", 20, 30, Insert(2), Exists)]));
    assert!(!is_good(&[("a", 0, 10, Insert(1), Done), ("b", 20, 30, Delete(Expected::Any), Missing)]));
}

#[test]
fn a_write_that_was_made_twice_is_found() {
    // Told that it exists: but nobody else had written it.
    assert!(!is_good(&[("a", 0, 10, Insert(1), Exists), ("b", 20, 30, Read, value(1))]));
    // Its second arrival undoes a later write.
    assert!(!is_good(&[
        ("a", 0, 10, Upsert(1), Done),
        ("b", 20, 30, Upsert(2), Done),
        ("b", 40, 50, Read, value(1)),
    ]));
}

#[test]
fn a_condition_that_did_not_hold_is_found() {
    let conditional = |expected, told| {
        [
            ("a", 0, 10, Upsert(1), Done),
            ("b", 20, 30, Upsert(2), Done),
            ("a", 40, 50, Replace(3, expected), told),
        ]
    };
    assert!(is_good(&conditional(Expected::Is(2), Done)));
    assert!(is_good(&conditional(Expected::Is(1), Mismatch)));
    assert!(is_good(&conditional(Expected::Any, Done)));
    assert!(!is_good(&conditional(Expected::Is(1), Done)));
    assert!(!is_good(&conditional(Expected::Is(2), Mismatch)));
    assert!(!is_good(&conditional(Expected::Any, Missing)));
}

#[test]
fn what_nobody_knows_may_come_late_or_never() {
    let unknown = |reads: [Return; 3]| {
        [
            ("a", 0, 10, Upsert(1), Done),
            ("b", 20, 20, Upsert(2), Unknown),
            ("a", 30, 40, Read, reads[0]),
            ("a", 50, 60, Read, reads[1]),
            ("a", 70, 80, Read, reads[2]),
        ]
    };
    assert!(is_good(&unknown([value(1), value(1), value(1)])));
    assert!(is_good(&unknown([value(1), value(2), value(2)])));
    assert!(!is_good(&unknown([value(1), value(2), value(1)])), "not back again");
    // Not before it was asked for.
    assert!(!is_good(&[("a", 0, 10, Read, value(2)), ("b", 20, 20, Upsert(2), Unknown)]));
}

/// Operations that take place at random moments between their calls and returns.
fn true_history(most: usize) -> impl Strategy<Value = Vec<Operation>> {
    let step = (0u64..4, 0u64..40, 0u64..40, 0u8..6, any::<bool>(), any::<bool>());
    prop::collection::vec(step, 1..most).prop_map(|steps| {
        let (mut now, mut state, mut seen) = (0, None::<Value>, 0);
        let mut operations = Vec::new();
        for (number, (who, before, after, kind, any, known)) in steps.into_iter().enumerate() {
            now += 5;
            let new = number as u64 + 1;
            let expected = if any { Expected::Any } else { Expected::Is(seen) };
            let call = match kind {
                0 | 1 => Read,
                2 => Insert(new),
                3 => Upsert(new),
                4 => Replace(new, expected),
                _ => Delete(expected),
            };
            let fits = expected == Expected::Any || state.is_none_or(|there| Expected::Is(there) == expected);
            let (told, next) = match (call, state) {
                (Read, state) => (Return::Value(state), state),
                (Insert(_), Some(_)) => (Exists, state),
                (Insert(_), None) | (Upsert(_), _) => (Done, Some(new)),
                (Replace(..) | Delete(_), None) => (Missing, None),
                (Replace(..) | Delete(_), _) if !fits => (Mismatch, state),
                (Replace(..), _) => (Done, Some(new)),
                (Delete(_), _) => (Done, None),
            };
            // Some of unknown outcome took place, and some did not.
            let unknown = !known && call != Read;
            if !unknown || any {
                state = next;
            }
            seen = state.unwrap_or(seen);
            operations.push(Operation {
                who: who.to_string(),
                call,
                begun: Duration::from_millis(1_000 + now - before),
                told: if unknown { Unknown } else { told },
                ended: Duration::from_millis(1_000 + now + after),
            });
        }
        operations
    })
}

proptest! {
    #[test]
    fn what_happened_in_some_order_is_linearizable(operations in true_history(40)) {
        prop_assert_eq!(register::check(&operations), Verdict::Linearizable);
    }

    #[test]
    fn a_value_from_nowhere_is_found(operations in true_history(16), which in any::<prop::sample::Index>()) {
        let mut operations = operations;
        let which = which.index(operations.len());
        operations[which].call = Read;
        operations[which].told = value(99_999);
        prop_assert!(matches!(register::check(&operations), Verdict::Not(_)));
    }
}

/// Short histories that nobody lived through: most of them have no order.
fn some_history() -> impl Strategy<Value = Vec<Operation>> {
    let expected = prop_oneof![Just(Expected::Any), (1u64..4).prop_map(Expected::Is)];
    let told = prop_oneof![
        Just(Unknown),
        Just(Done),
        Just(Exists),
        Just(Missing),
        Just(Mismatch),
        Just(Return::NotMet)
    ];
    let read = prop_oneof![Just(NONE), (1u64..7).prop_map(value)];
    let step = (0u8..6, expected, told, read, 0u64..30, 1u64..15);
    prop::collection::vec(step, 1..7).prop_map(|steps| {
        let operation = |(number, (kind, expected, told, read, begun, takes))| {
            let new = number as u64 + 1;
            let (call, told) = match kind {
                0 | 1 => (Read, read),
                2 => (Insert(new), told),
                3 => (Upsert(new), told),
                4 => (Replace(new, expected), told),
                _ => (Delete(expected), told),
            };
            ("a", begun, begun + takes, call, told)
        };
        history(&steps.into_iter().enumerate().map(operation).collect::<Vec<_>>())
    })
}

/// What the operation makes of a value, if what was told fits.
fn effect(operation: &Operation, state: Option<Value>) -> Option<Option<Value>> {
    let met =
        |expected| state.is_some_and(|there| expected == Expected::Any || expected == Expected::Is(there));
    let refusal = if state.is_none() { Missing } else { Mismatch };
    let (told, after) = match operation.call {
        Read => (Return::Value(state), state),
        Insert(value) if state.is_none() => (Done, Some(value)),
        Insert(_) => (Exists, state),
        Upsert(value) => (Done, Some(value)),
        Replace(value, expected) if met(expected) => (Done, Some(value)),
        Delete(expected) if met(expected) => (Done, None),
        Replace(..) | Delete(_) => (refusal, state),
    };
    let fits = match operation.told {
        Unknown => true,
        Return::NotMet => matches!(told, Missing | Mismatch),
        known => known == told,
    };
    fits.then_some(after)
}

/// Whether some order explains the operations that are left, found by trying all of them.
fn has_order(left: &[Operation], state: Option<Value>) -> bool {
    let known = || left.iter().filter(|operation| operation.told != Unknown);
    let Some(first_end) = known().map(|operation| operation.ended).min() else { return true };
    (0..left.len()).filter(|&at| left[at].begun <= first_end).any(|at| {
        let mut rest = left.to_vec();
        effect(&rest.remove(at), state).is_some_and(|after| has_order(&rest, after))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]
    #[test]
    fn a_history_is_judged_as_by_trying_all_orders(operations in some_history()) {
        let is_good = register::check(&operations) == Verdict::Linearizable;
        prop_assert_eq!(is_good, has_order(&operations, None));
    }
}

/// Reads of one value at the same time, and deletions of which nobody knows whether they took place, have very many orders.
#[test]
fn a_short_history_with_very_many_orders_is_decided() {
    let unknown = |at, call| ("a", at, at, call, Unknown);
    let mut lines = vec![unknown(5, Upsert(1)), unknown(10, Insert(2))];
    lines.extend((3..9).map(|number| unknown(number * 5, Delete(Expected::Any))));
    lines.extend([
        unknown(45, Insert(8)),
        ("a", 45, 48, Read, NONE),
        ("a", 48, 50, Insert(10), Done),
        ("a", 48, 77, Read, value(10)),
        unknown(60, Insert(12)),
        ("a", 48, 65, Read, value(10)),
        unknown(70, Insert(14)),
        ("a", 75, 104, Replace(15, Expected::Is(10)), Done),
        unknown(80, Upsert(16)),
        ("a", 77, 104, Read, value(15)),
        ("a", 90, 90, Delete(Expected::Any), Done),
    ]);
    lines.extend((0..7).map(|number| ("a", 90 + number, 104 + 3 * number, Read, NONE)));
    assert!(is_good(&lines));
    lines.push(("b", 130, 140, Read, value(10)));
    assert!(!is_good(&lines), "10 was overwritten");
}

#[test]
fn a_long_history_with_many_unknown_outcomes_is_decided() {
    let mut lines = Vec::new();
    for round in 0..600 {
        let at = round * 10;
        let told = if round % 10 == 0 { Unknown } else { Done };
        lines.push(("a", at, at + 5, Upsert(round + 1), told));
        let last = if round % 20 == 0 || told == Done { value(round + 1) } else { value(round) };
        lines.push(("b", at + 6, at + 9, Read, last));
    }
    assert!(is_good(&lines));
    lines.push(("b", 7_000, 7_001, Read, value(3)));
    assert!(!is_good(&lines), "a value that was overwritten does not come back");
}

fn sight(begun: u64, ended: u64, tag: u64, value: Value) -> Sight {
    Sight { begun: Duration::from_millis(begun), ended: Duration::from_millis(ended), tag, value }
}

#[test]
fn tags_that_go_back_are_found() {
    assert_eq!(
        etags::check(&[sight(0, 10, 5, 1), sight(20, 30, 6, 2), sight(40, 50, 6, 2)]),
        Vec::<String>::new()
    );
    // At the same time either may come first.
    assert_eq!(etags::check(&[sight(0, 30, 6, 2), sight(20, 50, 5, 1)]), Vec::<String>::new());
    for bad in [
        [sight(0, 10, 6, 2), sight(20, 30, 5, 1)],
        [sight(0, 10, 5, 1), sight(20, 30, 5, 2)],
        [sight(0, 10, 5, 1), sight(20, 30, 6, 1)],
    ] {
        assert_eq!(etags::check(&bad).len(), 1, "{bad:?}");
    }
}

#[test]
fn an_id_that_may_be_given_again_is_found() {
    let map = |version, next| RangeMap::new(version, RangeId(next), Vec::new());
    assert_eq!(ids::given_again(&map(1, 4), &map(2, 4)), []);
    assert_eq!(ids::given_again(&map(1, 4), &map(2, 6)), []);
    assert_eq!(ids::given_again(&map(2, 6), &map(3, 4)), [RangeId(4), RangeId(5)]);
}

/// What the checker of the bank says about two accounts, each `(value, number, partner, partner's number)`, of which
/// one transfer of the first and two of the second were acknowledged.
fn bank_of(accounts: [(u64, u64, usize, u64); 2]) -> String {
    let accounts = accounts.map(|(value, number, partner, partner_number)| Account {
        value,
        number,
        partner,
        partner_number,
    });
    bank::check(&accounts, &[1, 2], 200).unwrap_or_default()
}

#[test]
fn a_bank_that_loses_or_halves_a_transfer_is_found() {
    for (accounts, finding) in [
        ([(90, 1, 1, 2), (110, 2, 0, 1)], ""),
        // A transfer that was not acknowledged in time may be there.
        ([(90, 2, 1, 3), (110, 3, 0, 2)], ""),
        (
            [(90, 1, 1, 2), (111, 2, 0, 1)],
            "the bank holds 201 in 2 accounts, and should hold 200 in 2: [90, 111]",
        ),
        (
            [(100, 0, 0, 0), (100, 2, 0, 0)],
            "transfer 1 of account 0 was acknowledged, and the bank shows 0 transfers of it",
        ),
        (
            [(90, 1, 1, 1), (110, 1, 0, 1)],
            "transfer 2 of account 1 was acknowledged, and the bank shows 1 transfers of it",
        ),
        ([(90, 2, 1, 3), (110, 2, 0, 1)], "the bank shows transfer 2 of account 0 and not its other half"),
        ([(90, 1, 1, 2), (110, 2, 7, 1)], "the bank shows transfer 2 of account 1 and not its other half"),
    ] {
        assert_eq!(bank_of(accounts), finding);
    }
    assert_eq!(
        bank::check(&[], &[0], 100).unwrap(),
        "the bank holds 0 in 0 accounts, and should hold 100 in 1: []"
    );
}

/// The ledger of the next test: batch 1 replaces batch 0, nobody knows of batch 2 whether it was made, batch 3 was
/// refused. Only batch 0 was acknowledged `before` the page was asked for.
fn batches(before: bool) -> Vec<Batch> {
    let batch = |partition, fate, replaced_by| Batch { partition, rows: 2, fate, replaced_by };
    let later = if before { Fate::Open } else { Fate::Written };
    vec![
        batch(0, Fate::Written, Some(1)),
        batch(0, later, None),
        batch(0, Fate::Open, None),
        batch(0, if before { Fate::Open } else { Fate::NotWritten }, None),
        batch(1, Fate::Written, None),
    ]
}

#[test]
fn a_ledger_that_breaks_a_batch_is_found() {
    let none: &[&str] = &[];
    for (rows, findings) in [
        // Rows as `(batch, number)`, all in partition 0.
        (&[(0, 0), (0, 1)][..], none),
        (&[(1, 0), (1, 1)], none),
        (&[(1, 0), (1, 1), (2, 0), (2, 1)], none),
        (&[(1, 0)], &["batch 1 of the ledger shows 1 of its 2 rows"]),
        (&[], &["batch 0 of the ledger was acknowledged, and neither it nor what replaces it is there"]),
        (
            &[(0, 0), (0, 1), (1, 0), (1, 1)],
            &["batches [0, 1] of the ledger replace each other, and all are there"],
        ),
        (&[(0, 0), (0, 1), (3, 0), (3, 1)], &["batch 3 of the ledger was refused and is there"]),
        (
            &[(0, 0), (0, 1), (9, 0)],
            &["Row { partition: 0, batch: 9, number: 0 } of the ledger was never written"],
        ),
        (&[(0, 0), (0, 2)], &["Row { partition: 0, batch: 0, number: 2 } of the ledger was never written"]),
        (
            &[(0, 0), (0, 1), (4, 0)],
            &["Row { partition: 0, batch: 4, number: 0 } of the ledger was never written"],
        ),
    ] {
        let rows: Vec<Row> =
            rows.iter().map(|&(batch, number)| Row { partition: 0, batch, number }).collect();
        assert_eq!(ledger::check(&batches(true), &batches(false), Some(0), &rows), findings, "{rows:?}");
    }
    // In the whole table the other partition counts too.
    let rows = [0, 1].map(|number| Row { partition: 0, batch: 0, number });
    assert_eq!(
        ledger::check(&batches(true), &batches(false), None, &rows),
        ["batch 4 of the ledger was acknowledged and is not there"]
    );
}

#[test]
fn pages_that_lose_or_repeat_a_row_are_found() {
    let none: &[&str] = &[];
    let keys = |rows: &str| rows.chars().map(|row| ("p".to_owned(), row.to_string())).collect::<Vec<_>>();
    // The rows b, d and f are there all the time; c comes and goes.
    for (seen, ended, findings) in [
        ("bdf", true, none),
        ("bcdf", true, none),
        ("b", false, none),
        ("", false, none),
        ("b", true, &["does not show (\"p\", \"d\")", "does not show (\"p\", \"f\")"]),
        ("bf", false, &["does not show (\"p\", \"d\")"]),
        ("bbdf", true, &["shows (\"p\", \"b\") before (\"p\", \"b\")"]),
        ("bdcf", true, &["shows (\"p\", \"d\") before (\"p\", \"c\")"]),
        ("bdef", true, &["shows (\"p\", \"e\"), which was never written"]),
    ] {
        let walk = Walk { seen: keys(seen), ended };
        assert_eq!(pages::check(&walk, &keys("bdf"), |(_, row)| row == "c"), findings, "{seen}");
    }
}

#[test]
fn a_chunk_that_is_lost_or_left_over_is_found() {
    let chunks = |all: &[(u128, &[u32])]| -> Chunks {
        all.iter().map(|(blob, numbers)| (BlobId(*blob), numbers.iter().copied().collect())).collect()
    };
    let id = |blob| BlobId(blob).to_string();
    // Blob 1 is needed, with its chunks 0 and 2.
    for (counted, files, findings) in [
        (&[1][..], &[(1, &[0, 2][..])][..], Vec::new()),
        (&[1], &[(1, &[0, 1, 2])], vec![format!("chunk 1 of blob {} is not named by any row", id(1))]),
        (&[1], &[(1, &[0])], vec![format!("chunk 2 of blob {} is needed and is not there", id(1))]),
        (&[], &[(1, &[0, 2])], vec![format!("blob {} is needed and has no row", id(1))]),
        (&[1, 5], &[(1, &[0, 2])], vec![format!("blob {} has a row and is not used", id(5))]),
        (&[1], &[(1, &[0, 2]), (5, &[0])], vec![format!("blob {} has files and is not used", id(5))]),
    ] {
        let counted = counted.iter().map(|blob| BlobId(*blob)).collect();
        let (named, files) = (chunks(&[(1, &[0, 2])]), chunks(files));
        let blobs = Blobs { named, counted, growing: BTreeSet::new(), files };
        assert_eq!(blobs::check(&blobs), findings);
    }
    // An upload that goes on may name chunk 1 with its next row.
    let (named, files) = (chunks(&[(1, &[0, 2])]), chunks(&[(1, &[0, 1, 2])]));
    let ids = BTreeSet::from([BlobId(1)]);
    assert!(blobs::check(&Blobs { named, counted: ids.clone(), growing: ids, files }).is_empty());
}
