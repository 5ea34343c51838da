//! Every limit of the crate, with the reason for its number.

use std::time::Duration;

/// The longest name of a shard map, in characters: as the elastic database library has it.
pub const MAP_NAME_CHARACTERS_MAX: usize = 50;
/// The longest name of a server, in characters: as the elastic database library has it.
pub const SERVER_CHARACTERS_MAX: usize = 128;
/// The longest name of a PostgreSQL database, in bytes: PostgreSQL cuts longer ones.
pub const DATABASE_BYTES_MAX: usize = 63;
/// The longest path of a SQLite database, in bytes.
pub const SQLITE_PATH_BYTES_MAX: usize = 1024;
/// The longest text that names the holder of a lock, in bytes.
pub const LOCK_OWNER_BYTES_MAX: usize = 256;
/// How many mappings one operation adds at most: its plan is one row of the log, about 300 bytes each.
pub const MAPPINGS_PER_OPERATION_MAX: usize = 20_000;
/// How many steps a statement of SQLite runs before it checks whether its rows are still wanted: about 20 us.
pub const SQLITE_STEPS_BETWEEN_LOOKS: i32 = 1_000;
/// After how long a server is asked a second time to stop a statement, because the first request may have
/// arrived before the statement.
pub const CANCEL_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How many rows are sent before their answers are awaited.
pub const ROWS_IN_FLIGHT_MAX: usize = 256;
/// How long an owner's lease on an operation lasts by default. The owner renews it while it works.
pub const LEASE: Duration = Duration::from_secs(10);
/// How often a lease is renewed while it lasts.
pub const RENEWALS_PER_LEASE: u32 = 3;
/// The first and the longest pause between two looks at the operation of another process.
pub const PENDING_PAUSE_MIN: Duration = Duration::from_millis(5);
/// See [`PENDING_PAUSE_MIN`].
pub const PENDING_PAUSE_MAX: Duration = Duration::from_millis(250);
/// How many operations of other processes one call waits for or ends before it gives up.
pub const PENDING_MET_MAX: usize = 64;
/// How often a step is tried again after a failure that may pass: as the elastic database library has it.
pub const STEP_RETRIES_MAX: u32 = 5;
/// The first and the longest pause between two trials of a step.
pub const STEP_PAUSE_MIN: Duration = Duration::from_millis(20);
/// See [`STEP_PAUSE_MIN`].
pub const STEP_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How many connections with management credentials are kept to one database.
pub const CONNECTIONS_PER_DATABASE_MAX: usize = 8;
/// After how long without traffic a connection is probed, to notice a server that is gone.
pub const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
/// How often it is probed then.
pub const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
/// How many probes in a row may stay unanswered.
pub const KEEPALIVE_PROBES_MAX: u32 = 3;
/// How long sent data may stay unacknowledged before the connection is given up.
pub const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(60);
/// How long connecting may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a transaction waits for a row or a file that another one writes.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long transactions on keys that go offline may take to end by themselves, by default.
pub const DRAIN_GRACE: Duration = Duration::from_secs(5);
/// How many mappings a cache of one map holds.
pub const CACHED_MAPPINGS_MAX: usize = 4_000_000;
/// How many operations the janitor looks at in one round.
pub const OPERATIONS_PER_ROUND_MAX: usize = 1_000;
/// How many connections with routing credentials are kept to one shard, unless a pool is told otherwise.
pub const ROUTED_CONNECTIONS_PER_SHARD: usize = 16;
/// How long a caller waits for one of them.
pub const ROUTED_CONNECTION_WAIT: Duration = Duration::from_secs(10);
/// After a shard could not be reached: the first pause between two looks at the global map, and the longest.
pub const LOOK_AGAIN_MIN: Duration = Duration::from_secs(5);
/// See [`LOOK_AGAIN_MIN`].
pub const LOOK_AGAIN_MAX: Duration = Duration::from_secs(30);
/// For how many unreachable mappings the last look is remembered.
pub const BACKED_OFF_MAPPINGS_MAX: usize = 100_000;
/// How many shards one query holds open: each is a connection.
pub const QUERY_SHARDS_MAX: usize = 1_000;
/// How many shards a query asks at the same time, by default.
pub const QUERY_SHARDS_AT_ONCE: usize = 16;
/// How long each shard of a query may take to answer, by default: as in the elastic database library.
pub const QUERY_SHARD_WITHIN: Duration = Duration::from_secs(30);
/// How often a query looks at the global map until its snapshots fit.
pub const QUERY_ROUNDS_MAX: usize = 32;
/// How many ranges are made ahead in one call.
pub const RANGES_AHEAD_MAX: usize = 1_000;
/// On how many shards a script runs at the same time, once the first shard has it.
pub const ROLLOUT_SHARDS_AT_ONCE: usize = 4;
