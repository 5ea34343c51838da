//! Changes in doubt: what is there afterwards, and what that says.
//!
//! A change is in doubt if one of its attempts had no answer, or one that says nothing. Then a refusal of a later attempt
//! may come from the effect of the earlier one. The only proof is a token that the entity carries. If it is there, the
//! change, and with it the whole batch, was carried out. If it is not, nothing is proven: the change may have been
//! carried out, and another client may have written the entity since.

use crate::entity::{ETag, Entity, Keys, Value};
use crate::error::{Error, Found, OutcomeUnknown};
use crate::request::Change;
use crate::wire::Failure;

use super::Table;

impl Table {
    /// Gives each entity of `changes` the same new token; returns it. `None` if the table has no property for it.
    pub(super) fn mark(&self, changes: &mut [Change]) -> Option<String> {
        let property = self.token.as_ref()?;
        let token = self.wire.fresh().to_string();
        for entity in changes.iter_mut().filter_map(Change::entity_mut) {
            entity.properties.insert(property.to_string(), Value::from(token.as_str()));
        }
        Some(token)
    }

    /// The outcome of changes that failed: the versions of the entities if a token proves that they were carried out.
    pub(super) async fn settle(
        &self,
        failure: Failure,
        changes: &[Change],
        token: Option<String>,
    ) -> Result<Vec<Option<ETag>>, Error> {
        let Failure { error, attempts, in_doubt } = failure;
        // Something on the way may have sent the request twice. So with a token even a refusal without a doubt is worth a
        // look.
        let conflict = [404, 409, 412].iter().any(|status| error.has_status(*status));
        let is_worth_a_look = in_doubt || (conflict && token.is_some());
        if !is_worth_a_look {
            return Err(error);
        }
        let looked_at = witness(changes, &error, token.is_some());
        let found = self.look(looked_at.keys()).await;
        let marked = self.token.as_deref().zip(token.as_deref());
        if let (Found::Entity(entity), Some((property, token))) = (&found, marked)
            && entity.text(property) == Some(token)
        {
            let version = |change: &Change| own_version(change, entity);
            return Ok(changes.iter().map(version).collect());
        }
        if !in_doubt {
            return Err(error);
        }
        let keys = Some(looked_at.keys().clone());
        Err(Box::new(OutcomeUnknown { keys, attempts, found, last: error }).into())
    }

    async fn look(&self, keys: &Keys) -> Found {
        if !self.looks {
            return Found::Unread("this handle does not look".to_owned());
        }
        match self.get(&keys.partition_key, &keys.row_key).await {
            Ok(Some(entity)) => Found::Entity(Box::new(entity)),
            Ok(None) => Found::Nothing,
            Err(error) => Found::Unread(error.to_string()),
        }
    }
}

/// The change whose entity tells most: with tokens one that carries the token, else the one that was refused.
fn witness<'a>(changes: &'a [Change], error: &Error, marked: bool) -> &'a Change {
    let carrier = changes.iter().find(|change| marked && change.entity().is_some());
    let refused = || error.refusal().and_then(|refusal| changes.get(refusal.change?));
    carrier.or_else(refused).unwrap_or(&changes[0])
}

/// The version that `change` made, if `found` is still what it wrote. A later merge by another client keeps the token,
/// so the properties are compared too, where the change wrote all of them.
fn own_version(change: &Change, found: &Entity) -> Option<ETag> {
    let whole = matches!(change, Change::Insert(_) | Change::Replace(..) | Change::InsertOrReplace(_));
    let same = change
        .entity()
        .is_some_and(|entity| entity.keys == found.keys && entity.properties == found.properties);
    found.etag.clone().filter(|_| whole && same)
}

/// The error of a failed change of a table. `status` is the refusal that the change's own effect causes, and `found` is
/// what is there then.
pub(super) fn of_table(failure: Failure, status: u16, found: Found) -> Error {
    let Failure { error, attempts, in_doubt } = failure;
    if !in_doubt {
        return error;
    }
    let found = match error.has_status(status) {
        true => found,
        false => Found::Unread("the service did not answer".to_owned()),
    };
    Box::new(OutcomeUnknown { keys: None, attempts, found, last: error }).into()
}
