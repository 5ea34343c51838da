//! Living with shards, on both stores: adopting, placing, rolling out.

use std::sync::Mutex;

use rangehold_shardmap::tenants::{Every, PlacementPolicy, Rollout, RolloutState};
use rangehold_shardmap::{Code, Location, MapKind, ShardKey, ShardKeyType, ShardMapManager, ShardUpdate};

use crate::support::stores::{World, letter};

/// Roll-out states in words.
fn words(states: &[(Location, RolloutState)]) -> Vec<&'static str> {
    let word = |(_, state): &(Location, RolloutState)| match state {
        RolloutState::Waiting => "waiting",
        RolloutState::Done { .. } => "done",
        RolloutState::OtherScript => "other",
        RolloutState::Failed { .. } => "failed",
    };
    states.iter().map(word).collect()
}

fn script(name: &str, script: &str) -> Rollout {
    Rollout { name: name.to_owned(), script: script.to_owned() }
}

/// Rolls a script out. Each shard that was begun must be told once, with its last state.
async fn rolled_out(
    manager: &ShardMapManager,
    rollout: &Rollout,
    places: &[Location],
) -> Vec<(Location, RolloutState)> {
    let told: Mutex<Vec<(Location, RolloutState)>> = Mutex::default();
    let watch =
        |place: &Location, state: &RolloutState| told.lock().unwrap().push((place.clone(), state.clone()));
    let states = manager.roll_out_watched(rollout, places, watch).await.unwrap();
    let mut told = told.into_inner().unwrap();
    let mut begun = states.clone();
    begun.retain(|(_, state)| *state != RolloutState::Waiting);
    begun.sort_by(|one, other| one.0.cmp(&other.0));
    told.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(told, begun);
    states
}

fn column_count(world: &World, place: &Location) -> String {
    let sql = match world.is_postgres() {
        true => "select count(*) from information_schema.columns where table_name = 'orders'",
        false => "select count(*) from pragma_table_info('orders')",
    };
    world.sql(place, sql)
}

