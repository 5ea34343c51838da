//! Decides who sent a request, and what that sender may do.
//!
//! A request can prove its sender in four ways: by a signature with an account's key ([`shared_key`]), by
//! a shared access signature for the account or for one table ([`sas`]), or by a bearer token, whose
//! claims [`bearer`] checks. For each there is a function that makes a [`Principal`], and nothing else makes
//! one. Every operation asks [`Principal::permit`] before it acts, and so does every part of a batch.
//!
//! A request for an account that does not exist gets the same answer, after the same work, as a request
//! with a wrong key. Signatures are compared in constant time ([`key`]).

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

/// The parts of a request that authentication looks at. Of several headers with one name, the first counts.
#[derive(Debug, Clone, Copy)]
pub struct AuthRequest<'a> {
    /// The method of the request line.
    pub method: &'a str,
    /// The path as it was sent: percent-encoded, and with the account if the URI is in path style.
    pub path: &'a str,
    /// The decoded query parameters.
    pub query: &'a Query,
    /// `Authorization`
    pub authorization: Option<&'a str>,
    /// `Date`
    pub date: Option<&'a str>,
    /// `x-ms-date`, which counts instead of `Date` where both are given.
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

/// The proven sender of a request, and what the proof allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// The sender holds an account key, and may do everything in the account.
    Owner,
    /// The sender holds a bearer token. The service's built-in roles for table data and service settings
    /// allow it everything; with early versions of the protocol, everything but access policies.
    Bearer {
        /// Whether access policies are allowed.
        policies: bool,
    },
    /// The sender holds an account SAS for the table service.
    AccountSas {
        /// Signed resource types: of `s`ervice, `c`ontainer and `o`bject.
        resource_types: Letters,
        /// Signed permissions.
        permissions: Letters,
    },
    /// The sender holds a SAS for one table.
    TableSas {
        /// Name of the table, in lower case.
        table: String,
        /// Signed permissions: of `r`ead, `a`dd, `u`pdate and `d`elete.
        permissions: Letters,
        /// The keys of the entities that the token reaches.
        bounds: KeyBounds,
    },
}

impl Principal {
    /// Checks that `action` is allowed on a table, and on the entity with the given PartitionKey and
    /// RowKey. A query of many entities gives no key; its answer is limited to [`Self::key_bounds`].
    ///
    /// Fails with `AuthorizationPermissionMismatch` or `AuthorizationResourceTypeMismatch` where the token
    /// lacks the letter, and with `AuthorizationFailure` for another table, for a write out of bounds, and
    /// for an action that no SAS allows. Fails with `ResourceNotFound` for a read out of bounds, and for
    /// access policies that a bearer token does not reach.
    pub fn permit(
        &self,
        action: Action,
        table: Option<&str>,
        key: Option<(&str, &str)>,
    ) -> Result<(), TableError> {
        match self {
            Self::Owner => Ok(()),
            // The service does not say that it refuses. It answers as if there were no policies (recorded).
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
                    // A read is limited to the token's keys, as a query is, and finds nothing beyond them.
                    (true, false) if action == Action::QueryEntities => {
                        Err(ErrorCode::ResourceNotFound.into())
                    }
                    _ => Err(ErrorCode::AuthorizationFailure.into()),
                }
            }
        }
    }

    /// The keys between which a query may see entities; `None` where it may see all.
    pub fn key_bounds(&self) -> Option<&KeyBounds> {
        match self {
            Self::Owner | Self::Bearer { .. } | Self::AccountSas { .. } => None,
            Self::TableSas { bounds, .. } => Some(bounds),
        }
    }
}

/// `AuthenticationFailed` with its usual text and the reason behind it. Use it only for faults that are
/// found after the signature proved right, or that tell nothing about keys.
fn failed(why: impl std::fmt::Display) -> TableError {
    TableError::new(
        ErrorCode::AuthenticationFailed,
        format!("{} {why}", ErrorCode::AuthenticationFailed.text()),
    )
}
