//! Every limit of the client.

use std::time::Duration;

use crate::retry::{Exponential, Policy};

/// Longest wait for an answer, from the moment at which the request is sent to the last byte of the answer. It is
/// longer than the 30 s in which the service itself gives up.
pub const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Longest wait for a connection.
pub const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// Time after which an idle connection is closed. Load balancers of the cloud close after four minutes.
pub const IDLE_WAIT: Duration = Duration::from_secs(60);
/// Most bytes of an answer: a page of 4 MiB as the service counts it, with room for metadata.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of an error's text that are kept, if the text is not in the service's form.
pub const ERROR_TEXT_BYTES_MAX: usize = 1024;
/// Bytes of a batch that are left free for the service's own count of what surrounds the parts.
pub const BATCH_BYTES_SPARE: usize = 64 * 1024;
/// How often a sequence tries one reservation, unless its options say otherwise.
pub const SEQUENCE_TRIES: u32 = 50;
/// Callers that one reservation serves.
pub const SEQUENCE_ROUND_MAX: usize = 10_000;
/// The same with claims: the other change of the batch is that of the counter.
pub const SEQUENCE_STRICT_ROUND_MAX: usize = 99;
/// For how long a sequence takes its entity to be as it left it itself. If another client was faster after all, that costs a
/// request.
pub const SEQUENCE_KNOWN_FOR: Duration = Duration::from_millis(10);
/// Merges of a sequence after which it reads its entity again, so that other clients are faster now and then.
pub const SEQUENCE_MERGES_MAX: u32 = 3;
/// The wait after a try that met another client.
pub const SEQUENCE_WAIT: Exponential =
    Exponential { z: Duration::from_millis(4), min: Duration::ZERO, max: Duration::from_millis(200) };
/// Queries of a fan-out that begin at the same time.
pub const FAN_OUT_AT_ONCE: usize = 16;
/// How often one copy is written, if others write it at the same time.
pub const COPY_TRIES: u32 = 10;
/// Bytes that one request of a download asks for. Below [`ANSWER_BYTES_MAX`], which bounds every answer.
pub const DOWNLOAD_PIECE_BYTES: u64 = 8 * 1024 * 1024;
/// How often the client asks whether a rename of a folder has ended, and how long it waits in between: about ten minutes in all.
pub const FOLDER_ASKS_MAX: u32 = 70;
/// The wait before it asks again.
pub const FOLDER_WAIT: Exponential = Exponential {
    z: Duration::from_millis(50),
    min: Duration::from_millis(50),
    max: Duration::from_secs(10),
};
/// Jobs of a bulk job that are drawn from by chance.
pub const BULK_WINDOW: usize = 100_000;
/// Jobs of a bulk job at the same time.
pub const BULK_AT_ONCE: usize = 32;
/// How often a request of a bulk job is tried, and how long it waits in between: about a minute in all, so that a busy service slows a
/// job down and does not end it.
pub const BULK_RETRY: Policy = Policy::exponential(
    Exponential {
        z: Duration::from_millis(200),
        min: Duration::from_millis(100),
        max: Duration::from_secs(10),
    },
    12,
);
/// Entities to delete among whose batches the next one is drawn by chance. They are few, so that a job soon begins to delete.
pub const BULK_ENTITIES_WINDOW: usize = 20_000;
/// Spans into which a table is cut to find what is to be deleted.
pub const BULK_SPANS: usize = 16;
/// Spans that are read at the same time.
pub const BULK_READERS: usize = 8;
/// How often a batch of deletions is sent without the entity that it stumbled over, before the others go one by one.
pub const BULK_BATCH_TRIES: u32 = 4;
/// Partitions whose rate is watched at the same time.
pub const BULK_PARTITIONS: usize = 10_000;
/// Keys that are taken together to be cut into batches: as many as a page has entities.
pub const PAGE_ITEMS: usize = 1_000;
/// Guesses of one key on the way to the middle of a span. Keys with a long beginning in common take the most: about seven
/// guesses for each of these characters.
pub const PROBES_MAX: usize = 150;
