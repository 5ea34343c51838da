//! Two global maps over one shard, and local maps that were lost: a command leads out of each state.

use rangehold_shardmap::recovery::{Identity, Resolution};
use rangehold_shardmap::{CreateMode, Location, ShardMapManager, ShardUpdate};

use super::world::{Ranges, check, code};
use crate::support::roles::APPLICATION;
use crate::support::stores::World;

/// Another global map with a map of the same name.
async fn another(world: &World) -> ShardMapManager {
    let place = world.database("global_2");
    ShardMapManager::create(place, CreateMode::KeepExisting, world.options()).await.unwrap()
}

/// How many maps of a name a shard has.
fn named(world: &World, place: &Location) -> String {
    world.sql(place, "select count(*) from @local_maps where name = 'ranges'")
}

/// A second open map of the same name, as an earlier version allowed it. Its row is found first.
fn add_second_map(world: &World, place: &Location) {
    let other = "00000000-0000-4000-8000-00000000000c";
    world.sql(
        place,
        &format!(
            "insert into @local_maps (map_id, name, kind, key_type, epoch)
                select '{other}', name, kind, key_type, epoch from @local_maps;
            insert into @local_shards (map_id, shard_id, version, protocol, server, port, database, online, epoch)
                select '{other}', '{other}', '{other}', protocol, server, port, database, online, epoch from @local_shards;
            update @local_maps set epoch = epoch where map_id <> '{other}'"
        ),
    );
}

async fn identities(manager: &ShardMapManager, place: &Location) -> Vec<Identity> {
    let found = manager.recovery().detect(place, None).await.unwrap();
    found.iter().map(|found| found.identity().clone()).collect()
}

