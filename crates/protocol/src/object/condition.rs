//! Conditions of a request on what is stored.
//!
//! | condition | holds |
//! |---|---|
//! | `ifGenerationMatch=0` | if there is no live generation |
//! | `ifGenerationMatch=g` | if the generation is `g` |
//! | `ifGenerationNotMatch=0` | if there is a live generation |
//! | `ifGenerationNotMatch=g` | if the generation is another one, or there is none |
//! | `ifMetagenerationMatch=m`, `ifMetagenerationNotMatch=m` | the same for the metageneration |
//! | `If-Match`, `If-None-Match` | if the entity tag is, or is not, one of those |
//!
//! A condition that does not hold is answered with 412. Only a read whose *not-match* does not hold is answered with 304:
//! its caller has already what it asks for. All conditions must hold; if several do not, 412 wins.

use serde::{Deserialize, Serialize};

use super::error::ObjectError;
use super::generation::Generation;

/// Whether the request changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// The entity tags of an `If-Match` or `If-None-Match`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tags {
    /// `*`: whatever exists.
    Any,
    /// One of these, without quotes.
    Listed(Vec<String>),
}

impl Tags {
    /// Reads the value of the header. Quotes, and the `W/` of weak tags, are not part of a tag; clients of the real
    /// service send tags without quotes too.
    pub fn parse(header: &str) -> Self {
        if header.trim() == "*" {
            return Self::Any;
        }
        let bare = |tag: &str| tag.trim().trim_start_matches("W/").trim_matches('"').to_owned();
        Self::Listed(header.split(',').map(bare).filter(|tag| !tag.is_empty()).collect())
    }

    /// Whether what was seen has one of these tags. A tag of either API is a name of the same object.
    fn fit(&self, seen: Option<&Seen>) -> bool {
        match (self, seen) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::Listed(tags), Some(seen)) => {
                tags.iter().any(|one| *one == seen.tag || seen.xml_tag.as_ref() == Some(one))
            }
        }
    }
}

/// The conditions of a request on one object or bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Conditions {
    /// `ifGenerationMatch`.
    pub generation_match: Option<u64>,
    /// `ifGenerationNotMatch`.
    pub generation_not_match: Option<u64>,
    /// `ifMetagenerationMatch`.
    pub metageneration_match: Option<u64>,
    /// `ifMetagenerationNotMatch`.
    pub metageneration_not_match: Option<u64>,
    /// `If-Match`.
    pub tag_match: Option<Tags>,
    /// `If-None-Match`.
    pub tag_not_match: Option<Tags>,
}

/// What conditions look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The generation.
    pub generation: u64,
    /// The metageneration.
    pub metageneration: u64,
    /// The entity tag.
    pub tag: String,
    /// The entity tag in the XML API, if it is another one.
    pub xml_tag: Option<String>,
}

impl Seen {
    /// What there is to see of something that has a metageneration and no generation.
    pub fn of_metageneration(metageneration: u64) -> Self {
        Self { generation: 0, metageneration, tag: metageneration.to_string(), xml_tag: None }
    }
}

impl From<&Generation> for Seen {
    fn from(generation: &Generation) -> Self {
        Self {
            generation: generation.id.0,
            metageneration: generation.metageneration,
            tag: generation.etag(),
            xml_tag: Some(generation.xml_etag()),
        }
    }
}

