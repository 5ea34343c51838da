//! How people write keys: the same place of the key space as a number, an id or a time.
//!
//! A workload is about places. Each way to write them keeps their order. So places alone decide the truth, while the
//! finder sees nothing but the bytes.

use std::io::Write;

use rangehold_map::{PartitionPrefix, TableId};
use time::OffsetDateTime;

/// Places of one tenant; a place in a way that knows tenants is a tenant and, within, microseconds or a
/// count.
pub(super) const TENANT: u64 = 1 << 50;

/// Milliseconds from 1970 to the times of place 0: the beginning of 2026.
const EPOCH: u64 = 1_767_225_600_000;
const DAY: u64 = 86_400_000_000;

/// Where the ways to write times end, thousands of years from now; places beyond are written as this one.
const END: u64 = 1 << 57;
/// The same of snowflake ids, whose milliseconds have 41 bits.
const SNOWFLAKE_END: u64 = 1 << 50;

/// Appends a place, as a PartitionKey is written. A higher place is never written lower.
pub(super) type Shape = fn(u64, &mut Vec<u8>);

/// 16 hexadecimal digits.
pub(super) fn hex(place: u64, out: &mut Vec<u8>) {
    out.extend((0..16).rev().map(|digit| b"0123456789abcdef"[(place >> (4 * digit) & 0xF) as usize]));
}

/// 19 decimal digits, with zeros in front: as ticks are often written.
pub(super) fn decimal(place: u64, out: &mut Vec<u8>) {
    let _ = write!(out, "{place:019}");
}

/// A UUID of version 7 (RFC 9562): milliseconds, and further digits that look random.
pub(super) fn uuid7(place: u64, out: &mut Vec<u8>) {
    let place = place.min(END);
    let (time, part) = (EPOCH + place / 1_000, place % 1_000 * 4);
    let noise = mixed(place);
    let (variant, node) = (0x8000 | noise >> 50, noise & 0xFFFF_FFFF_FFFF);
    let _ = write!(out, "{:08x}-{:04x}-7{part:03x}-{variant:04x}-{node:012x}", time >> 16, time & 0xFFFF);
}

/// A ULID: the same in Crockford's base 32, which has no I, L, O and U.
pub(super) fn ulid(place: u64, out: &mut Vec<u8>) {
    let digit = |value: u64| b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[(value & 31) as usize];
    let place = place.min(END);
    let (time, part, noise) = (EPOCH + place / 1_000, place % 1_000, mixed(place));
    out.extend((0..10).rev().map(|at| digit(time >> (5 * at))));
    out.extend((0..4).rev().map(|at| digit(part >> (5 * at))));
    out.extend((0..12).map(|at| digit(noise >> (5 * at))));
}

/// A snowflake id: milliseconds, a machine, and a sequence, as one decimal number.
pub(super) fn snowflake(place: u64, out: &mut Vec<u8>) {
    let place = place.min(SNOWFLAKE_END);
    // Ids of this kind count from a day of their maker's choice; here it is fifteen years back.
    let time = 15 * 365 * DAY / 1_000 + place / 1_000;
    let _ = write!(out, "{:019}", (time << 22) + ((place % 1_000) << 12) + mixed(place) % 4_096);
}

/// A tenant and a time of ISO 8601: `tenant-0042|2026-11-21T10:00:19.500000Z`.
pub(super) fn tenant_and_time(place: u64, out: &mut Vec<u8>) {
    let _ = write!(out, "tenant-{:04}|", place / TENANT);
    time(place % TENANT, out);
}

/// A time of ISO 8601.
pub(super) fn time(place: u64, out: &mut Vec<u8>) {
    let place = place.min(END);
    let seconds = (EPOCH / 1_000 + place / 1_000_000) as i64;
    let time = OffsetDateTime::from_unix_timestamp(seconds).expect("a year of four digits");
    let (date, (hour, minute, second)) = (time.date(), time.to_hms());
    let _ = write!(out, "{date}T{hour:02}:{minute:02}:{second:02}.{:06}Z", place % 1_000_000);
}