on_both_stores! {
    /// A second map of the same name is refused, and says what to do: the first one is retired.
    async fn one_name_in_one_shard_means_one_map(world) {
        let ranges = Ranges::new(world).await;
        let a = &ranges.places[0];
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let second = another(world).await;
        let map = second.create_range_map::<i32>("Ranges").await.unwrap();
        let error = map.create_shard(a).await.unwrap_err();
        assert_eq!(error.code().to_string(), "ShardNotValid");
        assert!(error.to_string().contains("--retire"), "{error}");
        assert_eq!(code(second.recovery().attach(a, None).await), "Recovery/ShardMapAlreadyExists");
        ranges.check().await;
        assert_eq!(second.recovery().retire(a, Some("ranges")).await.unwrap(), 1);
        assert_eq!(world.sql(a, "select count(*) from @local_mappings"), "0");
        let shard = map.create_shard(a).await.unwrap();
        map.add(&0, Some(&20), &shard).await.unwrap();
        check(&second, std::slice::from_ref(a)).await;
        assert_eq!(named(world, a), "0");
        assert_eq!(world.sql(a, "select count(*) from @local_maps"), "1");
    }

    /// Two open maps of one name, as an earlier version allowed them: `check` shows the one that is not the global
    /// map's, and retiring it leads out.
    async fn a_second_map_from_before_is_shown_and_retired(world) {
        let ranges = Ranges::new(world).await;
        let a = &ranges.places[0];
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        add_second_map(world, a);
        assert!(identities(&ranges.manager, a).await.contains(&Identity::NotInMap));
        assert_eq!(ranges.manager.recovery().retire(a, None).await.unwrap(), 1);
        assert_eq!(identities(&ranges.manager, a).await, [Identity::Same]);
        ranges.check().await;
        if world.is_postgres() {
            // The name means the map that is open.
            world.sql_as(APPLICATION, a, "begin; select @enter('ranges', 5); select @enter('Ranges', 5); commit");
        }
    }

    /// Another global map took the name in a shard. The shard is not opened there again beside the other map.
    async fn a_shard_is_not_opened_beside_another_map_of_its_name(world) {
        let ranges = Ranges::new(world).await;
        let (a, recovery) = (&ranges.places[0], ranges.manager.recovery());
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let copy = world.copy(a, "copy");
        let second = another(world).await;
        let map = second.create_range_map::<i32>("Ranges").await.unwrap();
        assert_eq!(second.recovery().retire(a, None).await.unwrap(), 1);
        map.create_shard(a).await.unwrap();
        let lost = || async {
            let found = recovery.detect(a, None).await.unwrap();
            found.into_iter().find(|found| found.identity() == &Identity::Lost).unwrap()
        };
        let error = recovery.resolve(lost().await, Resolution::KeepGlobal).await.unwrap_err();
        assert_eq!(error.code().to_string(), "ShardNotValid");
        assert!(error.to_string().contains("--retire"), "{error}");
        assert_eq!(world.sql(a, "select count(*) from @local_maps"), "1");
        recovery.retire(a, None).await.unwrap();
        recovery.resolve(lost().await, Resolution::KeepGlobal).await.unwrap();
        ranges.check().await;
        // The same for a shard that changes its place.
        add_second_map(world, &copy);
        let to = ShardUpdate { online: None, location: Some(copy.clone()) };
        let error = ranges.map.update_shard(&ranges.map.shard(a).await.unwrap(), &to).await.unwrap_err();
        assert_eq!(error.code().to_string(), "ShardNotValid");
        assert!(error.to_string().contains("--retire"), "{error}");
        ranges.check().await;
        recovery.retire(&copy, None).await.unwrap();
        ranges.map.update_shard(&ranges.map.shard(a).await.unwrap(), &to).await.unwrap();
        check(&ranges.manager, &[copy]).await;
    }

    /// Replacing a global map closes its shards. The same databases serve a new map of the same name.
    async fn replacing_a_global_map_retires_it_in_the_shards(world) {
        let ranges = Ranges::new(world).await;
        let a = &ranges.places[0];
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let place = world.place("global");
        let fresh = ShardMapManager::create(place, CreateMode::ReplaceExisting, world.options()).await.unwrap();
        assert_eq!(world.sql(a, "select count(*) from @local_mappings"), "0");
        let map = fresh.create_range_map::<i32>("ranges").await.unwrap();
        let shard = map.create_shard(a).await.unwrap();
        map.add(&0, Some(&5), &shard).await.unwrap();
        assert_eq!(named(world, a), "1");
        check(&fresh, std::slice::from_ref(a)).await;
    }

    /// The tables of a shard, or some of their rows, are lost: the global map gives them back.
    async fn a_local_map_that_is_lost_is_given_back(world) {
        let ranges = Ranges::new(world).await;
        let a = &ranges.places[0];
        ranges.map.add(&0, Some(&10), &ranges.shards[0]).await.unwrap();
        let rows = "delete from @local_mappings; delete from @local_shards; delete from @local_maps";
        let tables = match world.is_postgres() {
            true => "drop schema __shard_management cascade".to_owned(),
            false => ["meta", "epochs", "mappings", "shards", "maps", "closed_mappings"]
                .map(|table| format!("drop table @local_{table};")).concat(),
        };
        for loss in [rows, &tables] {
            world.sql(a, &format!("{}{loss}", if world.is_postgres() { "set client_min_messages = error; " } else { "" }));
            assert_eq!(identities(&ranges.manager, a).await, [Identity::Lost]);
            for how in [Resolution::KeepShard, Resolution::KeepGlobal] {
                let found = ranges.manager.recovery().detect(a, None).await.unwrap().remove(0);
                let resolved = ranges.manager.recovery().resolve(found, how).await;
                assert_eq!(resolved.is_ok(), how == Resolution::KeepGlobal, "{resolved:?}");
            }
            ranges.check().await;
            ranges.map.split(&ranges.map.get(&5).await.unwrap(), &5).await.unwrap();
            let (left, right) = (ranges.map.get(&2), ranges.map.get(&7));
            ranges.map.merge(&left.await.unwrap(), &right.await.unwrap()).await.unwrap();
            ranges.check().await;
        }
    }
}
