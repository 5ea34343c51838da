//! The `rangehold` program.

fn main() {}
