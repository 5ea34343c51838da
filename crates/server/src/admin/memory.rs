//! How much memory this process holds.

/// Where Linux describes the process that reads it. Other systems do not have it.
const DESCRIPTION: &str = "/proc/self/status";

/// Bytes of memory that this process holds; `None` on a system that does not tell it in this way.
pub(super) fn resident_bytes() -> Option<u64> {
    resident_in(&std::fs::read_to_string(DESCRIPTION).ok()?)
}

/// The line is `VmRSS:    95132 kB`, and the kernel means KiB.
fn resident_in(description: &str) -> Option<u64> {
    let line = description.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_description_names_what_is_held() {
        let description = "Name:\trangehold\nVmHWM:\t   99000 kB\nVmRSS:\t   95132 kB\nThreads:\t9\n";
        assert_eq!(resident_in(description), Some(95_132 * 1024));
        for other in ["", "Name:\trangehold\n", "VmRSS:\t95132\n", "VmRSS:\tmany kB\n"] {
            assert_eq!(resident_in(other), None, "{other:?}");
        }
    }
}
