//! The deletion of many objects in one request.

use futures::future::join_all;
use rangehold_map::capacity::Usage;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::write::{Delete, Name};
use rangehold_protocol::object::xml::delete::{DeleteRequest, Target};

use super::{XmlApi, xml_reply};
use crate::limits::DELETES_AT_ONCE;
use crate::object::exchange::{Exchange, RequestBody};
use crate::object::failure::Failure;
use crate::object::grants::DELETE;
use crate::object::located::Wants;
use crate::object::reply::Reply;

impl XmlApi<'_> {
    /// Deletes the objects that the document names. Each is a write of its own, with its own result in the answer.
    pub(super) async fn delete_objects(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let bucket = self.bucket_for(exchange, bucket).await?;
        self.check_payer(exchange, &bucket)?;
        let request = DeleteRequest::read(&self.document(exchange, body).await?)?;
        let mut results = Vec::with_capacity(request.targets.len());
        for targets in request.targets.chunks(DELETES_AT_ONCE) {
            let deleted = targets.iter().map(|target| self.delete_target(exchange, &bucket, target));
            results.extend(join_all(deleted).await);
        }
        Ok(xml_reply(200, request.answer(&results)))
    }

    /// An object that is not there counts as deleted.
    async fn delete_target(
        &self,
        exchange: &Exchange<'_>,
        bucket: &Bucket,
        target: &Target,
    ) -> Result<(), ObjectError> {
        let name = target.name.as_str();
        let deleted = async {
            self.permit(exchange, DELETE, bucket, Some(name)).await?;
            self.admit_name(exchange, &bucket.name, name, Usage::Write).await?;
            let (bucket, stored) = self.located_in(bucket, name, Wants::There, exchange.deadline()).await?;
            let (of, conditions) = (Name { bucket: &bucket, name: &stored }, Conditions::default());
            let delete = Delete { of, generation: target.generation, conditions: &conditions };
            self.change_object(&delete, exchange.deadline()).await
        };
        match deleted.await {
            Ok(_) => Ok(()),
            Err(Failure(error)) if error.kind == ErrorKind::NoSuchObject => Ok(()),
            Err(Failure(error)) => Err(error),
        }
    }
}
