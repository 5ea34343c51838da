//! HMAC keys of service accounts, with which clients sign URLs and requests of the XML API.

use std::ops::ControlFlow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use rand::Rng as _;
use rangehold_map::key::{KIND_PROJECT, ProjectRow};
use rangehold_map::{Key, KeyRange, PartitionPrefix, Timestamp};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::micros::Micros;
use rangehold_protocol::object::project::project_number;
use rangehold_protocol::object::row::{decode_row, encode_row};
use rangehold_protocol::object::signed::{ChunkSigner, Claim};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ObjectService;
use super::access::Principal;
use super::buckets::{cut_page, page_after};
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::json::resource;
use super::keys::HmacKey;
use super::reply::Reply;
use super::xml::signature::verify;

/// Whether a key may be used. The order of the variants is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Active,
    Inactive,
    Deleted,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Inactive => "INACTIVE",
            Self::Deleted => "DELETED",
        }
    }
}

/// A key as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredKey {
    email: String,
    secret: String,
    state: State,
    created: Micros,
    updated: Micros,
    changes: u64,
}

impl StoredKey {
    fn decode(row: &[u8]) -> Result<Self, ObjectError> {
        decode_row("an HMAC key", row)
    }

    fn etag(&self) -> String {
        STANDARD.encode(self.changes.to_be_bytes())
    }

    fn json(&self, base: &str, project: &str, id: &str) -> Value {
        json!({
            "kind": "storage#hmacKeyMetadata",
            "id": format!("{project}/{id}"),
            "selfLink": format!("{base}/storage/v1/projects/{project}/hmacKeys/{id}"),
            "accessId": id,
            "projectId": project,
            "serviceAccountEmail": self.email,
            "state": self.state.name(),
            "timeCreated": self.created,
            "updated": self.updated,
            "etag": self.etag(),
        })
    }

    fn change(&mut self, state: State, now: Timestamp) {
        (self.state, self.updated, self.changes) = (state, now.into(), self.changes + 1);
    }
}

impl ObjectService {
    /// The account that made a signature, with a key of the settings or with an HMAC key that a client made; and what checks
    /// the chunks of the body, if they are signed.
    pub(super) async fn signer(
        &self,
        claim: &Claim,
        now: Timestamp,
    ) -> Result<(Principal, Option<ChunkSigner>), Failure> {
        let is_email = claim.signer.contains('@');
        let secret = if is_email { None } else { self.hmac_key(&claim.signer).await? };
        let signer = verify((&self.options.access, &self.options.keys.load()), secret.as_ref(), claim, now)?;
        Ok((signer, secret.and_then(|key| claim.chunk_signer(&key.secret))))
    }

    /// The key behind an access id, if it may be used: one of the settings, or one that a client made.
    async fn hmac_key(&self, id: &str) -> Result<Option<HmacKey>, Failure> {
        if let Some(known) = self.options.keys.load().hmac(id) {
            return Ok(Some(known.clone()));
        }
        let found = self.stored_keys(&KeyRange::prefix(&[KIND_PROJECT])).await?;
        let key = found.into_iter().find(|(_, stored, key)| stored == id && key.state == State::Active);
        Ok(key.map(|(_, _, StoredKey { email, secret, .. })| HmacKey { email, secret }))
    }

    /// Keys with their projects and ids.
    async fn stored_keys(&self, keys: &KeyRange) -> Result<Vec<(String, String, StoredKey)>, Failure> {
        let rows = self.router.scan(keys, Vec::new, |rows: &mut Vec<(String, String, Bytes)>, key, row| {
            if let Ok(Key::Project { project, row: ProjectRow::HmacKey(id) }) = Key::decode(key) {
                rows.push((project, id, row.clone()));
            }
            ControlFlow::Continue(())
        });
        let decoded =
            rows.await?.into_iter().map(|(project, id, row)| Ok((project, id, StoredKey::decode(&row)?)));
        decoded.collect()
    }

    pub(super) async fn list_hmac_keys(
        &self,
        exchange: &Exchange<'_>,
        project: &str,
    ) -> Result<Reply, Failure> {
        let (email, deleted) =
            (exchange.parameter("serviceAccountEmail"), exchange.query.flag("showDeletedKeys")?);
        let keys = KeyRange::prefix(PartitionPrefix::project(project).as_bytes());
        let after = page_after(exchange)?;
        let is_asked_for = |(_, id, key): &(String, String, StoredKey)| {
            (deleted || key.state != State::Deleted)
                && email.is_none_or(|email| email == key.email)
                && after.as_ref().is_none_or(|after| id > after)
        };
        let found = self.stored_keys(&keys).await?.into_iter().filter(is_asked_for);
        let (page, next) = cut_page(found, exchange.query.page_size("maxResults")?, |(_, id, _)| id.as_str());
        let shown = |(_, id, key): &(String, String, StoredKey)| key.json(&exchange.base, project, id);
        let items: Vec<Value> = page.iter().map(shown).collect();
        let mut reply = json!({ "kind": "storage#hmacKeysMetadata" });
        if !items.is_empty() {
            reply["items"] = items.into();
        }
        if let Some(next) = next {
            reply["nextPageToken"] = next.into();
        }
        resource(exchange, reply)
    }

