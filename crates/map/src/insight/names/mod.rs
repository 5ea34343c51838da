//! Which names of objects scale, and how those that do not can be mended.
//!
//! Names scale if the load on them divides: then their part of the bucket grows, see [`capacity`](crate::capacity).
//! Names that grow with time do not: each new one is above all others. People see that best on their own names, so
//! findings are about prefixes, and advice is shown on a name that was used.
//!
//! ```text
//!   images/animals/<uuid>/1.jpg        spreads
//!   images/clouds/000123.jpg           grows: begin it with a hash
//!   7/2016-05-10-12-00-00/file1        grows in sixteen places
//!   2016-05-10-12/<uuid>               spreads for an hour, and then all names are new
//! ```

mod clock;
mod finding;
mod group;
pub mod limits;
mod order;
mod watch;

pub use clock::{TimePrefix, time_prefix};
pub use finding::{Finding, Growth, findings};
pub(crate) use finding::{hash_advice, time_advice};
pub use watch::{Comparison, Found, Watch};

use md5::{Digest, Md5};

/// The hex digits that are put in front of a name.
const HASH_DIGITS: usize = 6;

/// Whether the names of a bucket lie in folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// A `/` in a name is a character as others are.
    Flat,
    /// The part of a name before a `/` is a folder, which is made once and has a cost.
    Folders,
}

/// The name with the first six hex digits of its MD5 in front, as the documents of Google Cloud Storage advise. In a bucket
/// with folders they stand behind the last `/`: in front, each object would get a folder of its own.
pub fn spread_name(name: &str, namespace: Namespace) -> String {
    let hash = const_hex::encode(Md5::digest(name.as_bytes()));
    let at = match namespace {
        Namespace::Flat => 0,
        Namespace::Folders => name.rfind('/').map_or(0, |slash| slash + 1),
    };
    let (folder, rest) = name.split_at(at);
    format!("{folder}{}-{rest}", &hash[..HASH_DIGITS])
}
