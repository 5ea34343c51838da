//! Every limit of the client.

use std::time::Duration;

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
