//! The JSON of an entity: any bytes are read as an entity or are refused with a code. An accepted entity is within
//! the limits that its module promises, and can be stored and read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rangehold_map::Timestamp;
use rangehold_protocol::table::entity::{Entity, KeyRule};
use rangehold_protocol::table::limits::PROPERTIES_MAX;
use rangehold_protocol::table::row::{RowView, encode};
use rangehold_protocol::table::value::Value;

fuzz_target!(|data: &[u8]| {
    for rule in [KeyRule::InBody, KeyRule::InUri] {
        let Ok(entity) = Entity::from_json(data, rule) else {
            continue;
        };
        assert_eq!(entity.partition_key.is_some(), rule == KeyRule::InBody);
        assert_eq!(entity.row_key.is_some(), rule == KeyRule::InBody);
        assert!(entity.properties.len() <= PROPERTIES_MAX);
        for (index, (name, _)) in entity.properties.iter().enumerate() {
            assert!(
                !matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp"),
                "{name} as a property"
            );
            assert!(!entity.properties[..index].iter().any(|(other, _)| other == name), "{name} twice");
        }
        // Our reader must not accept anything that serde_json refuses.
        assert!(serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok(), "taken, and no JSON");
        let properties = || entity.properties.iter().map(|(name, value)| (name.as_str(), value.as_ref()));
        let stored = encode(Timestamp::from_ticks(1), properties());
        let row = RowView::new(&stored).expect("what was just stored is a row");
        for (name, value) in &entity.properties {
            let found = row.get(name).expect("it can be read").expect("it is there").to_value();
            let nan =
                matches!((&found, value), (Value::Double(a), Value::Double(b)) if a.is_nan() && b.is_nan());
            assert!(nan || found == *value, "{name} was {value:?} and is {found:?}");
        }
    }
});
