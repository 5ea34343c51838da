//! Projects. A client names one by its id or by its number, and lists name it by its number.

/// A number for a project, always the same: the digits of its id if it is a number, else one made from its letters.
pub fn project_number(project: &str) -> u64 {
    project.parse().unwrap_or_else(|_| {
        // Twelve digits, as the real ones have.
        100_000_000_000 + fnv1a(project) % 900_000_000_000
    })
}

/// The 64-bit hash FNV-1a.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
