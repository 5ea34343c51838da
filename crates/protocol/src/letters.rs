//! Sets of letters, as signatures and access policies write permissions: `raud`, `sco`.

/// A set of lower-case ASCII letters: permissions, resource types or services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Letters(u32);

impl Letters {
    /// The letters of `text`; `None` if it is empty, repeats a letter or has one that is not in
    /// `allowed`. The order does not matter.
    pub fn parse(text: &str, allowed: &str) -> Option<Self> {
        let mut letters = Self::default();
        for letter in text.chars() {
            if !letter.is_ascii_lowercase() || !allowed.contains(letter) || letters.has(letter) {
                return None;
            }
            letters.0 |= Self::bit(letter);
        }
        (letters.0 != 0).then_some(letters)
    }

    /// Whether `letter` is among them.
    pub fn has(self, letter: char) -> bool {
        letter.is_ascii_lowercase() && self.0 & Self::bit(letter) != 0
    }

    fn bit(letter: char) -> u32 {
        1 << (u32::from(letter) - u32::from('a'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_strictly() {
        let letters = Letters::parse("dr", "raud").expect("two permissions");
        assert!(letters.has('r') && letters.has('d') && !letters.has('a') && !letters.has('R'));
        for text in ["", "rr", "rx", "R", "r ", "é"] {
            assert_eq!(Letters::parse(text, "raud"), None, "{text:?}");
        }
    }
}
