//! IAM policies of buckets and objects.

use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::micros::Micros;
use serde_json::json;

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::json::resource;
use super::reply::Reply;

impl ObjectService {
    pub(super) async fn get_bucket_policy(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(name).await?;
        if let Some(version) = exchange.query.number("optionsRequestedPolicyVersion")?
            && !matches!(version, 1..=3)
        {
            let hint = "Policies have the versions 1 and 3.";
            return Err(ObjectError::invalid("optionsRequestedPolicyVersion", version, hint).into());
        }
        resource(exchange, bucket.policy.json(&policy_name(name)))
    }

    /// Of the permissions asked for, those that the caller has.
    pub(super) async fn test_permissions(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket(name).await?;
        let asked = exchange.query.all("permissions");
        let held: Vec<&str> = asked.filter(|permission| self.holds(exchange, permission, &bucket)).collect();
        resource(exchange, json!({ "kind": "storage#testIamPermissionsResponse", "permissions": held }))
    }

    pub(super) async fn set_bucket_policy(
        &self,
        exchange: &Exchange<'_>,
        name: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let body = self.body_object(exchange, body).await?;
        let change = |bucket: &Bucket, now: Micros| {
            let (uniform, forbids_public) =
                (bucket.settings.uniform_access(), bucket.prevents_public_access());
            let policy = bucket.policy.replaced(body.clone(), uniform, forbids_public)?;
            let mut changed = Bucket { policy, ..bucket.clone() };
            changed.touch(now);
            Ok(changed)
        };
        let changed = self.change_bucket(name, &Conditions::default(), exchange.deadline(), change).await?;
        resource(exchange, changed.policy.json(&policy_name(name)))
    }
}

fn policy_name(bucket: &str) -> String {
    format!("projects/_/buckets/{bucket}")
}
