//! Which letters of a SAS each action needs.
//!
//! | action | account SAS: type | permission | table SAS |
//! |---|---|---|---|
//! | get service properties, stats | `s` | `r` | |
//! | set service properties | `s` | `w` | |
//! | list tables, get one | `c` | `l` | |
//! | create table | `c` | `c` or `w` | |
//! | delete table | `c` | `d` | |
//! | query entities, get one | `o` | `r` | `r` |
//! | insert | `o` | `a` | `a` |
//! | update, merge | `o` | `u` | `u` |
//! | upsert | `o` | `a` and `u` | `a` and `u` |
//! | delete entity | `o` | `d` | `d` |
//! | access policies of a table | never | | |
//!
//! Azure documents this under "Create an account SAS" and "Create a service SAS".

use crate::error::{ErrorCode, TableError};
use crate::letters::Letters;

/// What a request wants to do. Requests that need the same permission are one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// List the tables of an account, or look one up.
    ListTables,
    /// Create a table.
    CreateTable,
    /// Delete a table.
    DeleteTable,
    /// Read entities, one or many.
    QueryEntities,
    /// Insert an entity.
    InsertEntity,
    /// Replace an entity or merge into it.
    UpdateEntity,
    /// Insert an entity, or replace or merge the one that is there.
    UpsertEntity,
    /// Delete an entity.
    DeleteEntity,
    /// Read the access policies of a table.
    GetAcl,
    /// Replace the access policies of a table.
    SetAcl,
    /// Read the service properties of an account.
    GetProperties,
    /// Change the service properties of an account.
    SetProperties,
    /// Read the state of replication.
    GetStats,
}

/// Which letters an action needs.
enum Need {
    All(&'static str),
    Any(&'static str),
}

impl Need {
    fn met_by(&self, letters: Letters) -> Result<(), TableError> {
        let met = match self {
            Self::All(needed) => needed.chars().all(|letter| letters.has(letter)),
            Self::Any(needed) => needed.chars().any(|letter| letters.has(letter)),
        };
        if met { Ok(()) } else { Err(ErrorCode::AuthorizationPermissionMismatch.into()) }
    }
}

impl Action {
    /// Whether it reads or changes stored access policies, which decide what other clients may do.
    pub(super) const fn touches_policies(self) -> bool {
        matches!(self, Self::GetAcl | Self::SetAcl)
    }

    pub(super) fn permitted_by_account_sas(
        self,
        resource_types: Letters,
        permissions: Letters,
    ) -> Result<(), TableError> {
        let (resource_type, need) = match self {
            Self::GetProperties | Self::GetStats => ('s', Need::All("r")),
            Self::SetProperties => ('s', Need::All("w")),
            Self::ListTables => ('c', Need::All("l")),
            Self::CreateTable => ('c', Need::Any("cw")),
            Self::DeleteTable => ('c', Need::All("d")),
            Self::QueryEntities => ('o', Need::All("r")),
            Self::InsertEntity => ('o', Need::All("a")),
            Self::UpdateEntity => ('o', Need::All("u")),
            Self::UpsertEntity => ('o', Need::All("au")),
            Self::DeleteEntity => ('o', Need::All("d")),
            Self::GetAcl | Self::SetAcl => return Err(ErrorCode::AuthorizationFailure.into()),
        };
        if !resource_types.has(resource_type) {
            return Err(ErrorCode::AuthorizationResourceTypeMismatch.into());
        }
        need.met_by(permissions)
    }

    pub(super) fn permitted_by_table_sas(self, permissions: Letters) -> Result<(), TableError> {
        let need = match self {
            Self::QueryEntities => Need::All("r"),
            Self::InsertEntity => Need::All("a"),
            Self::UpdateEntity => Need::All("u"),
            Self::UpsertEntity => Need::All("au"),
            Self::DeleteEntity => Need::All("d"),
            Self::ListTables
            | Self::CreateTable
            | Self::DeleteTable
            | Self::GetAcl
            | Self::SetAcl
            | Self::GetProperties
            | Self::SetProperties
            | Self::GetStats => return Err(ErrorCode::AuthorizationFailure.into()),
        };
        need.met_by(permissions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_account(action: Action, types: &str, permissions: &str) -> Option<ErrorCode> {
        let letters = |text| Letters::parse(text, "abcdefghijklmnopqrstuvwxyz").expect("letters");
        action.permitted_by_account_sas(letters(types), letters(permissions)).err().map(|error| error.code)
    }

    #[test]
    fn account_sas_as_recorded() {
        // Azure.Data.Tables records both refusals and both grants.
        assert_eq!(
            by_account(Action::CreateTable, "sco", "d"),
            Some(ErrorCode::AuthorizationPermissionMismatch)
        );
        assert_eq!(by_account(Action::CreateTable, "sco", "w"), None);
        assert_eq!(
            by_account(Action::CreateTable, "s", "rwdlau"),
            Some(ErrorCode::AuthorizationResourceTypeMismatch)
        );
        assert_eq!(by_account(Action::GetProperties, "s", "rwdlau"), None);
        // A query of entities reads objects.
        assert_eq!(by_account(Action::QueryEntities, "o", "r"), None);
        assert_eq!(by_account(Action::SetAcl, "sco", "rwdlacu"), Some(ErrorCode::AuthorizationFailure));
    }

    #[test]
    fn an_upsert_adds_and_updates() {
        for permissions in ["a", "u", "rd"] {
            assert_eq!(
                by_account(Action::UpsertEntity, "o", permissions),
                Some(ErrorCode::AuthorizationPermissionMismatch)
            );
        }
        assert_eq!(by_account(Action::UpsertEntity, "o", "au"), None);
    }
}
