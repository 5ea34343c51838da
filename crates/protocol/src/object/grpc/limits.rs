//! Limits of gRPC.

/// The most bytes of a message that a client sends: 2 MiB of an object, and what describes it. The real service reads
/// 4 MiB.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// The most bytes of an object in one message to a client. The real service sends up to 2 MiB.
pub const CHUNK_BYTES_MAX: usize = 2 << 20;
/// The most ranges of an object that one message asks for.
pub const READ_RANGES_MAX: usize = 1_000;
/// The most characters of the message of an error; it is sent in a header.
pub const STATUS_MESSAGE_CHARS_MAX: usize = 1_000;
