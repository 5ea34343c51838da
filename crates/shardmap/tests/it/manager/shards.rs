//! The shards of a map.

use rangehold_shardmap::{Location, ShardUpdate};

use super::world::{Ranges, check, code};

on_both_stores! {
    /// Acceptance 37, 38, 40, 41: a shard is added with its local map, once, and removed from both places.
    async fn shards_come_and_go(world) {
        let manager = world.manager().await;
        let map = manager.create_list_map::<i32>("list").await.unwrap();
        let place = &world.shards::<1>()[0];
        let shard = map.create_shard(place).await.unwrap();
        assert_eq!(shard.location(), place);
        assert_eq!(map.shards().await.unwrap(), std::slice::from_ref(&shard));
        assert_eq!(map.shard(place).await.unwrap(), shard);
        assert_eq!(world.sql(place, "select count(*) from @local_shards"), "1");
        assert_eq!(code(map.create_shard(place).await), "ShardMap/ShardLocationAlreadyExists");
        map.delete_shard(&shard).await.unwrap();
        assert_eq!(world.sql(place, "select count(*) from @local_shards"), "0");
        assert_eq!(code(map.delete_shard(&shard).await), "ShardMap/ShardDoesNotExist");
        assert!(map.try_shard(place).await.unwrap().is_none());
        assert_eq!(code(map.shard(place).await), "ShardMap/ShardDoesNotExist");
        check(&manager, std::slice::from_ref(place)).await;
    }

    /// Acceptance 42, 43, 44, 45: each change makes a new version, and handles from before are refused, by
    /// the global map and by the shard.
    async fn versions_of_shards_are_checked(world) {
        let ranges = Ranges::new(world).await;
        let (map, old) = (&ranges.map, &ranges.shards[0]);
        map.validate_shard(old).await.unwrap();
        let off = ShardUpdate { online: Some(false), location: None };
        let new = map.update_shard(old, &off).await.unwrap();
        assert!(old.is_online() && !new.is_online() && new.version() != old.version());
        assert_eq!(map.shard(new.location()).await.unwrap(), new);
        assert_eq!(code(map.update_shard(old, &off).await), "ShardMap/ShardVersionMismatch");
        assert_eq!(code(map.delete_shard(old).await), "ShardMap/ShardVersionMismatch");
        assert_eq!(code(map.validate_shard(old).await), "Validation/ShardVersionMismatch");
        map.validate_shard(&new).await.unwrap();
        assert_eq!(map.update_shard(&new, &ShardUpdate::default()).await.unwrap(), new);
        ranges.check().await;
    }

    /// Acceptance 151: a shard that was removed says so itself.
    async fn a_removed_shard_is_not_valid(world) {
        let ranges = Ranges::new(world).await;
        ranges.map.delete_shard(&ranges.shards[0]).await.unwrap();
        assert_eq!(code(ranges.map.validate_shard(&ranges.shards[0]).await), "Validation/ShardDoesNotExist");
    }

    /// A shard with mappings stays; one of another map is refused.
    async fn a_shard_with_mappings_stays(world) {
        let ranges = Ranges::new(world).await;
        ranges.map.add(&0, None, &ranges.shards[0]).await.unwrap();
        assert_eq!(code(ranges.map.delete_shard(&ranges.shards[0]).await), "ShardMap/ShardHasMappings");
        let other = ranges.manager.create_range_map::<i32>("other").await.unwrap();
        assert_eq!(code(other.delete_shard(&ranges.shards[0]).await), "General/InvalidArgument");
        assert_eq!(code(other.add(&0, None, &ranges.shards[0]).await), "General/InvalidArgument");
    }

    /// Acceptance 76: shards are equal by what they are, also when they come with mappings.
    async fn shards_are_compared_by_what_they_are(world) {
        let ranges = Ranges::new(world).await;
        for low in 0..6 {
            let shard = &ranges.shards[usize::try_from(low % 2).unwrap()];
            ranges.map.add(&low, Some(&(low + 1)), shard).await.unwrap();
        }
        let mut seen = Vec::new();
        for mapping in ranges.map.mappings().await.unwrap() {
            if !seen.contains(mapping.shard()) {
                seen.push(mapping.shard().clone());
            }
        }
        assert_eq!(seen, ranges.shards[..2]);
    }

    /// A shard's place is changed only to where the shard says itself that it is.
    async fn a_shard_changes_its_place(world) {
        let ranges = Ranges::new(world).await;
        let elsewhere = world.database("elsewhere");
        let to = |location: &Location| ShardUpdate { online: None, location: Some(location.clone()) };
        let refused = ranges.map.update_shard(&ranges.shards[0], &to(&elsewhere)).await;
        assert_eq!(code(refused), "ShardMap/ShardNotValid");
        // Another name of the same server, or of the same file.
        let same = world.other_name(ranges.shards[0].location());
        let moved = ranges.map.update_shard(&ranges.shards[0], &to(&same)).await.unwrap();
        assert_eq!(moved.location(), &same);
        ranges.map.validate_shard(&moved).await.unwrap();
        let taken = ranges.map.update_shard(&ranges.shards[1], &to(&ranges.places[1])).await.unwrap();
        assert_eq!(taken.location(), &ranges.places[1]);
        ranges.check().await;
    }
}
