//! The stories: which names are used, and how the load grows.

/// A name of a second and of a number that is spread evenly over 64 bits.
pub(super) type NameOf = fn(u64, u64) -> String;

/// Names that are used side by side, each sort as much as the others.
#[derive(Clone, Copy)]
pub(super) struct Story {
    /// The name of its picture.
    pub(super) file: &'static str,
    pub(super) title: &'static str,
    pub(super) sorts: &'static [(&'static str, NameOf)],
    pub(super) minutes: u64,
    /// Writes each second at a minute; reads are five times as many.
    pub(super) writes: fn(u64) -> f64,
}

/// From 1,000 writes a second, twice as much after each 20 minutes, up to 16,000.
fn doubling(minute: u64) -> f64 {
    1_000.0 * f64::from(1_u32 << (minute / 20).min(4))
}

/// The same up to 32,000.
fn doubling_further(minute: u64) -> f64 {
    1_000.0 * f64::from(1_u32 << (minute / 20).min(5))
}

/// The same up to 4,000.
fn doubling_twice(minute: u64) -> f64 {
    1_000.0 * f64::from(1_u32 << (minute / 20).min(2))
}

fn digits(number: u64, count: usize) -> String {
    format!("{number:016x}")[..count].to_owned()
}

/// `2016-05-10-12-00-00`, and so on for each second.
fn clock(second: u64) -> String {
    let (hour, minute) = (12 + second / 3_600, second / 60 % 60);
    format!("2016-05-10-{hour:02}-{minute:02}-{:02}", second % 60)
}

fn uuid(number: u64) -> String {
    format!("{:08x}-{:04x}-4{:03x}", number >> 32, number >> 16 & 0xFFFF, number & 0xFFF)
}

pub(super) const STORIES: [Story; 6] = [
    Story {
        file: "random",
        title: "random names",
        sorts: &[("random", |_, number| uuid(number))],
        minutes: 100,
        writes: doubling,
    },
    Story {
        file: "six-digits",
        title: "<6 hex digits>-2016-05-10-12-00-00/file1",
        sorts: &[("six digits", |second, number| format!("{}-{}/file1", digits(number, 6), clock(second)))],
        minutes: 100,
        writes: doubling,
    },
    Story {
        file: "one-digit",
        title: "<1 hex digit>/2016-05-10-12-00-00/file1, one doubling too far",
        sorts: &[("one digit", |second, number| format!("{}/{}/file1", digits(number, 1), clock(second)))],
        minutes: 140,
        writes: doubling_further,
    },
    Story {
        file: "two-digits",
        title: "<2 hex digits>/2016-05-10-12-00-00/file1, one doubling further",
        sorts: &[("two digits", |second, number| format!("{}/{}/file1", digits(number, 2), clock(second)))],
        minutes: 140,
        writes: doubling_further,
    },
    Story {
        file: "folders",
        title: "images/animals/<uuid>, images/landscape/<uuid> and images/clouds/<number>",
        sorts: &[
            ("animals", |_, number| format!("images/animals/{}/1.jpg", uuid(number))),
            ("landscape", |_, number| format!("images/landscape/{}/1.jpg", uuid(number))),
            ("clouds", |second, _| format!("images/clouds/{second:08}.jpg")),
        ],
        minutes: 100,
        writes: |minute| doubling(minute).min(8_000.0),
    },
    Story {
        file: "by-the-hour",
        title: "2016-05-10-12/<uuid>: a prefix for each hour",
        sorts: &[("by the hour", |second, number| format!("{}/{}", &clock(second)[..13], uuid(number)))],
        minutes: 240,
        writes: doubling_twice,
    },
];
