//! The documented examples, as goldens.

use rangehold_shardmap::{LookIn, RangeShardMap};

use crate::support::stores::letter;

/// A range map in words, a line a mapping.
async fn told(map: &RangeShardMap<i32>, places: &[rangehold_shardmap::Location]) -> Vec<String> {
    let mappings = map.mappings().await.unwrap();
    let line = |m: &rangehold_shardmap::RangeMapping<i32>| {
        let status = if m.is_online() { "" } else { " offline" };
        let high = m.high().map_or("end".to_owned(), i32::to_string);
        format!("[{},{high}) {}{status}", m.low(), letter(m.shard(), places))
    };
    mappings.iter().map(line).collect()
}

on_both_stores! {
    /// The list map of the library's documentation: 1 -> A, 3 -> B, 4 -> C, 6 -> B.
    async fn a_list_map(world) {
        let places = world.shards::<3>();
        let manager = world.manager().await;
        let map = manager.create_list_map::<i32>("customers").await.unwrap();
        let [a, b, c] = [&places[0], &places[1], &places[2]];
        let (a, b, c) = (map.create_shard(a).await.unwrap(), map.create_shard(b).await.unwrap(), map.create_shard(c).await.unwrap());
        for (key, shard) in [(1, &a), (3, &b), (4, &c), (6, &b)] {
            map.add(&key, shard).await.unwrap();
        }
        let all = map.mappings().await.unwrap();
        let told: Vec<_> = all.iter().map(|m| (*m.value(), letter(m.shard(), &places))).collect();
        assert_eq!(told, [(1, 'A'), (3, 'B'), (4, 'C'), (6, 'B')]);
        assert!(map.try_lookup(&2, LookIn::Store).await.unwrap().is_none());
    }

    /// The range map of the library's documentation: [1,50) A, [50,100) B, [100,200) C, [400,600) C; and
    /// `delete(offline(get(25)))`.
    async fn a_range_map(world) {
        let places = world.shards::<3>();
        let before = places.each_ref().map(|place| world.users_tables(place));
        let manager = world.manager().await;
        let map = manager.create_range_map::<i32>("customers").await.unwrap();
        let mut shards = Vec::new();
        for place in &places {
            shards.push(map.create_shard(place).await.unwrap());
        }
        for (low, high, shard) in [(1, 50, 0), (50, 100, 1), (100, 200, 2), (400, 600, 2)] {
            map.add(&low, Some(&high), &shards[shard]).await.unwrap();
        }
        assert_eq!(told(&map, &places).await, ["[1,50) A", "[50,100) B", "[100,200) C", "[400,600) C"]);
        let offline = map.offline(&map.get(&25).await.unwrap()).await.unwrap();
        assert_eq!(told(&map, &places).await[0], "[1,50) A offline");
        map.delete(&offline).await.unwrap();
        assert_eq!(told(&map, &places).await, ["[50,100) B", "[100,200) C", "[400,600) C"]);
        let [left, right] = map.split(&map.get(&150).await.unwrap(), &120).await.unwrap();
        assert_eq!(told(&map, &places).await, ["[50,100) B", "[100,120) C", "[120,200) C", "[400,600) C"]);
        let merged = map.merge(&left, &right).await.unwrap();
        assert_eq!((merged.low(), merged.high()), (&100, Some(&200)));
        let open = map.add(&600, None, &shards[0]).await.unwrap();
        assert_eq!(map.get(&i32::MAX).await.unwrap(), open);
        assert_eq!(places.each_ref().map(|place| world.users_tables(place)), before);
    }
}
