//! Creating and opening global maps.

use rangehold_shardmap::{
    Category, Code, CreateMode, LoadPolicy, Location, LookIn, ManagerOptions, ShardMapManager,
};

use super::world::{Ranges, check, code};

on_both_stores! {
    /// Acceptance 12, 13: a second creation is refused, or empties the store, as was asked for.
    async fn a_store_is_kept_or_replaced(world) {
        let place = world.database("global");
        let create = |mode| ShardMapManager::create(place.clone(), mode, world.options());
        let manager = create(CreateMode::KeepExisting).await.unwrap();
        manager.create_list_map::<i32>("customers").await.unwrap();
        assert_eq!(code(create(CreateMode::KeepExisting).await), "Factory/StoreAlreadyExists");
        assert_eq!(world.second().await.shard_maps().await.unwrap().len(), 1);
        create(CreateMode::ReplaceExisting).await.unwrap();
        assert_eq!(world.second().await.shard_maps().await.unwrap(), []);
    }

    /// Acceptance 14, 15, 16: a store is opened lazily and eagerly; where there is none, that is said.
    async fn a_store_is_opened(world) {
        let ranges = Ranges::new(world).await;
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        ranges.map.add(&10, None, &ranges.shards[1]).await.unwrap();
        for (load, cached) in [(LoadPolicy::Lazy, 0), (LoadPolicy::Eager, 2)] {
            let options = ManagerOptions { load, ..world.options() };
            let opened = ShardMapManager::try_open(world.place("global"), options).await.unwrap().unwrap();
            let map = opened.range_map::<i32>("ranges").await.unwrap();
            assert_eq!(map.cached(), cached);
            let found = map.try_lookup(&15, LookIn::Cache).await.unwrap();
            assert_eq!(found.is_some(), cached > 0);
        }
        let plain = world.database("plain");
        assert!(ShardMapManager::try_open(plain.clone(), world.options()).await.unwrap().is_none());
        let missing = ShardMapManager::open(plain, world.options()).await;
        assert_eq!(code(missing), "Factory/StoreDoesNotExist");
    }

    /// A store of another major version is not touched.
    async fn a_store_of_another_version_is_refused(world) {
        let manager = world.manager().await;
        world.sql(manager.location(), "update @global_meta set version_major = 2");
        let refused = ShardMapManager::open(world.place("global"), world.options()).await;
        assert_eq!(code(refused), "Validation/StoreVersionMismatch");
        world.sql(manager.location(), "update @global_meta set version_major = 1, version_minor = 7");
        ShardMapManager::open(world.place("global"), world.options()).await.unwrap();
    }

    /// Acceptance 20: each place once, over all maps.
    async fn places_are_told_once(world) {
        let ranges = Ranges::new(world).await;
        let other = ranges.manager.create_list_map::<i64>("other").await.unwrap();
        other.create_shard(&ranges.places[0]).await.unwrap();
        let mut places = ranges.places.to_vec();
        places.sort();
        assert_eq!(ranges.manager.shard_locations().await.unwrap(), places);
    }

    /// The global map may live in the database of a shard, and nothing waits for itself.
    async fn a_shard_may_have_the_global_map(world) {
        let manager = world.manager().await;
        let map = manager.create_range_map::<i32>("ranges").await.unwrap();
        let here = map.create_shard(manager.location()).await.unwrap();
        let there = map.create_shard(&world.shards::<1>()[0]).await.unwrap();
        let all = map.add(&0, None, &here).await.unwrap();
        let [_, right] = map.split(&all, &100).await.unwrap();
        let moved = rangehold_shardmap::MappingChange { online: Some(false), shard: Some(&there) };
        map.update(&right, moved).await.unwrap();
        assert_eq!(map.get(&100).await.unwrap().shard(), &there);
        check(&manager, &[here.location().clone(), there.location().clone()]).await;
    }
}

/// Acceptance 35, 39: places are checked, and keep no secret.
#[test]
fn places_are_checked() {
    for port in [0, 1, 65535] {
        assert!(Location::postgres("db.example", port, "shop").is_ok());
    }
    for bad in
        ["postgres://db:65536/shop", "postgres://db:-1/shop", "postgres://:1/shop", "postgres://db/", "shop"]
    {
        assert!(Location::parse(bad).is_err(), "{bad}");
    }
    for good in ["postgres://db:5433/shop", "postgres://[::1]:5433/shop", "sqlite:/var/lib/shop.db"] {
        assert_eq!(Location::parse(good).unwrap().to_string(), good);
    }
    assert_eq!(Location::parse("postgres://DB/x").unwrap(), Location::parse("postgres://db:5432/x").unwrap());
    assert!(Location::parse("postgres://me:secret@db/x").unwrap_err().to_string().contains("credentials"));
    assert!(Location::postgres(&"s".repeat(129), 1, "shop").is_err());
}

/// Acceptance 36: category and code survive being written down.
#[test]
fn codes_are_read_as_they_are_written() {
    for code in Code::ALL {
        assert_eq!(code.to_string().parse::<Code>().unwrap(), code);
    }
    let unknown = "Nonsense".parse::<Code>().unwrap_err();
    assert_eq!((unknown.category(), unknown.code()), (Category::General, Code::InvalidArgument));
    assert!(!unknown.retry() && Code::PendingOperation.retry());
}