impl Conditions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the conditions on a generation, or on a name without one.
    pub fn check(&self, generation: Option<&Generation>, purpose: Purpose) -> Result<(), ObjectError> {
        if self.is_empty() {
            return Ok(());
        }
        self.check_seen(generation.map(Seen::from).as_ref(), purpose)
    }

    /// Checks the conditions on anything that has generations and metagenerations.
    pub fn check_seen(&self, seen: Option<&Seen>, purpose: Purpose) -> Result<(), ObjectError> {
        let generation = seen.map_or(0, |seen| seen.generation);
        let metageneration = seen.map(|seen| seen.metageneration);
        for (holds, location) in [
            (self.generation_match.is_none_or(|wanted| wanted == generation), "ifGenerationMatch"),
            (
                self.metageneration_match.is_none_or(|wanted| metageneration == Some(wanted)),
                "ifMetagenerationMatch",
            ),
            (self.tag_match.as_ref().is_none_or(|tags| tags.fit(seen)), "If-Match"),
        ] {
            if !holds {
                return Err(ObjectError::condition_not_met(location));
            }
        }
        for (fails, location) in [
            (self.generation_not_match.is_some_and(|other| other == generation), "ifGenerationNotMatch"),
            (
                self.metageneration_not_match.is_some_and(|other| metageneration == Some(other)),
                "ifMetagenerationNotMatch",
            ),
            (self.tag_not_match.as_ref().is_some_and(|tags| tags.fit(seen)), "If-None-Match"),
        ] {
            match (fails, purpose) {
                (false, _) => {}
                (true, Purpose::Read) => {
                    return Err(ObjectError::not_modified());
                }
                (true, Purpose::Write) => return Err(ObjectError::condition_not_met(location)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(generation: u64, metageneration: u64) -> Seen {
        Seen { generation, metageneration, tag: format!("{generation}-{metageneration}"), xml_tag: None }
    }

    fn status(conditions: &Conditions, seen: Option<&Seen>, purpose: Purpose) -> u16 {
        conditions.check_seen(seen, purpose).err().map_or(200, |error| error.kind.status())
    }

    #[test]
    fn a_condition_on_a_name_without_an_object() {
        let on = |change: fn(&mut Conditions)| {
            let mut conditions = Conditions::default();
            change(&mut conditions);
            status(&conditions, None, Purpose::Write)
        };
        assert_eq!(on(|c| c.generation_match = Some(0)), 200);
        assert_eq!(on(|c| c.generation_match = Some(5)), 412);
        assert_eq!(on(|c| c.generation_not_match = Some(0)), 412);
        assert_eq!(on(|c| c.generation_not_match = Some(5)), 200);
        assert_eq!(on(|c| c.metageneration_match = Some(1)), 412);
        assert_eq!(on(|c| c.metageneration_not_match = Some(1)), 200);
        assert_eq!(on(|c| c.tag_match = Some(Tags::Any)), 412);
        assert_eq!(on(|c| c.tag_not_match = Some(Tags::Any)), 200);
    }

    #[test]
    fn tags_are_compared_without_quotes() {
        let tags = |header| Conditions { tag_match: Some(Tags::parse(header)), ..Conditions::default() };
        for (header, expected) in [
            ("5-1", 200),
            ("\"5-1\"", 200),
            ("W/\"5-1\"", 200),
            ("\"x\", \"5-1\"", 200),
            ("*", 200),
            ("kittens", 412),
            ("", 412),
        ] {
            assert_eq!(status(&tags(header), Some(&seen(5, 1)), Purpose::Read), expected, "{header}");
        }
    }

    proptest! {
        /// The table of the module, condition by condition.
        #[test]
        fn all_conditions_must_hold(
            stored in proptest::option::of((1u64..3, 1u64..3)),
            wanted in proptest::array::uniform4(proptest::option::of(0u64..3)),
            reads: bool,
        ) {
            let [g, not_g, m, not_m] = wanted;
            let conditions = Conditions {
                generation_match: g,
                generation_not_match: not_g,
                metageneration_match: m,
                metageneration_not_match: not_m,
                ..Conditions::default()
            };
            let generation = stored.map_or(0, |stored| stored.0);
            let metageneration = stored.map_or(u64::MAX, |stored| stored.1);
            let matches = g.is_none_or(|g| g == generation) && m.is_none_or(|m| m == metageneration);
            let differs = not_g.is_none_or(|g| g != generation) && not_m.is_none_or(|m| m != metageneration);
            let expected = match (matches, differs, reads) {
                (true, true, _) => 200,
                (true, false, true) => 304,
                _ => 412,
            };
            let purpose = if reads { Purpose::Read } else { Purpose::Write };
            let stored = stored.map(|(generation, metageneration)| seen(generation, metageneration));
            prop_assert_eq!(status(&conditions, stored.as_ref(), purpose), expected);
        }
    }
}