    pub(super) async fn create_hmac_key(
        &self,
        exchange: &Exchange<'_>,
        project: &str,
    ) -> Result<Reply, Failure> {
        let email = exchange.query.required("serviceAccountEmail")?;
        let mut random = [0; 62];
        self.secrets.lock().fill_bytes(&mut random);
        let (for_id, for_secret) = random.split_at(32);
        let id = format!("GOOG1E{}", const_hex::encode_upper(for_id).get(..55).unwrap_or_default());
        let secret = STANDARD.encode(for_secret);
        let partition = PartitionPrefix::project(project);
        let key = partition.project_row(&ProjectRow::HmacKey(id.clone()));
        let made = self.change(&partition, &[], exchange.deadline(), |_, now| {
            let (created, email, secret) = (Micros::from(now), email.to_owned(), secret.clone());
            let made =
                StoredKey { email, secret, state: State::Active, created, updated: created, changes: 1 };
            Ok((vec![(key.clone(), Some(encode_row(&made)))], made))
        });
        let metadata = made.await?.json(&exchange.base, project, &id);
        resource(exchange, json!({ "kind": "storage#hmacKey", "metadata": metadata, "secret": secret }))
    }

    pub(super) async fn get_hmac_key(
        &self,
        exchange: &Exchange<'_>,
        project: &str,
        id: &str,
    ) -> Result<Reply, Failure> {
        let key = PartitionPrefix::project(project).project_row(&ProjectRow::HmacKey(id.to_owned()));
        let row = self.router.get(&key).await?.ok_or_else(|| missing(id))?;
        resource(exchange, StoredKey::decode(&row)?.json(&exchange.base, project, id))
    }

    pub(super) async fn update_hmac_key(
        &self,
        exchange: &Exchange<'_>,
        project: &str,
        id: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        let state = match body.get("state").and_then(Value::as_str) {
            Some("ACTIVE") => State::Active,
            Some("INACTIVE") => State::Inactive,
            other => {
                let hint = "Use ACTIVE or INACTIVE.";
                return Err(ObjectError::invalid("state", other.unwrap_or_default(), hint).into());
            }
        };
        let etag = body.get("etag").and_then(Value::as_str);
        let changed =
            self.change_key(exchange, project, id, |key| match etag.is_none_or(|etag| etag == key.etag()) {
                true => Ok(state),
                false => Err(ObjectError::condition_not_met("etag")),
            });
        resource(exchange, changed.await?.json(&exchange.base, project, id))
    }

    pub(super) async fn delete_hmac_key(
        &self,
        exchange: &Exchange<'_>,
        project: &str,
        id: &str,
    ) -> Result<Reply, Failure> {
        let deleted = self.change_key(exchange, project, id, |key| match key.state {
            State::Inactive => Ok(State::Deleted),
            _ => {
                let message = "Cannot delete keys in 'ACTIVE' state. Set the state to INACTIVE first.";
                Err(ObjectError::new(ErrorKind::Invalid, message))
            }
        });
        deleted.await?;
        Ok(Reply::empty(204))
    }

    /// Gives a key the state that `decide` makes of it.
    async fn change_key(
        &self,
        exchange: &Exchange<'_>,
        project: &str,
        id: &str,
        decide: impl Fn(&StoredKey) -> Result<State, ObjectError> + Send + Sync,
    ) -> Result<StoredKey, Failure> {
        let partition = PartitionPrefix::project(project);
        let row_key = partition.project_row(&ProjectRow::HmacKey(id.to_owned()));
        let changed =
            self.change(&partition, std::slice::from_ref(&row_key), exchange.deadline(), |rows, now| {
                let mut key = StoredKey::decode(rows[0].as_ref().ok_or_else(|| missing(id))?)?;
                if key.state == State::Deleted {
                    return Err(missing(id));
                }
                let state = decide(&key)?;
                key.change(state, now);
                Ok((vec![(row_key.clone(), Some(encode_row(&key)))], key))
            });
        changed.await
    }

    /// The account by which the service itself acts for a project.
    pub(super) fn service_account(&self, exchange: &Exchange<'_>, project: &str) -> Result<Reply, Failure> {
        let email =
            format!("service-{}@gs-project-accounts.iam.gserviceaccount.com", project_number(project));
        resource(exchange, json!({ "kind": "storage#serviceAccount", "email_address": email }))
    }
}

fn missing(id: &str) -> ObjectError {
    ObjectError::new(ErrorKind::NotFound, format!("Access ID not found in project: {id}."))
}
