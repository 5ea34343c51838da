//! Heads: eight bytes of each key of a list, which decide most steps of a search in it.
//!
//! The keys of a large cache lie far apart in memory, and a search that looks at one after the other waits for each. So
//! a list of keys has a head for each of them: the eight bytes that follow the beginning that all its keys have in common.
//! The heads lie side by side. A search compares these, and looks at a key only where it finds the same head.

use std::cmp::Ordering;

/// The heads of a list of keys. The list itself stays with its owner, which shows it to each call: `key_at` gives the key at
/// an index of the list. See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Heads {
    /// All keys have at least so many bytes in common. The heads begin after these. It stays as it is when keys are
    /// removed, so it may be shorter than it could be.
    prefix: usize,
    /// Of each key, in the order of the list.
    each: Vec<u64>,
}

impl Heads {
    /// The heads of `count` ascending keys.
    pub(super) fn of<'a>(count: usize, key_at: impl Fn(usize) -> &'a [u8]) -> Self {
        let prefix = match count {
            0 => 0,
            // What the first key and the last one have in common, all between them have too.
            _ => in_common(key_at(0), key_at(count - 1)),
        };
        Self { prefix, each: (0..count).map(|index| head(&key_at(index)[prefix..])).collect() }
    }

    /// How many keys come before `key`, as [`slice::binary_search`] tells it: `Ok` if `key` is the next one.
    pub(super) fn search<'a>(&self, key: &[u8], key_at: impl Fn(usize) -> &'a [u8]) -> Result<usize, usize> {
        let count = self.each.len();
        let Some(last) = count.checked_sub(1) else { return Err(0) };
        let (beginning, rest) = key.split_at(key.len().min(self.prefix));
        let sought = head(rest);
        let first = self.each.partition_point(|head| *head < sought);
        // Any key tells the beginning that all have in common. If the sought key is in the list, this is mostly that key.
        match beginning.cmp(&key_at(first.min(last))[..self.prefix]) {
            Ordering::Less => return Err(0),
            Ordering::Greater => return Err(count),
            Ordering::Equal => {}
        }
        let same = self.each[first..].partition_point(|head| *head == sought);
        let (mut low, mut high) = (first, first + same);
        while low < high {
            let middle = usize::midpoint(low, high);
            match key_at(middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Adds the head of a key that is now at `index` of its list.
    pub(super) fn insert<'a>(&mut self, index: usize, key_at: impl Fn(usize) -> &'a [u8]) {
        let key = key_at(index);
        let other = usize::from(index == 0);
        if !self.each.is_empty() && in_common(key, key_at(other)) >= self.prefix {
            self.each.insert(index, head(&key[self.prefix..]));
        } else {
            *self = Self::of(self.each.len() + 1, key_at);
        }
    }

    /// Removes the head of the key that was at `index` of its list.
    pub(super) fn remove(&mut self, index: usize) {
        self.each.remove(index);
    }
}

/// How many bytes two keys have in common at the beginning.
fn in_common(first: &[u8], second: &[u8]) -> usize {
    first.iter().zip(second).take_while(|(first, second)| first == second).count()
}

/// The first eight bytes of what follows the common beginning of keys, as a number that is ordered like them. Missing bytes
/// count as 0, so keys that differ may have the same head.
fn head(rest: &[u8]) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    let length = rest.len().min(bytes.len());
    bytes[..length].copy_from_slice(&rest[..length]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    /// Keys of which many have the same beginning, and the same head.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let letter = || prop_oneof![4 => Just(b'a'), 1 => Just(0), 1 => any::<u8>()];
        prop_oneof![vec(letter(), 0..4), vec(letter(), 8..20)]
    }

    fn check(heads: &Heads, list: &[Vec<u8>], sought: &[Vec<u8>]) -> Result<(), TestCaseError> {
        for key in sought {
            prop_assert_eq!(heads.search(key, |index| &list[index]), list.binary_search(key), "{:?}", key);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn a_search_by_heads_finds_what_a_search_by_keys_finds(
            beginning in prop_oneof![Just(Vec::new()), vec(any::<u8>(), 1..12)],
            rests in btree_set(key(), 1..40),
            others in vec(key(), 20),
            order in any::<[Index; 40]>(),
        ) {
            let with_beginning = |rest: &Vec<u8>| [beginning.clone(), rest.clone()].concat();
            let keys: Vec<Vec<u8>> = rests.iter().map(with_beginning).collect();
            let cut_short = keys.iter().zip(&order).map(|(key, cut)| key[..cut.index(key.len() + 1)].to_vec());
            let sought = keys.iter().cloned().chain(cut_short).chain(others.iter().map(with_beginning));
            let sought: Vec<Vec<u8>> = sought.chain(others.clone()).collect();
            let (mut rest, mut list, mut heads) = (keys, Vec::new(), Heads::default());
            check(&heads, &list, &sought)?;
            while !rest.is_empty() {
                let key = rest.remove(order[rest.len() % 40].index(rest.len()));
                let index = list.binary_search(&key).expect_err("keys differ");
                list.insert(index, key);
                heads.insert(index, |index| &list[index]);
                if rest.len() % 4 == 3 {
                    let index = order[rest.len() % 40].index(list.len());
                    list.remove(index);
                    heads.remove(index);
                }
                check(&heads, &list, &sought)?;
            }
            check(&Heads::of(list.len(), |index| &list[index]), &list, &sought)?;
        }
    }

    #[test]
    fn keys_with_heads_of_their_own_are_hardly_looked_at() {
        let list: Vec<Vec<u8>> =
            (0..128).map(|number| format!("a/long/beginning/{number:08}").into()).collect();
        let looks = Cell::new(0);
        let key_at = |index: usize| {
            looks.set(looks.get() + 1);
            list[2 * index].as_slice()
        };
        let mut heads = Heads::default();
        (0..64).for_each(|index| heads.insert(index, key_at));
        assert!(looks.get() <= 4 * 64, "{} looks for 64 keys that were added at the end", looks.get());
        for (number, key) in list.iter().enumerate() {
            looks.set(0);
            let is_there = number % 2 == 0;
            assert_eq!(
                heads.search(key, key_at),
                if is_there { Ok(number / 2) } else { Err(number / 2 + 1) }
            );
            assert!(looks.get() <= 1 + usize::from(is_there), "{} looks for {number}", looks.get());
        }
    }
}
