//! Intervals of keys, and the queries that read them.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::entity::Keys;
use crate::request::{Filter, Operator};

/// The entities after one place of a table and up to another, which belongs to it. The default is the whole table.
///
/// A part of a table ends at an entity that was read, so the natural border is behind an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Span {
    /// The entity before the first one; `None` is the beginning of the table.
    pub after: Option<Keys>,
    /// The last entity; `None` is the end of the table.
    pub up_to: Option<Keys>,
}

impl Span {
    /// The conditions of the queries that together return the span, in the order of keys; `None` reads everything.
    ///
    /// A condition on both keys that holds across partitions would have an `or`, for which Azure reads the whole
    /// table. So the first and the last partition have a query of their own.
    pub fn filters(&self) -> Vec<Option<Filter>> {
        let partition =
            |operator, keys: &Keys| Filter::compare("PartitionKey", operator, keys.partition_key.as_str());
        let row = |operator, keys: &Keys| Filter::compare("RowKey", operator, keys.row_key.as_str());
        let rows_after = |keys| partition(Operator::Equal, keys).and(row(Operator::Greater, keys));
        let rows_up_to = |keys| partition(Operator::Equal, keys).and(row(Operator::LessOrEqual, keys));
        let filters = match (&self.after, &self.up_to) {
            (None, None) => return vec![None],
            (Some(after), None) => vec![rows_after(after), partition(Operator::Greater, after)],
            (None, Some(up_to)) => vec![partition(Operator::Less, up_to), rows_up_to(up_to)],
            (Some(after), Some(up_to)) if after.partition_key == up_to.partition_key => {
                vec![rows_after(after).and(row(Operator::LessOrEqual, up_to))]
            }
            (Some(after), Some(up_to)) => vec![
                rows_after(after),
                partition(Operator::Greater, after).and(partition(Operator::Less, up_to)),
                rows_up_to(up_to),
            ],
        };
        filters.into_iter().map(Some).collect()
    }

    /// The span up to `place`, and the span behind it.
    pub fn cut(self, place: Keys) -> [Self; 2] {
        let behind = Self { after: Some(place.clone()), up_to: self.up_to };
        [Self { after: self.after, up_to: Some(place) }, behind]
    }
}

/// What of the whole table lies in none of `finished`, in the order of keys. The spans must not overlap.
pub fn rest(mut finished: Vec<Span>) -> Vec<Span> {
    finished.sort_by(|a, b| order(a.after.as_ref(), b.after.as_ref()));
    let (mut place, mut missing) = (None, Vec::new());
    for Span { after, up_to } in finished {
        if after != place {
            missing.push(Span { after: place, up_to: after });
        }
        match up_to {
            Some(up_to) => place = Some(up_to),
            None => return missing,
        }
    }
    missing.push(Span { after: place, up_to: None });
    missing
}

/// The order of the service: by UTF-16 units. `None` is the beginning of the table.
fn order(a: Option<&Keys>, b: Option<&Keys>) -> Ordering {
    let units = |text: &str, other: &str| text.encode_utf16().cmp(other.encode_utf16());
    match (a, b) {
        (Some(a), Some(b)) => {
            units(&a.partition_key, &b.partition_key).then_with(|| units(&a.row_key, &b.row_key))
        }
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(span: &Span) -> Vec<String> {
        span.filters()
            .into_iter()
            .map(|filter| filter.map_or_else(String::new, |filter| filter.to_string()))
            .collect()
    }

    #[test]
    fn each_query_of_a_span_stays_in_one_partition_or_between_two() {
        let (a, b) = (Keys::new("a", "1"), Keys::new("b", "2"));
        let [below, above] = Span::default().cut(a.clone());
        assert_eq!(texts(&Span::default()), [""]);
        assert_eq!(texts(&below), ["PartitionKey lt 'a'", "PartitionKey eq 'a' and RowKey le '1'"]);
        assert_eq!(texts(&above), ["PartitionKey eq 'a' and RowKey gt '1'", "PartitionKey gt 'a'"]);
        let [within, _] = above.clone().cut(Keys::new("a", "9"));
        assert_eq!(texts(&within), ["PartitionKey eq 'a' and RowKey gt '1' and RowKey le '9'"]);
        let [across, _] = above.cut(b);
        assert_eq!(
            texts(&across),
            [
                "PartitionKey eq 'a' and RowKey gt '1'",
                "PartitionKey gt 'a' and PartitionKey lt 'b'",
                "PartitionKey eq 'b' and RowKey le '2'"
            ]
        );
    }

    proptest! {
        #[test]
        fn finished_spans_and_the_rest_cover_the_table_once(
            places in prop::collection::btree_set("[ab\u{e000}\u{10000}]{0,2}", 0..8),
            done in prop::collection::vec(any::<bool>(), 9),
        ) {
            let mut places: Vec<Keys> = places.into_iter().map(|key| Keys::new(key, "r")).collect();
            places.sort_by(|a, b| order(Some(a), Some(b)));
            let (mut spans, mut last) = (Vec::new(), Span::default());
            for place in places {
                let [below, above] = last.cut(place);
                spans.push(below);
                last = above;
            }
            spans.push(last);
            let mut finished: Vec<Span> =
                spans.iter().zip(&done).filter(|(_, done)| **done).map(|(span, _)| span.clone()).collect();
            finished.reverse();
            let missing = rest(finished.clone());
            // Together they cover everything once: nothing is left, and nothing could be given away twice.
            finished.extend(missing.clone());
            prop_assert_eq!(rest(finished.clone()), vec![]);
            let undone = spans.iter().zip(&done).filter(|(_, done)| !**done).count();
            prop_assert!(missing.len() <= undone && (undone == 0) == missing.is_empty());
        }
    }
}
