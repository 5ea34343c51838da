//! Keys that spread: by chance, by a hash of the name, by buckets.

use md5::{Digest, Md5};
use rand::Rng;
use rangehold_protocol::table::value::put_guid;

use super::KeyError;

/// Between a prefix and the name, and between a name and its bucket.
const SEPARATOR: char = '-';

/// Hexadecimal digits of a prefix that a query can still ask one by one: 256 prefixes.
const FAN_OUT_DIGITS_MAX: usize = 2;

/// A key that nothing else has: a GUID of version 4.
pub fn random(chance: &mut impl Rng) -> String {
    let mut bytes = [0; 16];
    chance.fill_bytes(&mut bytes);
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let mut text = Vec::with_capacity(36);
    put_guid(&mut text, bytes);
    String::from_utf8(text).expect("a GUID is ASCII")
}

fn md5_hex(name: &str) -> String {
    const_hex::encode(Md5::digest(name.as_bytes()))
}

/// The name behind the first `digits` hexadecimal digits of its MD5, as the documents of the cloud advise: names that
/// begin alike, such as dates, lie apart. They advise 6 digits, with which no query can ask all prefixes; for entities
/// that are read in the order of their names take 1 or 2.
///
/// Fails for more digits than MD5 has, 32.
pub fn hash_prefixed(name: &str, digits: usize) -> Result<String, KeyError> {
    match md5_hex(name).get(..digits) {
        Some(prefix) => Ok(format!("{prefix}{SEPARATOR}{name}")),
        None => Err(KeyError(format!("MD5 has 32 digits, and not {digits}"))),
    }
}

/// The name in a key that [`hash_prefixed`] made. Fails if the prefix is not that of the name.
pub fn without_prefix(key: &str) -> Result<&str, KeyError> {
    let parts = key.split_once(SEPARATOR).filter(|(prefix, name)| md5_hex(name).starts_with(prefix));
    parts
        .map(|(_, name)| name)
        .ok_or_else(|| KeyError(format!("the key {key:?} does not begin with the hash of its name")))
}

/// All prefixes of `digits` digits, with the separator, for a query that asks each of them. Fails above two digits:
/// there would be more than 256 queries.
pub fn prefixes(digits: usize) -> Result<Vec<String>, KeyError> {
    if digits > FAN_OUT_DIGITS_MAX {
        return Err(KeyError(format!(
            "{digits} digits make too many queries; {FAN_OUT_DIGITS_MAX} is the limit"
        )));
    }
    Ok((0..16_u32.pow(digits as u32)).map(|prefix| format!("{prefix:0digits$x}{SEPARATOR}")).collect())
}

/// Cuts one hot partition into a fixed number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buckets {
    count: u32,
    digits: usize,
}

impl Buckets {
    /// `count` buckets, 1 to 1,000. The count is part of every key, so it cannot be changed later without moving
    /// entities. One partition takes about 2,000 requests a second.
    pub fn new(count: u32) -> Result<Self, KeyError> {
        match count {
            1..=1000 => Ok(Self { count, digits: (count - 1).to_string().len() }),
            _ => Err(KeyError(format!("{count} is not between 1 and 1,000 buckets"))),
        }
    }

    /// The PartitionKey of the entity `name` of the partition: `partition-NN`. The same name is always in the same bucket.
    pub fn key(&self, partition: &str, name: &str) -> String {
        let digest: [u8; 16] = Md5::digest(name.as_bytes()).into();
        let number = u128::from_be_bytes(digest) % u128::from(self.count);
        self.numbered(partition, number as u32)
    }

    /// The PartitionKeys of all buckets of the partition.
    pub fn all(&self, partition: &str) -> Vec<String> {
        (0..self.count).map(|number| self.numbered(partition, number)).collect()
    }

    fn numbered(&self, partition: &str, number: u32) -> String {
        format!("{partition}{SEPARATOR}{number:0digits$}", digits = self.digits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn prefixes_are_those_of_the_documents() {
        for (name, prefix) in [
            ("2016-05-10-12-00-00/file1", "2fa764"),
            ("2016-05-10-12-00-00/file2", "5ca42c"),
            ("2016-05-10-12-00-01/file3", "6e9b84"),
        ] {
            let key = hash_prefixed(name, 6).expect("MD5 has 6 digits");
            assert_eq!(key, format!("{prefix}-{name}"));
            assert_eq!(without_prefix(&key), Ok(name));
        }
        assert!(hash_prefixed("a", 33).is_err());
        assert!(without_prefix("000000-2016-05-10-12-00-00/file1").is_err());
    }

    #[test]
    fn all_prefixes_are_few_or_refused() {
        assert_eq!(prefixes(0).map(|all| all.len()), Ok(1));
        let one = prefixes(1).expect("sixteen");
        assert_eq!((one.len(), one[0].as_str(), one[15].as_str()), (16, "0-", "f-"));
        assert_eq!(prefixes(2).map(|all| all.len()), Ok(256));
        assert!(prefixes(3).is_err());
    }

    #[test]
    fn a_random_key_is_a_guid_of_version_4() {
        let mut chance = StdRng::seed_from_u64(1);
        let keys = [random(&mut chance), random(&mut chance)];
        assert_ne!(keys[0], keys[1]);
        for key in keys {
            assert_eq!((key.len(), &key[14..15]), (36, "4"));
            assert!("89ab".contains(&key[19..20]), "{key}");
        }
    }

    proptest! {
        #[test]
        fn a_name_lies_in_one_of_all_buckets(count in 1..1000_u32, name in ".*") {
            let buckets = Buckets::new(count).expect("it is in range");
            let all = buckets.all("events");
            prop_assert_eq!(all.len(), count as usize);
            prop_assert!(all.is_sorted());
            prop_assert!(all.contains(&buckets.key("events", &name)));
        }
    }
}
