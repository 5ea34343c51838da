//! A client of Azure Table Storage that does its part so that a partitioned store scales.
//!
//! It speaks to Rangehold, to Azure and to Azurite. [`object`] is a client of Google Cloud Storage.
//!
//! ```no_run
//! use futures::TryStreamExt;
//! use rangehold_client::{Entity, Filter, Query, Service};
//!
//! # async fn example() -> Result<(), rangehold_client::Error> {
//! let service = Service::from_connection_string("UseDevelopmentStorage=true")?;
//! let people = service.table("people")?;
//! people.create_if_absent().await?;
//! people.insert_or_replace(Entity::new("maths", "noether").with("Born", 1882)).await?;
//! let mut found = std::pin::pin!(people.query(Query::of(Filter::partition("maths"))));
//! while let Some(person) = found.try_next().await? {
//!     println!("{} {:?}", person.keys.row_key, person.integer("Born"));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The modules stand on floors. Each uses only those below it:
//!
//! ```text
//!   bulk         many keys: an order that spreads, and a pace (pure), and what runs by them, for objects and entities
//!   object       objects and buckets of Google Cloud Storage, on wire, retry and transport
//!   moving       whole tables: read in parts, at the same time, with a fingerprint
//!   pattern      secondary rows, copies in other partitions, queries that fan out
//!   sequence     numbers that are never given out twice
//!   service      the account: its tables
//!   table        one table: entities, changes, queries
//!   wire         sends a call, repeats it, and says what is known about its effect
//!   retry        when an attempt is repeated, and after which wait (pure)
//!   error        what can go wrong, by what the program can do about it
//!   transport    HTTP connections, or a model of the service in tests
//!   request      what is sent for each operation (pure)
//!   account      connection strings, keys, tokens
//!   entity       entities and their types, by serde or by name (pure)
//!   keys         keys that scale (pure)
//! ```

pub mod account;
pub mod bulk;
mod clock;
mod entity;
mod error;
pub mod keys;
pub mod limits;
pub mod moving;
pub mod object;
pub mod pattern;
mod request;
pub mod retry;
pub mod sequence;
mod service;
mod table;
mod transport;
mod wire;

pub use account::{Account, Tokens};
pub use clock::Clock;
pub use entity::{
    Binary, DateTime, ETag, EdmType, Entity, Guid, Keys, NotAValue, NotAnEntity, Timestamp, Value,
};
pub use error::{Error, Found, OutcomeUnknown, Refusal};
pub use request::batch::groups;
pub use request::{Change, Condition, Filter, Invalid, Operator, Query, Token};
pub use retry::{Exponential, Policy};
pub use service::Service;
pub use table::{Page, Table};
pub use transport::{Cause, Http, Lost, Transport};
pub use wire::{Ended, Options, Watch};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/client/guide.md")]
mod guide {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/client/objects.md")]
mod guide_to_objects {}
