//! Every limit of the crate, with the reason for its number.

use std::time::Duration;

/// The longest name of a shard map, in characters. It is the limit of the elastic database library.
pub const MAP_NAME_CHARACTERS_MAX: usize = 50;
/// The longest name of a server, in characters. It is the limit of the elastic database library.
pub const SERVER_CHARACTERS_MAX: usize = 128;
/// The longest name of a PostgreSQL database, in bytes. PostgreSQL cuts longer names.
pub const DATABASE_BYTES_MAX: usize = 63;
/// The longest path of a SQLite database, in bytes.
pub const SQLITE_PATH_BYTES_MAX: usize = 1024;
/// The longest text that names the holder of a lock, in bytes.
pub const LOCK_OWNER_BYTES_MAX: usize = 256;
/// The most mappings that one operation adds. Its plan is one row of the log, with about 300 bytes for each mapping.
pub const MAPPINGS_PER_OPERATION_MAX: usize = 20_000;
/// How many steps a statement of SQLite runs before it checks whether its rows are still wanted: about 20 us.
pub const SQLITE_STEPS_BETWEEN_LOOKS: i32 = 1_000;
/// After this time, a server is asked a second time to stop a statement, because the first request may have arrived
/// before the statement.
pub const CANCEL_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The most rows that are sent before their answers are awaited.
pub const ROWS_IN_FLIGHT_MAX: usize = 256;
/// The most rows that one statement inserts, or deletes by their ids. A statement may have 65,535 values, and a row has up
/// to 13.
pub const ROWS_PER_STATEMENT_MAX: usize = 1_000;
/// A change of more mappings than this takes its numbers in a transaction of its own, so that changes of other maps do not
/// wait for it, and reads all mappings of the map in a shard at once.
pub const MAPPINGS_OF_A_SHORT_CHANGE_MAX: usize = 64;
/// The most fences that one transaction closes at once. Each takes one of the locks that all transactions of the server share,
/// of which PostgreSQL has 6,400 by default.
pub const FENCES_CLOSED_AT_ONCE_MAX: usize = 256;
/// The most transactions in which keys with more fences than this are closed. It takes two, if the mappings stay as they are
/// meanwhile.
pub const CLOSING_TRANSACTIONS_MAX: usize = 4;
/// The connections to one database that are kept for errands: short transactions of a process that has another one open.
/// They are apart from the others, so that an errand never waits for a transaction that waits for an errand.
pub const ERRAND_CONNECTIONS_PER_DATABASE: usize = 2;
/// The most intervals of keys for which a comparison asks the global map one by one. For more, it reads all from the first
/// to the last.
pub const INTERVALS_ASKED_ALONE_MAX: usize = 64;
/// The most mappings that are read from the global map at once. A row that was read takes about 1 KiB of memory until it is
/// in the cache.
pub const MAPPINGS_PER_READ_MAX: usize = 5_000;
/// How long an owner's lease on an operation lasts by default. The owner renews it while it works.
pub const LEASE: Duration = Duration::from_secs(10);
/// The shortest time after which a server ends the session of a process that stopped inside a transaction. A process
/// with a shorter lease still needs time between two statements.
pub const STOPPED_WITHIN_MIN: Duration = Duration::from_secs(2);
/// How often a lease is renewed while it lasts.
pub const RENEWALS_PER_LEASE: u32 = 3;
/// The first and the longest pause between two looks at the operation of another process.
pub const PENDING_PAUSE_MIN: Duration = Duration::from_millis(5);
/// See [`PENDING_PAUSE_MIN`].
pub const PENDING_PAUSE_MAX: Duration = Duration::from_millis(250);
/// The most operations of other processes that one call waits for or ends before it gives up.
pub const PENDING_MET_MAX: usize = 64;
/// How often a step is tried again after a failure that may pass. It is the number of the elastic database library.
pub const STEP_RETRIES_MAX: u32 = 5;
/// The first and the longest pause between two attempts of a step.
pub const STEP_PAUSE_MIN: Duration = Duration::from_millis(20);
/// See [`STEP_PAUSE_MIN`].
pub const STEP_PAUSE_MAX: Duration = Duration::from_secs(1);
/// The most connections with management credentials that are kept to one database.
pub const CONNECTIONS_PER_DATABASE_MAX: usize = 8;
/// A connection without traffic for this time is probed, to notice a server that is gone.
pub const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
/// The time between two probes.
pub const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
/// The most probes in a row that may stay unanswered.
pub const KEEPALIVE_PROBES_MAX: u32 = 3;
/// How long sent data may stay unacknowledged. After that the connection is given up.
pub const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(60);
/// How long connecting may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a transaction waits for a row or a file that another transaction writes.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long transactions on keys that go offline may take to end by themselves, if the caller does not say.
pub const DRAIN_GRACE: Duration = Duration::from_secs(5);
/// The most mappings that a cache of one map holds.
pub const CACHED_MAPPINGS_MAX: usize = 4_000_000;
/// The most operations that the janitor looks at in one round.
pub const OPERATIONS_PER_ROUND_MAX: usize = 1_000;
/// The most connections with routing credentials that are kept to one shard, if a pool is not told otherwise.
pub const ROUTED_CONNECTIONS_PER_SHARD: usize = 16;
/// How long a caller waits for one of them.
pub const ROUTED_CONNECTION_WAIT: Duration = Duration::from_secs(10);
/// After a shard could not be reached, the first pause between two looks at the global map, and the longest.
pub const LOOK_AGAIN_MIN: Duration = Duration::from_secs(5);
/// See [`LOOK_AGAIN_MIN`].
pub const LOOK_AGAIN_MAX: Duration = Duration::from_secs(30);
/// The most unreachable mappings whose last look is remembered.
pub const BACKED_OFF_MAPPINGS_MAX: usize = 100_000;
/// The most shards that one query holds open. Each of them is a connection.
pub const QUERY_SHARDS_MAX: usize = 1_000;
/// How many shards a query asks at the same time, if it does not say.
pub const QUERY_SHARDS_AT_ONCE: usize = 16;
/// How long each shard of a query may take to answer, if the query does not say. It is the number of the elastic
/// database library.
pub const QUERY_SHARD_WITHIN: Duration = Duration::from_secs(30);
/// The most looks of a query at the global map until its snapshots fit.
pub const QUERY_ROUNDS_MAX: usize = 32;
/// The most ranges that one call makes ahead.
pub const RANGES_AHEAD_MAX: usize = 1_000;
/// The number of shards on which a script runs at the same time, after the first shard has it.
pub const ROLLOUT_SHARDS_AT_ONCE: usize = 4;