on_both_stores! {
    /// New tenants go where the fewest are, never to a shard that is offline, and one who asks twice stays.
    async fn tenants_are_placed(world) {
        let places = world.shards::<3>();
        let map = world.manager().await.create_list_map::<i64>("tenants").await.unwrap();
        let nobody = map.provision(&1, PlacementPolicy::FewestTenants).await.unwrap_err();
        assert_eq!(nobody.code(), Code::ShardDoesNotExist);
        let mut shards = Vec::new();
        for place in &places {
            shards.push(map.create_shard(place).await.unwrap());
        }
        let missing = map.get(&1).await.unwrap_err();
        assert!(missing.to_string().contains("rangehold shards provision"), "{missing}");
        let mut placed = String::new();
        for tenant in 1..=4 {
            let provisioned = map.provision(&tenant, PlacementPolicy::FewestTenants).await.unwrap();
            assert!(provisioned.is_new);
            placed.push(letter(provisioned.mapping.shard(), &places));
        }
        assert_eq!(placed.chars().filter(|letter| "ABC".contains(*letter)).collect::<std::collections::BTreeSet<_>>().len(), 3);
        let again = map.provision(&4, PlacementPolicy::FewestTenants).await.unwrap();
        assert!(!again.is_new);
        let big = "x".repeat(10_000);
        for place in &places[1..] {
            for _ in 0..40 {
                world.sql(place, &format!("insert into orders values (9, '{big}')"));
            }
        }
        let smallest = map.provision(&5, PlacementPolicy::FewestBytes).await.unwrap();
        if !world.is_postgres() {
            // PostgreSQL presses such rows together.
            assert_eq!(smallest.mapping.shard().location(), &places[0]);
        }
        let shard = map.shard(&places[2]).await.unwrap();
        for place in &places[..2] {
            let away = map.shard(place).await.unwrap();
            map.update_shard(&away, &ShardUpdate { online: Some(false), location: None }).await.unwrap();
        }
        let only = map.provision(&6, PlacementPolicy::FewestBytes).await.unwrap();
        assert_eq!(only.mapping.shard().location(), shard.location());
        let sizes = map.sizes().await.unwrap();
        assert_eq!(sizes.iter().map(|size| size.mappings).sum::<usize>(), 6);
        assert!(sizes.iter().all(|size| size.bytes > Some(10_000)));
    }

    /// A shard that is down gets no tenants, and keeps nobody else from getting one.
    async fn a_shard_that_cannot_be_reached_gets_no_tenants(world) {
        let places = world.shards::<2>();
        let map = world.manager().await.create_list_map::<i64>("tenants").await.unwrap();
        for place in &places {
            map.create_shard(place).await.unwrap();
        }
        let hidden = world.hide(&places[0]);
        // Another process, which has no file open.
        let map = world.second().await.list_map::<i64>("tenants").await.unwrap();
        for (tenant, policy) in [(1, PlacementPolicy::FewestTenants), (2, PlacementPolicy::FewestTenants), (3, PlacementPolicy::FewestBytes)] {
            let provisioned = map.provision(&tenant, policy).await.unwrap();
            assert_eq!(provisioned.mapping.shard().location(), &places[1]);
        }
        let sizes = map.sizes().await.unwrap();
        let told: Vec<_> = sizes.iter().map(|size| (size.mappings, size.bytes.is_some())).collect();
        assert_eq!(told, [(0, false), (3, true)]);
        let other = world.hide(&places[1]);
        let map = world.second().await.list_map::<i64>("tenants").await.unwrap();
        let error = map.provision(&4, PlacementPolicy::FewestTenants).await.unwrap_err();
        assert!(error.to_string().contains("can be reached"), "{error}");
        other.show();
        hidden.show();
    }

    /// The next months are there before they begin; asked again, nothing is added.
    async fn ranges_are_made_ahead(world) {
        let places = world.shards::<2>();
        let manager = world.manager().await;
        manager.create_shard_map("months", MapKind::Range, ShardKeyType::DateTime).await.unwrap();
        let map = manager.range_map::<ShardKey>("months").await.unwrap();
        for place in &places {
            map.create_shard(place).await.unwrap();
        }
        let now = ShardKey::parse(ShardKeyType::DateTime, "2026-11-21T19:00:00").unwrap();
        let made = map.provision_ranges(Every::Month, 2, &now, PlacementPolicy::FewestTenants).await.unwrap();
        let told: Vec<_> = made.iter().map(|m| format!("{} {}", m.low(), letter(m.shard(), &places))).collect();
        assert_eq!(told.len(), 3);
        assert!(told[0].starts_with("2026-11-01") && told[2].starts_with("2027-01-01"), "{told:?}");
        assert_ne!(made[0].shard(), made[1].shard(), "the second goes where the first is not");
        assert!(map.provision_ranges(Every::Month, 2, &now, PlacementPolicy::FewestTenants).await.unwrap().is_empty());
        assert!(map.now().await.unwrap().unwrap() > now, "the clock goes forward");
    }

    /// The first shard alone; a failure stops; the same call goes on; a script that was rolled out is not
    /// changed.
    async fn scripts_are_rolled_out(world) {
        let places = world.shards::<3>();
        let manager = world.manager().await;
        let map = manager.create_list_map::<i64>("tenants").await.unwrap();
        for place in &places {
            map.create_shard(place).await.unwrap();
        }
        let wrong = script("1", "alter table orders add column city text; alter table nothing add column x int");
        let states = rolled_out(&manager, &wrong, &places).await;
        assert_eq!(words(&states), ["failed", "waiting", "waiting"]);
        assert_eq!(column_count(world, &places[0]), "2", "what the script did before it failed is undone");
        world.sql(&places[1], "alter table orders rename to elsewhere");
        let right = script("1", "alter table orders add column city text; update orders set city = 'x'");
        let states = rolled_out(&manager, &right, &places).await;
        assert_eq!(words(&states), ["done", "failed", "done"]);
        world.sql(&places[1], "alter table elsewhere rename to orders");
        assert_eq!(words(&manager.rollout_states(&right, &places).await), ["done", "waiting", "done"]);
        assert_eq!(words(&rolled_out(&manager, &right, &places).await), ["done", "done", "done"]);
        assert_eq!(column_count(world, &places[1]), "3");
        let changed = manager.roll_out(&script("1", "select 1"), &places).await.unwrap_err();
        assert!(changed.to_string().contains("give this one another name"), "{changed}");
        let open = manager.roll_out(&script("2", "commit; begin; select 1"), &places[..1]).await.unwrap();
        assert!(matches!(&open[0].1, RolloutState::Failed { message } if message.contains("leave BEGIN")), "{open:?}");
    }

    /// The database that was there before becomes a shard with all its tenants, and is not touched.
    async fn one_database_is_adopted(world) {
        let [place, other] = world.shards::<2>();
        let before = world.users_tables(&place);
        let manager = world.manager().await;
        manager.create_shard_map("tenants", MapKind::List, ShardKeyType::Int64).await.unwrap();
        let map = manager.list_map::<ShardKey>("tenants").await.unwrap();
        let (shard, count) = map.adopt(&place, "orders", "tenant").await.unwrap();
        assert_eq!((shard.location(), count), (&place, 2));
        assert_eq!(map.adopt(&place, "orders", "tenant").await.unwrap().1, 0);
        assert_eq!(world.users_tables(&place), before);
        assert!(map.adopt(&other, "orders", "note").await.is_err(), "a note is not a key");
        manager.create_shard_map("all", MapKind::Range, ShardKeyType::Text).await.unwrap();
        let all = manager.range_map::<ShardKey>("all").await.unwrap();
        assert_eq!(all.adopt(&place).await.unwrap().1, 1);
        assert_eq!(all.adopt(&place).await.unwrap().1, 0);
        let key = ShardKey::parse(ShardKeyType::Text, "anything").unwrap();
        assert_eq!(all.get(&key).await.unwrap().shard().location(), &place);
    }

    /// Keys of time are what the column means, in however many ways it is written there.
    async fn columns_of_time_are_adopted(world) {
        let [place] = world.shards::<1>();
        let (time, instant, span) = match world.is_postgres() {
            true => ("timestamp", "timestamptz", "interval"),
            false => ("text", "text", "text"),
        };
        // An interval, and a text that says the same.
        let long = if world.is_postgres() { "-27:03:04.5" } else { "-1.03:03:04.5" };
        world.sql(&place, &format!(
            "create table visits (day {time}, at {instant}, lasted {span}, told text default '1.02:03:04.50');
            insert into visits (day, at, lasted) values ('2026-11-22 05:06:07.5', '2026-11-22 05:06:07+02:00', '{long}'),
                ('2026-11-22T05:06:07.50', '2026-11-22 03:06:07+00:00', null), (null, null, '00:00:00')"
        ));
        let manager = world.manager().await;
        for (column, key_type, expected) in [
            ("day", ShardKeyType::DateTime, &["2026-11-22T05:06:07.5"][..]),
            ("at", ShardKeyType::DateTimeOffset, &["2026-11-22T03:06:07Z"]),
            ("lasted", ShardKeyType::TimeSpan, &["-1.03:03:04.5", "00:00:00"]),
            ("told", ShardKeyType::TimeSpan, &["1.02:03:04.5"]),
        ] {
            manager.create_shard_map(column, MapKind::List, key_type).await.unwrap();
            let map = manager.list_map::<ShardKey>(column).await.unwrap();
            assert_eq!(map.adopt(&place, "visits", column).await.unwrap().1, expected.len(), "{column}");
            let mapped = map.mappings().await.unwrap();
            let keys: Vec<_> = mapped.iter().map(|mapping| mapping.value().to_string()).collect();
            assert_eq!(keys, expected, "{column}");
        }
        world.sql(&place, if world.is_postgres() {
            "update visits set lasted = '1 month' where lasted = '0'"
        } else {
            "update visits set lasted = '1 month' where lasted = '00:00:00'"
        });
        let month = manager.list_map::<ShardKey>("lasted").await.unwrap().adopt(&place, "visits", "lasted").await;
        assert!(month.unwrap_err().to_string().contains("is not a key of type time-span"));
    }
}
