//! Patterns of names: any pattern is compiled or refused, and what matches begins with the literal prefix.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rangehold_protocol::object::glob::Glob;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (pattern, name) = text.split_once('\0').unwrap_or((text, text));
    if let Ok(glob) = Glob::new(pattern) {
        assert!(
            !glob.matches(name) || name.starts_with(glob.literal_prefix()),
            "{pattern:?} matches {name:?}"
        );
    }
});
