//! Keys and filters as texts with fields. Pure.
//!
//! | field | stands for |
//! |---|---|
//! | `{number}`, `{number+2}` | the registration's number, in nine digits; a later number |
//! | `{hash:1}` | the first hexadecimal digits of the number's MD5 |
//! | `{bucket:16}` | the number's bucket of 16 |
//! | `{any:Full,Full,Half}` | one of these words; the same number always has the same word |
//! | `{row}` | in a RowKey: which entity of the registration, in two digits |
//! | `{PartitionKey}`, `{RowKey}` | in a filter: the keys of an entity that exists |
//! | `{each:1}` | in a filter: each hexadecimal prefix of so many digits, in a query of its own |
//!
//! Everything follows from the number, so the keys of any registration can be written again, and none has to be kept.

use anyhow::{Context, Result, bail};
use rangehold_client::keys::{Buckets, hash_prefixed, padded};

use crate::stress::limits::EACH_DIGITS_MAX;

/// Digits of a number.
const DIGITS: usize = 9;
/// Between the hash and the number, as the client writes it.
const SEPARATOR: char = '-';
/// Hexadecimal digits by which a word is chosen.
const CHOICE_DIGITS: usize = 8;

/// What a template is for, and so which fields it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A PartitionKey.
    Partition,
    /// A RowKey.
    Row,
    /// The filter of a query.
    Filter,
}

/// A text with fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Number { plus: u64 },
    Hash(usize),
    Bucket(Buckets),
    Any(Vec<String>),
    Row,
    PartitionKey,
    RowKey,
    Each(usize),
}

/// What the fields of one text are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fields<'a> {
    /// The number of the registration.
    pub(crate) number: u64,
    /// Which entity of the registration.
    pub(crate) row: u32,
    /// The PartitionKey of the entity.
    pub(crate) partition_key: &'a str,
    /// Its RowKey.
    pub(crate) row_key: &'a str,
    /// The prefix of one query of several.
    pub(crate) each: &'a str,
}

impl Template {
    /// Reads a template. Fails if a field does not exist or does not belong there.
    pub(crate) fn parse(text: &str, used: Use) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (field, after) = after
                .split_once('}')
                .with_context(|| format!("the template {text:?} has a {{ without a }}"))?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::parse(field, used).with_context(|| format!("in the template {text:?}"))?);
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    /// The text with these fields.
    pub(crate) fn fill(&self, fields: &Fields<'_>) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            piece.put(&mut text, fields);
        }
        text
    }

    /// The digits of the prefixes that are asked one by one; `None` if it is one query.
    pub(crate) fn each(&self) -> Option<usize> {
        self.0.iter().find_map(|piece| match piece {
            Piece::Each(digits) => Some(*digits),
            _ => None,
        })
    }
}

impl Piece {
    fn parse(field: &str, used: Use) -> Result<Self> {
        let (name, argument) = field.split_once(':').map_or((field, ""), |(name, argument)| (name, argument));
        let digits = |most: usize| -> Result<usize> {
            let digits = argument.parse().ok().filter(|digits| (1..=most).contains(digits));
            digits.with_context(|| format!("{{{field}}}: write {{{name}:N}} with N from 1 to {most}"))
        };
        Ok(match (name, used) {
            ("number", _) if argument.is_empty() => Self::Number { plus: 0 },
            (_, _) if name.starts_with("number+") => {
                let plus = name["number+".len()..].parse();
                Self::Number { plus: plus.with_context(|| format!("{{{field}}}: write {{number+2}}"))? }
            }
            ("hash", _) => Self::Hash(digits(32)?),
            ("bucket", _) => {
                let count = digits(1000)?;
                Self::Bucket(Buckets::new(u32::try_from(count).expect("it is at most 1000"))?)
            }
            ("any", _) if !argument.is_empty() => {
                Self::Any(argument.split(',').map(|word| word.trim().to_owned()).collect())
            }
            ("row", Use::Row) => Self::Row,
            ("PartitionKey", Use::Filter) => Self::PartitionKey,
            ("RowKey", Use::Filter) => Self::RowKey,
            ("each", Use::Filter) => Self::Each(digits(EACH_DIGITS_MAX)?),
            _ => bail!(
                "there is no field {{{field}}} here: take {{number}}, {{number+2}}, {{hash:1}}, {{bucket:16}} or \
                 {{any:A,B}}; in a RowKey also {{row}}; in a filter also {{PartitionKey}}, {{RowKey}} and {{each:1}}"
            ),
        })
    }

