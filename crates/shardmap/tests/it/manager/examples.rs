//! The documented examples, as goldens.

use rangehold_shardmap::LookIn;

use super::world::{Ranges, told};

on_both_stores! {
    /// The list map of the library's documentation: 1 -> A, 3 -> B, 4 -> C, 6 -> B.
    async fn a_list_map(world) {
        let places = world.shards::<3>();
        let map = world.manager().await.create_list_map::<i32>("customers").await.unwrap();
        for (key, place) in [(1, &places[0]), (3, &places[1]), (4, &places[2])] {
            map.add(&key, &map.create_shard(place).await.unwrap()).await.unwrap();
        }
        map.add(&6, &map.shard(&places[1]).await.unwrap()).await.unwrap();
        assert_eq!(told(&map, &places).await, "1- A, 3- B, 4- C, 6- B");
        assert!(map.try_lookup(&2, LookIn::Store).await.unwrap().is_none());
    }

    /// The range map of the library's documentation: [1,50) A, [50,100) B, [100,200) C, [400,600) C; and
    /// `delete(offline(get(25)))`.
    async fn a_range_map(world) {
        let Ranges { places, shards, map, .. } = &Ranges::new(world).await;
        for (low, high, shard) in [(1, 50, 0), (50, 100, 1), (100, 200, 2), (400, 600, 2)] {
            map.add(&low, Some(&high), &shards[shard]).await.unwrap();
        }
        assert_eq!(told(map, places).await, "1-50 A, 50-100 B, 100-200 C, 400-600 C");
        let offline = map.offline(&map.get(&25).await.unwrap()).await.unwrap();
        assert_eq!(told(map, places).await, "1-50 A offline, 50-100 B, 100-200 C, 400-600 C");
        map.delete(&offline).await.unwrap();
        assert_eq!(told(map, places).await, "50-100 B, 100-200 C, 400-600 C");
        let [left, right] = map.split(&map.get(&150).await.unwrap(), &120).await.unwrap();
        assert_eq!(told(map, places).await, "50-100 B, 100-120 C, 120-200 C, 400-600 C");
        let merged = map.merge(&left, &right).await.unwrap();
        assert_eq!((merged.low(), merged.high()), (&100, Some(&200)));
        let open = map.add(&600, None, &shards[0]).await.unwrap();
        assert_eq!(map.get(&i32::MAX).await.unwrap(), open);
        for (index, place) in places.iter().enumerate() {
            assert_eq!(world.users_tables(place), format!("1 one of {index}\n50 fifty"), "the user's own tables stay");
        }
    }
}
