//! The stored value of a table's row in the catalogue.
//!
//! The row's key holds the account, and the table's name in lower case. The value holds the name as its
//! creator wrote it, the id under which the table's entities are stored, and the table's access policies:
//!
//! ```text
//!   offset   size
//!   0        1      format of the record: 1
//!   1        ...    JSON: {"name":"Customers","id":16327776000000000,"policies":[...]}
//! ```
//!
//! It is JSON because its content grows with releases, and it is read only when a table is looked up. The
//! format number is stored, and a reader refuses a number that it does not know. So a change of meaning
//! needs a new number; a new member that an older reader may ignore does not.

use std::borrow::Cow;

use rangehold_map::TableId;
use serde::{Deserialize, Serialize};

use super::acl::AccessPolicy;
use super::row::DamagedRow;

const FORMAT: u8 = 1;

/// What the catalogue stores about a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRecord {
    /// The name, as the request that created the table wrote it.
    pub name: String,
    /// The table's id. A table that is created again gets another one.
    pub id: TableId,
    /// The stored access policies, in the order in which they were set.
    pub policies: Vec<AccessPolicy>,
}

/// A record's JSON. It has the number in place of [`TableId`], whose crate does not use serde.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    name: Cow<'a, str>,
    id: u64,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    policies: Cow<'a, [AccessPolicy]>,
}

impl TableRecord {
    /// The bytes to store.
    pub fn encode(&self) -> Vec<u8> {
        let stored = Stored { name: (&self.name).into(), id: self.id.0, policies: (&self.policies).into() };
        let mut out = vec![FORMAT];
        serde_json::to_writer(&mut out, &stored).expect("texts and numbers are always JSON");
        out
    }

    /// Reads stored bytes. An error means that they are damaged, or that a later release wrote them.
    pub fn decode(bytes: &[u8]) -> Result<Self, DamagedRow> {
        match bytes {
            [FORMAT, json @ ..] => {
                let stored: Stored<'_> = serde_json::from_slice(json)
                    .map_err(|_| DamagedRow("a table's record that cannot be read"))?;
                Ok(Self {
                    name: stored.name.into_owned(),
                    id: TableId(stored.id),
                    policies: stored.policies.into_owned(),
                })
            }
            _ => Err(DamagedRow("a table's record of an unknown format")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rangehold_map::Timestamp;

    use super::*;

    fn any_policy() -> impl Strategy<Value = AccessPolicy> {
        let time = || prop::option::of(any::<i64>().prop_map(Timestamp::from_ticks));
        ("\\PC{1,8}", time(), time(), prop::option::of("[raud]{1,4}"))
            .prop_map(|(id, start, expiry, permission)| AccessPolicy { id, start, expiry, permission })
    }

    proptest! {
        #[test]
        fn round_trip(
            name in "[A-Za-z][A-Za-z0-9]{2,62}",
            id: u64,
            policies in prop::collection::vec(any_policy(), 0..5),
        ) {
            let record = TableRecord { name, id: TableId(id), policies };
            prop_assert_eq!(TableRecord::decode(&record.encode()), Ok(record));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = TableRecord::decode(&bytes);
        }
    }

    /// Records of every earlier release must stay readable.
    #[test]
    fn records_of_earlier_releases_are_read() {
        let record = TableRecord {
            name: "Customers".into(),
            id: TableId(16_327_776_000_000_000),
            policies: vec![AccessPolicy {
                id: "reader".into(),
                start: None,
                expiry: Some(Timestamp::from_ticks(5)),
                permission: Some("r".into()),
            }],
        };
        let bytes = b"\x01{\"name\":\"Customers\",\"id\":16327776000000000,\
            \"policies\":[{\"id\":\"reader\",\"expiry\":5,\"permission\":\"r\"}]}";
        assert_eq!(record.encode(), bytes);
        assert_eq!(TableRecord::decode(bytes), Ok(record));
        let least = TableRecord::decode(b"\x01{\"name\":\"T\",\"id\":1,\"later\":true}").unwrap();
        assert_eq!((least.name.as_str(), least.policies.len()), ("T", 0));
        for damaged in [&b""[..], b"\x01", b"\x02{\"name\":\"T\",\"id\":1}", b"\x01{\"name\":\"T\"}"] {
            assert!(TableRecord::decode(damaged).is_err());
        }
    }
}
