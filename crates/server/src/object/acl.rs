//! Access control lists of buckets, of their defaults, and of objects.

use rangehold_protocol::object::acl::{AclEntry, AclParent, Role, with_project_number};
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::condition::Conditions;
use rangehold_protocol::object::error::{ErrorKind, ObjectError};
use rangehold_protocol::object::request::{Call, Operation as Op};
use rangehold_protocol::object::write::{AclEdit, Change, Edit, Name};
use serde_json::{Map, Value};

use super::ObjectService;
use super::exchange::{Exchange, RequestBody};
use super::failure::Failure;
use super::json::resource;
use super::reply::Reply;

/// What a call does with a list.
enum Access {
    List,
    Get(String),
    Edit(AclEdit),
}

impl Access {
    fn of(call: &Call, body: &Map<String, Value>) -> Result<Self, ObjectError> {
        let text = |field: &str| body.get(field).and_then(Value::as_str);
        let for_bucket =
            matches!(call.operation, Op::BucketAclInsert | Op::BucketAclPatch | Op::BucketAclUpdate);
        let role = || Role::parse(text("role").ok_or_else(|| ObjectError::required("role"))?, for_bucket);
        Ok(match call.operation {
            Op::BucketAclList | Op::DefaultObjectAclList | Op::ObjectAclList => Self::List,
            Op::BucketAclGet | Op::DefaultObjectAclGet | Op::ObjectAclGet => {
                Self::Get(with_project_number(&call.id))
            }
            Op::BucketAclDelete | Op::DefaultObjectAclDelete | Op::ObjectAclDelete => {
                Self::Edit(AclEdit::Remove(with_project_number(&call.id)))
            }
            Op::BucketAclInsert | Op::DefaultObjectAclInsert | Op::ObjectAclInsert => {
                let entity = text("entity").ok_or_else(|| ObjectError::required("entity"))?;
                Self::Edit(AclEdit::Put(AclEntry::new(entity, role()?)?))
            }
            _ => Self::Edit(AclEdit::Put(AclEntry::new(&call.id, role()?)?)),
        })
    }

    /// The reply: the whole list, or the line that the call is about.
    fn shown(
        &self,
        exchange: &Exchange<'_>,
        parent: &AclParent<'_>,
        etag: &str,
        entries: &[AclEntry],
    ) -> Result<Reply, Failure> {
        let entity = match self {
            Self::List => return resource(exchange, parent.list(&exchange.base, etag, entries)),
            Self::Edit(AclEdit::Remove(_)) => return Ok(Reply::empty(204)),
            Self::Edit(AclEdit::Put(entry)) => &entry.entity,
            Self::Get(entity) => entity,
        };
        let entry = entries.iter().find(|entry| entry.entity == *entity).ok_or_else(|| {
            ObjectError::new(ErrorKind::NotFound, format!("The list has no entry of {entity}."))
        })?;
        resource(exchange, parent.line(&exchange.base, etag, entry))
    }
}

impl ObjectService {
    /// A call about a bucket's own list or, with `of_objects`, its list for new objects.
    pub(super) async fn bucket_acl(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        of_objects: bool,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let access = Access::of(call, &self.body_object(exchange, body).await?)?;
        let name = call.bucket.as_str();
        let bucket = match &access {
            Access::List | Access::Get(_) => self.bucket(name).await?,
            Access::Edit(edit) => {
                let changed = |bucket: &Bucket, now| {
                    bucket.check_lists_in_use()?;
                    let owner = bucket.owner();
                    let (list, owner) = match of_objects {
                        true => (&bucket.default_object_acl, None),
                        false => (&bucket.acl, Some(owner.as_str())),
                    };
                    let list = edit.applied(list, bucket.project_number, owner)?;
                    bucket.check_public(&list)?;
                    let mut changed = bucket.clone();
                    *(if of_objects { &mut changed.default_object_acl } else { &mut changed.acl }) = list;
                    changed.touch(now);
                    Ok(changed)
                };
                self.change_bucket(name, &Conditions::default(), exchange.deadline(), changed).await?
            }
        };
        bucket.check_lists_in_use()?;
        let (parent, entries) = match of_objects {
            true => (AclParent::Defaults { bucket: name }, bucket.default_acl_entries()),
            false => (AclParent::Bucket { bucket: name }, bucket.acl_entries()),
        };
        access.shown(exchange, &parent, &bucket.etag(), &entries)
    }

    /// A call about an object's list.
    pub(super) async fn object_acl(
        &self,
        exchange: &Exchange<'_>,
        call: &Call,
        body: &mut RequestBody,
    ) -> Result<Reply, Failure> {
        let access = Access::of(call, &self.body_object(exchange, body).await?)?;
        let (bucket, name) = self.place_with_list(exchange, &call.bucket, &call.object).await?;
        let (wanted, conditions) = (exchange.generation()?, exchange.conditions()?);
        let generation = match &access {
            Access::List | Access::Get(_) => self.generation(&bucket, &name, wanted).await?,
            Access::Edit(edit) => {
                let of = Name { bucket: &bucket, name: &name };
                let change =
                    Change { of, generation: wanted, conditions: &conditions, edit: Edit::Acl(edit) };
                self.change_object(&change, exchange.deadline()).await?
            }
        };
        let parent = AclParent::Object {
            bucket: &bucket.name,
            name: bucket.shown(&name),
            generation: generation.id.0,
        };
        let entries = generation.acl.entries(bucket.project_number, Some(&generation.owner));
        access.shown(exchange, &parent, &generation.etag(), &entries)
    }
}