    fn put(&self, text: &mut String, fields: &Fields<'_>) {
        match self {
            Self::Text(plain) => text.push_str(plain),
            Self::Number { plus } => text.push_str(&number(fields.number + plus)),
            Self::Hash(digits) => text.push_str(&hash(fields.number, *digits)),
            Self::Bucket(buckets) => {
                let key = buckets.key("", &number(fields.number));
                text.push_str(key.trim_start_matches(SEPARATOR));
            }
            Self::Any(words) => {
                let choice = u64::from_str_radix(&hash(fields.number, CHOICE_DIGITS), 16).unwrap_or_default();
                text.push_str(&words[(choice % words.len() as u64) as usize]);
            }
            Self::Row => text.push_str(&format!("{:02}", fields.row)),
            Self::PartitionKey => text.push_str(&quoted(fields.partition_key)),
            Self::RowKey => text.push_str(&quoted(fields.row_key)),
            Self::Each(_) => text.push_str(fields.each),
        }
    }
}

/// A number as a key. Numbers beyond nine digits have more, and then sort wrongly; a test has fewer registrations.
fn number(number: u64) -> String {
    padded(number, DIGITS).unwrap_or_else(|_| number.to_string())
}

fn hash(of: u64, digits: usize) -> String {
    let key = hash_prefixed(&number(of), digits).expect("a template has at most 32 digits");
    key.split_once(SEPARATOR).map_or_else(String::new, |(prefix, _)| prefix.to_owned())
}

/// A text inside of the quotes of a filter.
fn quoted(text: &str) -> String {
    text.replace('\'', "''")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_from_the_number() {
        let filled = |text: &str, used, number| {
            let template = Template::parse(text, used).unwrap();
            let fields = Fields { number, row: 7, partition_key: "O'Neil", row_key: "r", each: "f" };
            template.fill(&fields)
        };
        assert_eq!(filled("a-{number}-{row}", Use::Row, 42), "a-000000042-07");
        assert_eq!(filled("{hash:1}-{number}", Use::Partition, 42), hash_prefixed("000000042", 1).unwrap());
        assert_eq!(filled("{number+2}", Use::Partition, 41), "000000043");
        let filter = "PartitionKey eq '{PartitionKey}' and RowKey ge '{each:1}-{number}'";
        assert_eq!(filled(filter, Use::Filter, 1), "PartitionKey eq 'O''Neil' and RowKey ge 'f-000000001'");
        let words: Vec<String> =
            (0..1000).map(|n| filled("{any:Full,Full,Half}", Use::Partition, n)).collect();
        let full = words.iter().filter(|word| *word == "Full").count();
        assert!((600..730).contains(&full), "{full} of 1000, of a share of two thirds");
        assert!(filled("{bucket:16}", Use::Partition, 5).parse::<u32>().unwrap() < 16);
    }

    #[test]
    fn a_field_that_does_not_belong_there_is_refused_by_its_name() {
        for (text, used, word) in [
            ("{row}", Use::Partition, "{row}"),
            ("{each:1}", Use::Row, "{each:1}"),
            ("{numbr}", Use::Row, "{numbr}"),
            ("{hash:33}", Use::Row, "1 to 32"),
            ("{each:3}", Use::Filter, "1 to 2"),
            ("{number", Use::Row, "without a }"),
        ] {
            let why = format!("{:#}", Template::parse(text, used).unwrap_err());
            assert!(why.contains(word), "{text}: {why}");
        }
    }
}
