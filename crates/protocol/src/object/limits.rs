//! The limits of buckets and objects, with the documents or clients that give them.

/// Greatest length of an object's name in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 1024;
/// Items and prefixes of one page of a listing; also used where the request says nothing.
pub const PAGE_ITEMS_MAX: usize = 1000;
/// Sources of one compose.
pub const COMPOSE_SOURCES_MAX: usize = 32;
/// Size of the greatest object: 5 TiB.
pub const OBJECT_BYTES_MAX: u64 = 5 << 40;
/// So many bytes of an object stand in the same row as what is known of it; the bytes of a larger one have a row of their own,
/// or files. A change of an object's metadata writes them again, so they are few.
pub const BYTES_BESIDE_FIELDS_MAX: usize = 4 << 10;
/// Custom metadata of an object: names and values together, in bytes.
pub const METADATA_BYTES_MAX: usize = 8 << 10;
/// Contexts of one object.
pub const CONTEXTS_MAX: usize = 50;
/// Greatest length of a context's name and value in bytes.
pub const CONTEXT_BYTES_MAX: usize = 256;
/// Chunks of a resumable upload are multiples of this, except the last one.
pub const UPLOAD_CHUNK_BYTES: u64 = 256 << 10;
/// How long an upload session lives, in seconds: a week.
pub const UPLOAD_SECONDS: u64 = 7 * 24 * 3600;
/// Entries of one access control list.
pub const ACL_ENTRIES_MAX: usize = 100;
/// Labels of one bucket.
pub const LABELS_MAX: usize = 64;
/// Rules of a bucket's lifecycle.
pub const LIFECYCLE_RULES_MAX: usize = 100;
/// Notification configurations of one bucket.
pub const NOTIFICATIONS_MAX: usize = 100;
/// Newer versions of a name that a lifecycle rule counts. A rule that asks for more (`numNewerVersions`) never holds.
pub const NEWER_VERSIONS_COUNTED_MAX: usize = 1_000;
/// Uploads of one name that the walk over a bucket remembers. The parts of others cost it a look at their upload each.
pub const UPLOADS_REMEMBERED_MAX: usize = 1_000;
/// Members of an IAM policy, in all of its bindings together.
pub const POLICY_MEMBERS_MAX: usize = 1_500;
/// Bytes of a document of the XML API.
pub const XML_BYTES_MAX: usize = 2 << 20;
/// Elements of a document that lie in each other.
pub const XML_DEPTH_MAX: usize = 12;
/// Objects that one request deletes.
pub const DELETES_MAX: usize = 1_000;
/// Bytes of a line between the chunks of a body.
pub const CHUNK_LINE_BYTES_MAX: usize = 4 << 10;
/// Lines behind the chunks of a body.
pub const TRAILER_LINES_MAX: usize = 16;
/// Bytes of the condition of a binding.
pub const EXPRESSION_BYTES_MAX: usize = 4 << 10;
/// Operators of truth in a condition, as the documents of IAM conditions say.
pub const EXPRESSION_OPERATORS_MAX: usize = 12;
/// Parentheses in each other in a condition.
pub const EXPRESSION_DEPTH_MAX: usize = 32;
/// Patterns of one restoration of many objects.
pub const MATCH_GLOBS_MAX: usize = 100;
/// How long an operation that has ended can be asked for, in seconds: 30 days.
pub const OPERATION_KEPT_SECONDS: u64 = 30 * 24 * 3600;
/// How long after its beginning a change of several names can be committed, in seconds: a day. A request takes much
/// less; the rest is for clocks that step.
pub const INTENT_SECONDS: u64 = 24 * 3600;
/// After so many seconds no request carries a change of several names out any more, and the walk ends it.
pub const INTENT_LEFT_SECONDS: u64 = 60;
/// How long the ranges remember a bucket that was deleted, and refuse writes to it, in seconds: a day. An upload
/// that has taken half of that looks for its bucket again before it writes its object.
pub const BUCKET_CLOSED_SECONDS: u64 = 24 * 3600;
/// How long a bucket that was created without a policy keeps soft-deleted objects, in seconds: a week.
pub const SOFT_DELETE_SECONDS: u64 = 7 * 24 * 3600;
/// The shortest soft-delete policy except none, in seconds, and the longest: 7 and 90 days.
pub const SOFT_DELETE_SECONDS_RANGE: (u64, u64) = (7 * 24 * 3600, 90 * 24 * 3600);
/// The longest retention period of a bucket, in seconds: 100 years.
pub const RETENTION_SECONDS_MAX: u64 = 3_155_760_000;
/// Bytes of a JSON body.
pub const JSON_BODY_BYTES_MAX: usize = 1 << 20;
/// Rows of one name over which a listing steps before it seeks. The engine steps a little before it seeks, too.
pub const STEPS_BEFORE_SEEK: usize = 2;
/// Rows that one page of a listing reads. A page of a pattern that few names match ends there, with what it has.
pub const PAGE_ROWS_MAX: usize = 20_000;
/// Bytes of a page token.
pub const PAGE_TOKEN_BYTES_MAX: usize = 8 << 10;
