//! Finds a time at the beginning of a name.

/// A name that begins with a time, perhaps behind fixed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimePrefix<'a> {
    /// The name up to the end of the time, with the separator behind it.
    pub prefix: &'a str,
    /// Whether the time tells no minutes: many names have the same one, and then all names have another.
    pub is_long: bool,
}

/// The time in `name`, if something follows it. Times are written as `2016-05-10`, `2016/05/10/12`, `20160510T1200` and
/// the like: a year, a month and a day, and perhaps more, with or without a separator between.
pub fn time_prefix(name: &str) -> Option<TimePrefix<'_>> {
    let starts = name.char_indices().filter(|(at, first)| {
        first.is_ascii_digit() && !name[..*at].ends_with(|before: char| before.is_ascii_alphanumeric())
    });
    starts.into_iter().find_map(|(at, _)| {
        let (length, parts) = time_length(&name.as_bytes()[at..])?;
        let mut end = at + length;
        if name[end..].starts_with(is_separator) {
            end += 1;
        }
        // Day, or day and hour: 3 or 4 parts.
        (end < name.len()).then(|| TimePrefix { prefix: &name[..end], is_long: parts <= 4 })
    })
}

fn is_separator(character: char) -> bool {
    matches!(character, '-' | '_' | '/' | '.' | ':' | 'T' | ' ')
}

/// The bytes of the time with which a text begins, and its parts: year, month, day, hour and so on.
fn time_length(text: &[u8]) -> Option<(usize, usize)> {
    let digits = |at: usize, count: usize| -> Option<u32> {
        let part = text.get(at..at + count)?;
        part.iter()
            .try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0')))
    };
    if !(1_970..2_100).contains(&digits(0, 4)?) {
        return None;
    }
    let mut ends = vec![4];
    for (least, most) in [(1, 12), (1, 31), (0, 23), (0, 59), (0, 59)] {
        let end = ends[ends.len() - 1];
        let gap = usize::from(text.get(end).is_some_and(|byte| is_separator(char::from(*byte))));
        match digits(end + gap, 2) {
            Some(part) if (least..=most).contains(&part) => ends.push(end + gap + 2),
            _ => break,
        }
    }
    // What goes on with a digit or a letter is not a part of the time.
    while ends.last().is_some_and(|end| text.get(*end).is_some_and(u8::is_ascii_alphanumeric)) {
        ends.pop();
    }
    let end = *ends.last().filter(|_| ends.len() >= 3)?;
    Some((end, ends.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_the_forms_that_people_write() {
        for (name, prefix, is_long) in [
            ("2016-05-10-12/3f2a.jpg", "2016-05-10-12/", true),
            ("2016-05-10-12/34ab.jpg", "2016-05-10-12/", true),
            ("logs/2016/05/10/3f2a.jpg", "logs/2016/05/10/", true),
            ("logs/20160510/a", "logs/20160510/", true),
            ("2016-05-10-12-00-00/file1", "2016-05-10-12-00-00/", false),
            ("e-20160510T120000-x", "e-20160510T120000-", false),
        ] {
            assert_eq!(time_prefix(name), Some(TimePrefix { prefix, is_long }), "{name}");
        }
        for name in ["images/clouds/1.jpg", "2016", "201605101234567890/x", "a1f2016-05-10/x", "2016-13-10/x"]
        {
            assert_eq!(time_prefix(name), None, "{name}");
        }
    }
}
