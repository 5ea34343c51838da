//! The example program, as a reader of the guide runs it.

#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../examples/shop.rs"]
mod shop_program;

use crate::support::roles::MANAGER;
use rangehold_shardmap::Location;

on_both_stores! {
    /// Two runs: tenants keep their places, and all orders are counted once.
    async fn shop(world) {
        let places: [Location; 3] = ["maps", "one", "two"].map(|name| world.database(name));
        let mut words = places.each_ref().map(Location::to_string);
        words[0] = words[0].replace("postgres://", &format!("postgres://{MANAGER}@"));
        for run in 1..=2 {
            let lines = shop_program::run(words.iter().cloned()).await.unwrap();
            assert_eq!(lines.len(), 7, "{lines:?}");
            let sums: Vec<&str> = lines[4..].iter().map(|line| line.split(',').next().unwrap()).collect();
            let expected = [(1, 649), (2, 390), (3, 120)].map(|(tenant, cents)| format!("tenant {tenant}: {} cents", cents * run));
            assert_eq!(sums, expected, "{lines:?}");
            let shard = |line: &str| line.rsplit(' ').next().unwrap().to_owned();
            assert_ne!(shard(&lines[0]), shard(&lines[1]), "tenants are spread: {lines:?}");
            assert_eq!(shard(&lines[0]), shard(&lines[3]), "a tenant stays: {lines:?}");
        }
    }
}
