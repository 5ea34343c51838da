//! The two rows of a blob that a change sees: its state, and one user. Pure.

use bytes::Bytes;
use rangehold_map::blob::BlobId;

use crate::error::Damaged;
use crate::range::RowChanges;

/// What the state row of a blob says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    /// How many rows of users there are.
    users: u64,
}

/// The state row of a blob and the row of one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rows {
    state: Option<State>,
    is_user: bool,
}

impl Rows {
    /// Reads the two rows; or the state alone.
    pub(super) fn decode(blob: BlobId, rows: &[Option<Bytes>]) -> Result<Self, Damaged> {
        let state = rows[0].as_ref().map(|value| {
            let users = <[u8; 8]>::try_from(&value[..]);
            users.map(|users| State { users: u64::from_be_bytes(users) }).map_err(|_| {
                Damaged::new(format!("the state of blob {blob} has {} bytes, not 8", value.len()))
            })
        });
        Ok(Self { state: state.transpose()?, is_user: rows.get(1).is_some_and(Option::is_some) })
    }

    /// Whether the blob has a user. A blob without one is dead, and never gets one again.
    pub(super) fn is_alive(self) -> bool {
        self.state.is_some_and(|state| state.users > 0)
    }

    /// What has to be written so that these rows become `after`. `keys` are those of the two rows.
    pub(super) fn changes(self, after: Self, keys: &[Vec<u8>]) -> RowChanges {
        let mut changes = RowChanges::new();
        if self.state != after.state {
            let value = after.state.map(|state| state.users.to_be_bytes().to_vec());
            changes.push((keys[0].clone(), value));
        }
        if self.is_user != after.is_user {
            changes.push((keys[1].clone(), after.is_user.then(Vec::new)));
        }
        changes
    }

    /// Whether the blob's state is stored, and it has no user.
    pub(super) fn is_dead(self) -> bool {
        self.state.is_some_and(|state| state.users == 0)
    }

    /// How many users the blob has.
    pub(super) fn users(self) -> u64 {
        self.state.map_or(0, |state| state.users)
    }

    /// Whether nothing is stored about the blob.
    pub(super) fn is_unknown(self) -> bool {
        self.state.is_none()
    }

    fn with_users(self, users: u64, is_user: bool) -> Self {
        Self { state: self.state.map(|_| State { users }), is_user }
    }
}

/// A new blob with its first user.
pub(super) fn begun(before: Rows) -> (Rows, ()) {
    assert!(before.state.is_none(), "the id of a blob is never used twice");
    (Rows { state: Some(State { users: 1 }), is_user: true }, ())
}

/// One more user; `None` if the blob is dead.
pub(super) fn referred(before: Rows) -> Option<(Rows, ())> {
    let users = before.state.filter(|state| state.users > 0)?.users;
    let after = if before.is_user { before } else { before.with_users(users + 1, true) };
    Some((after, ()))
}

/// One user more, also of a blob that is dead or of which nothing is stored: a row that names it was restored, and its
/// files with it.
fn restored(before: Rows) -> Rows {
    let users = before.state.map_or(0, |state| state.users);
    let users = if before.is_user { users.max(1) } else { users + 1 };
    Rows { state: Some(State { users }), is_user: true }
}

/// What has to be written into the two rows of a blob so that the user is one of its users.
pub(crate) fn note_user(
    blob: BlobId,
    rows: &[Option<Bytes>],
    keys: &[Vec<u8>],
) -> Result<RowChanges, Damaged> {
    let before = Rows::decode(blob, rows)?;
    Ok(before.changes(restored(before), keys))
}

/// One user less. Also says whether the blob is dead now and still has its state row.
pub(super) fn released(before: Rows) -> (Rows, bool) {
    let users = before.state.map_or(0, |state| state.users);
    let left = if before.is_user { users.saturating_sub(1) } else { users };
    let after = before.with_users(left, false);
    (after, after.is_dead())
}

/// The rows of a dead blob whose files are gone.
pub(super) fn buried(before: Rows) -> (Rows, ()) {
    assert!(!before.is_alive(), "a blob is buried only when it is dead");
    (Rows { state: None, ..before }, ())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Refer(u8),
        Release(u8),
    }

    proptest! {
        /// The count is the number of rows of users, whatever is repeated; and a blob that died stays dead.
        #[test]
        fn the_state_counts_the_users(
            steps in prop::collection::vec(
                prop_oneof![(0u8..4).prop_map(Step::Refer), (0u8..4).prop_map(Step::Release)], 0..40)
        ) {
            let mut stored: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            let state = vec![0xFF];
            let keys = |user: u8| [state.clone(), vec![user]];
            let read = |stored: &BTreeMap<Vec<u8>, Vec<u8>>, user: u8| {
                let rows = keys(user).map(|key| stored.get(&key).cloned().map(Bytes::from));
                Rows::decode(BlobId(1), &rows).unwrap()
            };
            let write = |stored: &mut BTreeMap<Vec<u8>, Vec<u8>>, changes: RowChanges| {
                for (key, value) in changes {
                    match value {
                        Some(value) => drop(stored.insert(key, value)),
                        None => drop(stored.remove(&key)),
                    }
                }
            };
            let before = read(&stored, 0);
            write(&mut stored, before.changes(begun(before).0, &keys(0)));
            let mut users = BTreeSet::from([0]);
            for step in steps {
                let (Step::Refer(user) | Step::Release(user)) = step;
                let before = read(&stored, user);
                let after = match step {
                    Step::Refer(_) => {
                        prop_assert_eq!(referred(before).is_some(), !users.is_empty());
                        let Some((after, ())) = referred(before) else { continue };
                        users.insert(user);
                        after
                    }
                    Step::Release(_) => {
                        users.remove(&user);
                        let (after, is_dead) = released(before);
                        prop_assert_eq!(is_dead, users.is_empty());
                        after
                    }
                };
                write(&mut stored, before.changes(after, &keys(user)));
                let rows: BTreeSet<u8> = stored.keys().filter(|key| **key != state).map(|key| key[0]).collect();
                prop_assert_eq!(&rows, &users);
                prop_assert_eq!(read(&stored, user).state, Some(State { users: users.len() as u64 }));
            }
        }
    }
}
