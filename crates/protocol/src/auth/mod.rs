//! Who sent a request, and what they may do.
//!
//! A request proves itself in one of four ways, each with a function that makes a [`Principal`]
//! out of it: a signature with an account's key ([`shared_key`]), a shared access signature for the
//! account or for one table ([`sas`]), or a bearer token, whose claims [`bearer`] judges. Nothing
//! else makes a [`Principal`], and every operation asks [`Principal::permit`] before it acts; in a
//! batch, every part does.
//!
//! An account that does not exist and a key that is wrong get the same answer after the same
//! work, and signatures are compared in constant time ([`key`]).

use std::net::IpAddr;

use crate::error::{ErrorCode, TableError};
use crate::letters::Letters;
use crate::table::key_bounds::KeyBounds;
use crate::uri::Query;

pub mod bearer;
pub mod canonical;
pub mod key;
pub mod permission;
pub mod sas;
pub mod shared_key;

pub use key::AccountKey;
pub use permission::Action;

/// What authentication looks at of a request. Header values are the first of their name.
#[derive(Debug, Clone, Copy)]
pub struct AuthRequest<'a> {
    /// The method of the request line.
    pub method: &'a str,
    /// The path as it was sent: percent-encoded, with the account where path style puts it.
    pub path: &'a str,
    /// The decoded query parameters.
    pub query: &'a Query,
    /// `Authorization`
    pub authorization: Option<&'a str>,
    /// `Date`
    pub date: Option<&'a str>,
    /// `x-ms-date`, which comes before `Date`.
    pub x_ms_date: Option<&'a str>,
    /// `Content-MD5`
    pub content_md5: Option<&'a str>,
    /// `Content-Type`
    pub content_type: Option<&'a str>,
    /// The address that the connection comes from.
    pub client: IpAddr,
    /// Whether the connection is encrypted.
    pub https: bool,
}

/// Who sent a request, once that is proven, with what the proof allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// Holds an account key: may do everything in the account.
    Owner,
    /// Holds a bearer token: may do what the service's built-in roles for table data and service
    /// settings allow, which is everything; in early versions all but access policies.
    Bearer {
        /// Whether access policies are among it.
        policies: bool,
    },
    /// Holds an account SAS for the table service.
    AccountSas {
        /// Signed resource types: of `s`ervice, `c`ontainer and `o`bject.
        resource_types: Letters,
        /// Signed permissions.
        permissions: Letters,
    },
    /// Holds a SAS for one table.
    TableSas {
        /// Name of the table, in lower case.
        table: String,
        /// Permissions, of `r`, `a`, `u` and `d`.
        permissions: Letters,
        /// The entities that it reaches.
        bounds: KeyBounds,
    },
}

impl Principal {
    /// Whether `action` is allowed on a table, and on the entity with the given PartitionKey and
    /// RowKey. A query of many entities has no key: it is clipped to [`Self::key_bounds`].
    ///
    /// Fails with 403: `AuthorizationPermissionMismatch`, `AuthorizationResourceTypeMismatch`, or
    /// `AuthorizationFailure` for another table, writes out of bounds, and actions that no SAS
    /// allows. `ResourceNotFound` for reads out of bounds, and for policies that a token of an early
    /// version does not reach.
    pub fn permit(
        &self,
        action: Action,
        table: Option<&str>,
        key: Option<(&str, &str)>,
    ) -> Result<(), TableError> {
        match self {
            Self::Owner => Ok(()),
            // The service does not say that it refuses: it speaks as if there were none (recorded).
            Self::Bearer { policies: false } if action.touches_policies() => {
                Err(ErrorCode::ResourceNotFound.into())
            }
            Self::Bearer { .. } => Ok(()),
            Self::AccountSas { resource_types, permissions } => {
                action.permitted_by_account_sas(*resource_types, *permissions)
            }
            Self::TableSas { table: signed, permissions, bounds } => {
                action.permitted_by_table_sas(*permissions)?;
                let same_table = table.is_some_and(|table| table.eq_ignore_ascii_case(signed));
                let inside =
                    key.is_none_or(|(partition_key, row_key)| bounds.contains(partition_key, row_key));
                match (same_table, inside) {
                    (true, true) => Ok(()),
                    // A read is clipped to the keys, as a query is: beyond them there is nothing.
                    (true, false) if action == Action::QueryEntities => {
                        Err(ErrorCode::ResourceNotFound.into())
                    }
                    _ => Err(ErrorCode::AuthorizationFailure.into()),
                }
            }
        }
    }

    /// Between which keys a query may see entities; `None` where all are seen.
    pub fn key_bounds(&self) -> Option<&KeyBounds> {
        match self {
            Self::Owner | Self::Bearer { .. } | Self::AccountSas { .. } => None,
            Self::TableSas { bounds, .. } => Some(bounds),
        }
    }
}

/// `AuthenticationFailed` with its usual text and, after it, what is wrong. Only for faults that
/// are found after the signature proved right, or that tell nothing about keys.
fn failed(why: impl std::fmt::Display) -> TableError {
    TableError::new(
        ErrorCode::AuthenticationFailed,
        format!("{} {why}", ErrorCode::AuthenticationFailed.text()),
    )
}
