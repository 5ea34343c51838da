//! The counts of changes in a shard, by which transactions see that no mapping has changed.

use rangehold_testkit::needs;

use super::world::Ranges;
use crate::support::stores::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_and_a_recovery_mend_the_counts() {
    needs!(PostgreSql);
    let world = World::postgres();
    let ranges = Ranges::new(&world).await;
    let (manager, a) = (&ranges.manager, &ranges.places[0]);
    ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
    let differ = "select count(*) from @local_writes where count <> pg_sequence_last_value(sequence)";
    for upgrades in [true, false] {
        world.sql(a, "select setval(sequence, count + 32) from @local_writes");
        assert_eq!(world.sql(a, differ), "1");
        if upgrades {
            assert!(manager.upgrade().await.unwrap().iter().all(|(_, upgraded)| upgraded.is_ok()));
        } else {
            let mended = manager.mend_counts().await.unwrap();
            assert_eq!(mended.len(), 3);
            let counts: u64 = mended.into_iter().map(|(_, mended)| mended.unwrap()).sum();
            assert_eq!(counts, 1);
        }
        assert_eq!(world.sql(a, differ), "0");
    }
}