/// A time without what separates: `20261121100019500000`.
pub(super) fn compact_time(place: u64, out: &mut Vec<u8>) {
    let from = out.len();
    time(place, out);
    let digits: Vec<u8> = out.drain(from..).filter(u8::is_ascii_digit).collect();
    out.extend(digits);
}

/// A tenant and its counter: `t0042-0000000000012345`.
pub(super) fn tenant_and_count(place: u64, out: &mut Vec<u8>) {
    let _ = write!(out, "t{:04}-{:016}", place / TENANT, place % TENANT);
}

/// Bits that look random, the same for the same place.
fn mixed(place: u64) -> u64 {
    let z = place.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (z ^ (z >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Writes stored keys: a place as the PartitionKey, a row as the RowKey.
pub(super) struct Keys {
    shape: Shape,
    /// Of all keys: account and table.
    head: Vec<u8>,
    bytes: Vec<u8>,
}

impl Keys {
    pub(super) fn new(shape: Shape) -> Self {
        let mut head = PartitionPrefix::entity("load", TableId(1), "").as_bytes().to_vec();
        // The closing byte of the empty PartitionKey; no text written here needs more than one.
        head.pop();
        Self { shape, head, bytes: Vec::new() }
    }

    /// The stored key of a row; valid until the next call.
    pub(super) fn key(&mut self, place: u64, row: u32) -> &[u8] {
        self.partition(place);
        let _ = write!(self.bytes, "{row:08x}\0");
        &self.bytes
    }

    /// The least place whose keys lie at or above a cut.
    pub(super) fn place_of(&mut self, cut: &[u8]) -> u64 {
        let (mut low, mut high) = (0, 1 << 62);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.partition(middle) < cut {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The PartitionKey of a place.
    pub(super) fn text(&self, place: u64) -> String {
        let mut text = Vec::new();
        (self.shape)(place, &mut text);
        String::from_utf8(text).expect("keys are written in ASCII")
    }

    fn partition(&mut self, place: u64) -> &[u8] {
        self.bytes.clear();
        self.bytes.extend_from_slice(&self.head);
        (self.shape)(place, &mut self.bytes);
        self.bytes.push(0);
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_place_keeps_the_order() {
        let base = 27_000_000_000_000;
        let places: Vec<u64> = [0, 1, 999, 1_000, 59_999_999, 60_000_000, DAY - 1, DAY, 31 * DAY, 800 * DAY]
            .map(|step| base + step)
            .into();
        for shape in [hex, decimal, uuid7, ulid, snowflake, tenant_and_time, tenant_and_count, compact_time]
            as [Shape; 8]
        {
            let mut keys = Keys::new(shape);
            let written: Vec<Vec<u8>> = places.iter().map(|&place| keys.partition(place).to_vec()).collect();
            assert!(written.is_sorted_by(|a, b| a < b), "{}", written[0].escape_ascii());
            for (place, key) in places.iter().zip(&written) {
                assert_eq!(keys.place_of(key), *place, "{}", key.escape_ascii());
            }
        }
    }

    #[test]
    fn places_are_written_as_people_do() {
        let text = |shape: Shape, place| {
            let mut out = Vec::new();
            shape(place, &mut out);
            String::from_utf8(out).unwrap()
        };
        let place = 3 * TENANT + 59 * DAY + 36_019_500_000;
        assert_eq!(text(tenant_and_time, place), "tenant-0003|2026-03-01T10:00:19.500000Z");
        assert_eq!(text(tenant_and_count, 3 * TENANT + 17), "t0003-0000000000000017");
        assert!(text(uuid7, 0).starts_with("019b76da-a800-7000-"), "{}", text(uuid7, 0));
        assert!(text(ulid, 0).starts_with("01KDVDNA00"), "{}", text(ulid, 0));
    }
}
