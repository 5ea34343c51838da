//! Locks on mappings.

use std::time::Duration;

use rangehold_shardmap::{LockToken, MappingChange};

use super::world::{Ranges, code};

const LONG: Duration = Duration::from_secs(600);

on_both_stores! {
    /// Acceptance 77, 80: without the token nothing is changed; with it all is, and the lock stays.
    async fn a_locked_mapping_is_changed_by_its_holder(world) {
        let ranges = Ranges::new(world).await;
        let map = &ranges.map;
        let token = map.new_token();
        let mapping = map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let locked = map.lock(&mapping, token, "a move", LONG).await.unwrap();
        assert_eq!(locked.id(), mapping.id());
        let mismatch = "RangeShardMap/MappingLockOwnerMismatch";
        assert_eq!(code(map.offline(&locked).await), mismatch);
        assert_eq!(code(map.showing(map.new_token()).offline(&locked).await), mismatch);
        let holder = map.showing(token);
        let off = holder.offline(&locked).await.unwrap();
        assert_eq!(map.lock_of(&off).await.unwrap().unwrap().owner, "a move");
        assert_eq!(code(map.delete(&off).await), mismatch);
        let to_b = MappingChange { online: None, shard: Some(&ranges.shards[1]) };
        let moved = holder.update(&off, to_b).await.unwrap();
        assert_eq!(map.get(&5).await.unwrap().lock().unwrap().token, token);
        holder.delete(&moved).await.unwrap();
        ranges.check().await;
    }

    /// Acceptance 87, 90: both pieces of a split have the lock; a merge needs both tokens and keeps the left lock.
    async fn locks_go_through_split_and_merge(world) {
        let ranges = Ranges::new(world).await;
        let map = &ranges.map;
        let (one, two) = (map.new_token(), map.new_token());
        let mapping = map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let mapping = map.lock(&mapping, one, "one", LONG).await.unwrap();
        assert_eq!(code(map.split(&mapping, &5).await), "RangeShardMap/MappingLockOwnerMismatch");
        let [left, right] = map.showing(one).split(&mapping, &5).await.unwrap();
        assert_eq!([left.lock().unwrap().token, right.lock().unwrap().token], [one, one]);
        map.unlock(&left, one).await.unwrap();
        let right = map.unlock(&right, one).await.unwrap();
        let right = map.lock(&right, two, "two", LONG).await.unwrap();
        let left = map.lock(&left, one, "one", LONG).await.unwrap();
        for (left_token, right_token) in [(one, LockToken::NONE), (LockToken::NONE, two), (two, one)] {
            let merged = map.merge_showing((&left, left_token), (&right, right_token)).await;
            assert_eq!(code(merged), "RangeShardMap/MappingLockOwnerMismatch");
        }
        let merged = map.merge_showing((&left, one), (&right, two)).await.unwrap();
        assert_eq!(map.lock_of(&merged).await.unwrap().unwrap().token, one);
    }

    /// Acceptance 93, 94: what locks and frees, in both kinds of map; a look ignores locks.
    async fn locks_are_taken_once(world) {
        let ranges = Ranges::new(world).await;
        let list = ranges.manager.create_list_map::<i32>("list").await.unwrap();
        let shard = list.create_shard(&ranges.places[0]).await.unwrap();
        let point = list.add(&1, &shard).await.unwrap();
        let (one, two) = (list.new_token(), list.new_token());
        for useless in [LockToken::FORCE, LockToken::NONE] {
            assert_eq!(code(list.lock(&point, useless, "x", LONG).await), "ListShardMap/InvalidArgument");
        }
        list.lock(&point, one, "one", LONG).await.unwrap();
        assert_eq!(code(list.lock(&point, two, "two", LONG).await), "ListShardMap/MappingAlreadyLocked");
        assert_eq!(list.get(&1).await.unwrap(), point);
        assert_eq!(code(list.unlock(&point, two).await), "ListShardMap/MappingLockOwnerMismatch");
        assert_eq!(list.lock_of(&point).await.unwrap().unwrap().token, one);
        list.unlock(&point, LockToken::FORCE).await.unwrap();
        assert!(list.lock_of(&point).await.unwrap().is_none());
        assert_eq!(code(list.unlock(&point, one).await), "ListShardMap/MappingLockOwnerMismatch");
    }

    /// Acceptance 19, 95, 96: all locks of a token are freed at once, and nobody else's.
    async fn locks_are_freed_by_token(world) {
        let ranges = Ranges::new(world).await;
        let map = &ranges.map;
        let (one, two) = (map.new_token(), map.new_token());
        let mut mappings = Vec::new();
        for low in 0..4 {
            let mapping = map.add(&low, Some(&(low + 1)), &ranges.shards[0]).await.unwrap();
            let token = if low % 2 == 0 { one } else { two };
            mappings.push(map.lock(&mapping, token, "x", LONG).await.unwrap());
        }
        assert_eq!(map.unlock_all(one).await.unwrap(), 2);
        assert!(map.lock_of(&mappings[0]).await.unwrap().is_none());
        assert_eq!(map.lock_of(&mappings[1]).await.unwrap().unwrap().token, two);
        assert_eq!(map.unlock_all(LockToken::FORCE).await.unwrap(), 2);
    }

    /// A lock that is not renewed ends, and is then as if it were not there.
    async fn locks_end(world) {
        let ranges = Ranges::new(world).await;
        let map = &ranges.map;
        let (one, two) = (map.new_token(), map.new_token());
        let mapping = map.add(&0, None, &ranges.shards[0]).await.unwrap();
        let locked = map.lock(&mapping, one, "one", LONG).await.unwrap();
        map.renew_lock(&locked, one, Duration::ZERO).await.unwrap();
        assert!(map.lock_of(&mapping).await.unwrap().is_none());
        assert_eq!(code(map.renew_lock(&mapping, one, LONG).await), "RangeShardMap/MappingLockOwnerMismatch");
        assert_eq!(code(map.showing(one).offline(&mapping).await), "RangeShardMap/MappingLockOwnerMismatch");
        map.lock(&mapping, two, "two", LONG).await.unwrap();
        map.showing(two).offline(&mapping).await.unwrap();
    }
}
