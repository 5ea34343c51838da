//! Times as keys: the ticks of .NET, 100 ns each since the year 1, in 19 digits.

use rangehold_map::Timestamp;

use super::KeyError;
use super::number::padded;

/// Ticks from the year 1 to 1970.
const TO_1970: i64 = 621_355_968_000_000_000;
/// The last tick of the year 9999, which is `DateTime.MaxValue.Ticks`.
const LAST: i64 = 3_155_378_975_999_999_999;

/// A key in the order of time. All writes of one moment go to the end of the table: see [`hash_prefixed`](super::hash_prefixed).
///
/// Fails for a time outside of the years 1 to 9999.
pub fn ticks(time: Timestamp) -> Result<String, KeyError> {
    padded(since_year_one(time)?, 19)
}

/// A key in the reverse order of time, so that the newest entity is the first of its partition.
///
/// Fails for a time outside of the years 1 to 9999.
pub fn reversed_ticks(time: Timestamp) -> Result<String, KeyError> {
    padded(LAST.unsigned_abs() - since_year_one(time)?, 19)
}

/// The time of a key that [`reversed_ticks`] made. Fails for any other text.
pub fn time_of_reversed(key: &str) -> Result<Timestamp, KeyError> {
    let is_number = key.len() == 19 && key.bytes().all(|byte| byte.is_ascii_digit());
    let ticks: Option<i64> = key.parse().ok().filter(|ticks| is_number && *ticks <= LAST);
    let ticks = ticks.ok_or_else(|| KeyError(format!("the key {key:?} does not hold reversed ticks")))?;
    Ok(Timestamp::from_ticks(LAST - ticks - TO_1970))
}

fn since_year_one(time: Timestamp) -> Result<u64, KeyError> {
    let ticks = time.ticks().checked_add(TO_1970).filter(|ticks| (0..=LAST).contains(ticks));
    let ticks = ticks.ok_or_else(|| {
        KeyError(format!("{} ticks since 1970 are not in the years 1 to 9999", time.ticks()))
    })?;
    Ok(ticks.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rangehold_protocol::time::parse_iso;

    use super::*;

    #[test]
    fn ticks_are_those_of_dot_net() {
        let time = parse_iso("2016-05-10T12:00:00Z").expect("a time");
        assert_eq!(ticks(time), Ok("0635984784000000000".to_owned()));
        assert_eq!(reversed_ticks(time), Ok("2519394191999999999".to_owned()));
        assert_eq!(reversed_ticks(Timestamp::MAX_DATE_TIME), Ok("0".repeat(19)));
        assert!(ticks(Timestamp::from_ticks(i64::MAX)).is_err());
        assert!(time_of_reversed("12").is_err());
    }

    proptest! {
        #[test]
        fn a_later_time_has_the_smaller_reversed_key(a in -TO_1970..LAST - TO_1970, b in -TO_1970..LAST - TO_1970) {
            let key = |ticks| reversed_ticks(Timestamp::from_ticks(ticks)).expect("it is in range");
            prop_assert_eq!(key(a).cmp(&key(b)), b.cmp(&a));
            prop_assert_eq!(time_of_reversed(&key(a)), Ok(Timestamp::from_ticks(a)));
        }
    }
}
