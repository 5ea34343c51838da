//! A client of Google Cloud Storage: the JSON API, for Rangehold and for the real service.
//!
//! ```no_run
//! use futures::TryStreamExt;
//! use rangehold_client::object::{Condition, Content, Listing, Storage, Access};
//!
//! # async fn example() -> Result<(), rangehold_client::object::Error> {
//! let storage = Storage::at("http://127.0.0.1:4443", Access::Anonymous)?;
//! let photos = storage.bucket("photos")?;
//! let made = photos.upload("2026/a.txt", Content::from("hello"), Condition::Absent).await?;
//! let mut names = std::pin::pin!(photos.list(Listing::under("2026/")));
//! while let Some(object) = names.try_next().await? {
//!     println!("{} {} {}", object.name, object.size, object.generation);
//! }
//! let bytes = photos.read("2026/a.txt", Some(made.generation)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | |
//! |---|---|
//! | `error` | what can go wrong, by what the program can do about it |
//! | `resource` | buckets and objects as the service shows them, generations, conditions |
//! | `call` | what is sent for each operation (pure) |
//! | `access`, `line` | the proof of the sender; sends calls and repeats those that may be repeated |
//! | `storage` | buckets |
//! | `bucket` | objects: metadata, copies, deletions; `settle` looks at what is there after a doubt |
//! | `folder` | folders of buckets with a hierarchical namespace |
//! | `list`, `download`, `upload`, `session` | pages, bytes down, bytes up in one request or in chunks |
//!
//! **What is repeated.** A call is repeated after a failure that passes (408, 429, every 5xx, a lost connection) only if a second
//! execution cannot do harm: reads, calls with a condition on the generation, and chunks of an upload session. Without a
//! condition ([`Condition::Any`]) a call is repeated only if the service certainly did nothing. Every change must be given a
//! condition, so that this is a decision and not an accident.
//!
//! **What is checked.** Each upload carries its CRC32C, and the service refuses bytes that differ. Each download is compared with
//! the CRC32C of its generation.

mod access;
mod bucket;
mod call;
mod download;
mod error;
mod folder;
mod line;
mod list;
mod resource;
mod session;
mod settle;
mod storage;
mod upload;

pub use access::Access;
pub use bucket::{Bucket, Source};
pub use download::{Download, Piece};
pub use error::{Error, Found, OutcomeUnknown, Refusal};
pub use folder::Folder;
pub use list::{Listing, Page};
pub use rangehold_protocol::object::checksum::Crc32c;
pub use rangehold_protocol::object::glob::{Glob, GlobError};
pub use resource::{BucketInfo, Condition, Generation, Metageneration, Object};
pub use session::Session;
pub use storage::{GOOGLE, Storage};
pub use upload::Content;
