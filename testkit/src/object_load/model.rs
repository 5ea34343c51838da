//! What a writer's names hold, and what an operation that has no answer may have made of them.

use std::collections::BTreeMap;

/// The objects of one writer: their bytes, by their names.
pub(super) type Objects = BTreeMap<String, String>;

/// A change of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// A name gets these bytes.
    Put(String, String),
    /// A name is deleted.
    Delete(String),
    /// The second name gets the bytes of the first.
    Copy(String, String),
    /// A name gets the bytes of others, one after the other.
    Compose(Vec<String>, String),
    /// The second name gets the bytes of the first, which is then gone.
    Move(String, String),
    /// A bucket is made. Its name, with a slash behind it, stands for it among the objects.
    MakeBucket(String),
    /// A bucket without objects is deleted.
    DropBucket(String),
    /// Nothing, as a request that must be refused.
    Nothing,
}

impl Op {
    /// The names that it changes.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::Put(name, _)
            | Self::Delete(name)
            | Self::Copy(_, name)
            | Self::Compose(_, name)
            | Self::MakeBucket(name)
            | Self::DropBucket(name) => vec![name],
            Self::Move(from, to) => vec![from, to],
            Self::Nothing => Vec::new(),
        }
    }

    /// What it makes of `objects`.
    pub(super) fn apply(&self, objects: &mut Objects) {
        let of = |name: &String, objects: &Objects| objects.get(name).cloned().unwrap_or_default();
        match self {
            Self::Put(name, bytes) => drop(objects.insert(name.clone(), bytes.clone())),
            Self::Delete(name) | Self::DropBucket(name) => drop(objects.remove(name)),
            Self::MakeBucket(name) => drop(objects.insert(name.clone(), String::new())),
            Self::Copy(from, to) => drop(objects.insert(to.clone(), of(from, objects))),
            Self::Compose(from, to) => {
                let joined = from.iter().map(|name| of(name, objects)).collect();
                objects.insert(to.clone(), joined);
            }
            Self::Move(from, to) => {
                let bytes = of(from, objects);
                objects.remove(from);
                objects.insert(to.clone(), bytes);
            }
            Self::Nothing => {}
        }
    }

    /// All that may be there if it has no answer: what it makes, or what was there before.
    pub(super) fn outcomes(&self, before: &Objects) -> [Objects; 2] {
        let mut after = before.clone();
        self.apply(&mut after);
        [after, before.clone()]
    }
}

/// What differs between what must be there and what is, in words; sizes stand for bytes.
pub(super) fn differences(wanted: &Objects, found: &Objects) -> Vec<String> {
    let names = wanted.keys().chain(found.keys().filter(|name| !wanted.contains_key(*name)));
    let size =
        |bytes: Option<&String>| bytes.map_or("nothing".to_owned(), |bytes| format!("{} bytes", bytes.len()));
    let differs = |name: &&String| wanted.get(*name) != found.get(*name);
    let told = |name: &String| {
        let (wanted, found) = (size(wanted.get(name)), size(found.get(name)));
        format!("{name} should have {wanted}, and has {found}, other ones if the number is the same")
    };
    names.filter(differs).map(told).collect()
}

/// The CRC32C (Castagnoli) of some bytes, as base64 of its four bytes, the highest first: written from the standard and not with
/// our code.
pub(super) fn crc32c(bytes: &[u8]) -> String {
    use base64::Engine as _;
    let table: Vec<u32> = (0..256u32)
        .map(|byte| (0..8).fold(byte, |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0x82F6_3B78 } else { sum >> 1 }))
        .collect();
    let sum =
        bytes.iter().fold(u32::MAX, |sum, byte| sum >> 8 ^ table[((sum ^ u32::from(*byte)) & 0xFF) as usize]);
    base64::engine::general_purpose::STANDARD.encode((!sum).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_without_an_answer_is_done_or_was_never_begun() {
        let objects = |pairs: &[(&str, &str)]| -> Objects {
            pairs.iter().map(|(name, bytes)| ((*name).to_owned(), (*bytes).to_owned())).collect()
        };
        let before = objects(&[("a", "1"), ("b", "2")]);
        let outcomes = Op::Move("a".into(), "b".into()).outcomes(&before);
        assert_eq!(outcomes, [objects(&[("b", "1")]), before.clone()]);
        let composed = Op::Compose(vec!["b".into(), "a".into()], "c".into()).outcomes(&before);
        assert_eq!(composed[0], objects(&[("a", "1"), ("b", "2"), ("c", "21")]));
        assert_eq!(differences(&before, &composed[0]).len(), 1);
        assert_eq!(crc32c(b"123456789"), "4waSgw==");
    }
}
