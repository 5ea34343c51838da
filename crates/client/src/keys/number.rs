//! Numbers as keys. Keys are compared as text, so all numbers of a table have the same number of digits.

use super::KeyError;

/// A number in `digits` digits, with zeros before it. Fails if it has more.
pub fn padded(number: u64, digits: usize) -> Result<String, KeyError> {
    let text = format!("{number:0digits$}");
    match text.len() > digits {
        true => Err(KeyError(format!("{number} has more than {digits} digits"))),
        false => Ok(text),
    }
}

/// The keys of the numbers of a sequence in one table. Decide on one form for a table and keep it: keys of two forms
/// would be mixed in the order of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberKeys {
    last: i64,
    digits: usize,
    is_reversed: bool,
}

impl NumberKeys {
    /// Ids up to 2,147,483,647, in 10 digits, the smallest first.
    pub const INT32: Self = Self { last: i32::MAX as i64, digits: 10, is_reversed: false };
    /// Ids up to 9,223,372,036,854,775,807, in 19 digits, the smallest first.
    pub const INT64: Self = Self { last: i64::MAX, digits: 19, is_reversed: false };

    /// The same ids, the largest first: a key is the distance from the last id, so the newest entities are the first of
    /// their partition.
    #[must_use]
    pub const fn newest_first(mut self) -> Self {
        self.is_reversed = true;
        self
    }

    /// The key of an id. Fails if the id is negative or above the last id.
    pub fn key(&self, id: i64) -> Result<String, KeyError> {
        if !(0..=self.last).contains(&id) {
            return Err(KeyError(format!("the id {id} is not between 0 and {}", self.last)));
        }
        let number = if self.is_reversed { self.last - id } else { id };
        padded(number.unsigned_abs(), self.digits)
    }

    /// The id of a key. Fails for a text of another form, such as a key of the other width.
    pub fn id(&self, key: &str) -> Result<i64, KeyError> {
        let is_number = key.len() == self.digits && key.bytes().all(|byte| byte.is_ascii_digit());
        let number = key.parse().ok().filter(|number| is_number && *number <= self.last);
        let number: i64 = number.ok_or_else(|| {
            KeyError(format!("the key {key:?} is not a number of {} digits up to {}", self.digits, self.last))
        })?;
        Ok(if self.is_reversed { self.last - number } else { number })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_have_the_documented_forms_and_an_overflow_is_an_error() {
        assert_eq!(NumberKeys::INT32.key(42), Ok("0000000042".to_owned()));
        assert_eq!(NumberKeys::INT32.newest_first().key(1), Ok("2147483646".to_owned()));
        assert_eq!(NumberKeys::INT32.newest_first().key(i32::MAX.into()), Ok("0000000000".to_owned()));
        assert_eq!(NumberKeys::INT64.key(42), Ok("0000000000000000042".to_owned()));
        assert_eq!(NumberKeys::INT64.newest_first().key(1), Ok("9223372036854775806".to_owned()));
        for (keys, id) in
            [(NumberKeys::INT32, 2_147_483_648), (NumberKeys::INT32, -1), (NumberKeys::INT64, -1)]
        {
            assert!(keys.key(id).is_err(), "{id}");
            assert!(keys.newest_first().key(id).is_err(), "{id}");
        }
        assert!(padded(1000, 3).is_err());
    }

    #[test]
    fn a_key_of_the_other_width_is_refused() {
        for key in ["0000000000000000042", "42", "+000000042", "9999999999", "000000004x", ""] {
            let error = NumberKeys::INT32.id(key).expect_err(key).to_string();
            assert!(error.contains(&format!("{key:?}")), "{error}");
        }
        assert!(NumberKeys::INT64.id("0000000042").is_err());
        assert!(NumberKeys::INT64.id("9999999999999999999").is_err());
    }

    proptest! {
        #[test]
        fn keys_have_the_order_of_ids_or_its_reverse(a in 0..i64::MAX, b in 0..i64::MAX) {
            for (keys, a, b) in [(NumberKeys::INT64, a, b), (NumberKeys::INT32, a >> 32, b >> 32)] {
                let key = |keys: NumberKeys, id| keys.key(id).expect("it is in range");
                prop_assert_eq!(key(keys, a).cmp(&key(keys, b)), a.cmp(&b));
                let newest = keys.newest_first();
                prop_assert_eq!(key(newest, a).cmp(&key(newest, b)), b.cmp(&a));
                prop_assert_eq!(newest.id(&key(newest, a)), Ok(a));
                prop_assert_eq!(keys.id(&key(keys, a)), Ok(a));
            }
        }
    }
}
