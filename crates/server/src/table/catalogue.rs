//! The catalogue of an account: its tables, and their stored access policies.
//!
//! The catalogue of an account is one partition of the key space. The row of a table is stored under the table's name
//! in lower case, and has the id of the table, which is part of the keys of its entities. The row is not cached, so
//! every request sees the newest name, id and policies.
//!
//! **Deleting a table** begins with one durable write of the catalogue. It removes the name and adds a row which says
//! that the id was dropped. From then on the name is free. Then the owner of each range with entities of the table
//! records the id durably and refuses it. Only after that is the DELETE acknowledged. After a crash between the two
//! steps, the next opening of the range does the second one: it reads the dropped ids in the catalogue. After any
//! other failure the sweeper does it, because it reads the dropped ids each minute. Compaction removes the rows in
//! the background.

use std::ops::ControlFlow;

use rangehold_engine::store::Space;
use rangehold_engine::{Router, RowChanges, WriteError, WriteRequest};
use rangehold_map::key::tables_prefix;
use rangehold_map::{Key, KeyRange, PartitionPrefix, TableId};
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::acl::AccessPolicy;
use rangehold_protocol::table::catalogue::TableRecord;
use rangehold_protocol::table::names::check_table_name;
use rangehold_protocol::table::properties::ServiceProperties;
use tokio::time::Instant;
use tracing::{error, warn};

use super::failure::{Failure, damaged};

/// The catalogue of one account.
#[derive(Clone, Copy)]
pub(crate) struct Catalogue<'a> {
    pub(crate) router: &'a Router,
    pub(crate) account: &'a str,
}

/// A page of tables.
pub(crate) struct TablePage {
    /// Names in the order of their lower-case forms.
    pub(crate) names: Vec<String>,
    /// The first table that is not in the page.
    pub(crate) next: Option<String>,
}

impl Catalogue<'_> {
    fn key(&self, name: &str) -> Vec<u8> {
        Key::Table { account: self.account.to_owned(), lower_name: name.to_ascii_lowercase() }.encode()
    }

    fn partition(&self) -> PartitionPrefix {
        PartitionPrefix::catalogue(self.account)
    }

    /// The table of this name, without regard to case.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<TableRecord>, Failure> {
        let stored = self.router.get(&self.key(name)).await?;
        stored.map(|bytes| TableRecord::decode(&bytes).map_err(damaged)).transpose()
    }

    /// The table of this name. Fails with `TableNotFound` if there is none, and with `InvalidResourceName` if no
    /// table can have this name.
    pub(crate) async fn open(&self, name: &str) -> Result<TableRecord, Failure> {
        check_table_name(name)?;
        self.find(name).await?.ok_or_else(|| TableError::from(ErrorCode::TableNotFound).into())
    }

    /// Creates a table. Fails with `TableAlreadyExists` if the name is in use. Upper and lower case make no
    /// difference.
    pub(crate) async fn create(&self, name: &str, deadline: Instant) -> Result<(), Failure> {
        check_table_name(name)?;
        let key = self.key(name);
        let judge = |current: &[Option<bytes::Bytes>], now: rangehold_map::Timestamp| {
            if current[0].is_some() {
                return Err(TableError::from(ErrorCode::TableAlreadyExists));
            }
            let id = TableId(u64::try_from(now.ticks()).expect("the engine's clock runs after 1970"));
            let record = TableRecord { name: name.to_owned(), id, policies: Vec::new() };
            Ok(vec![(key.clone(), Some(record.encode()))])
        };
        self.write(&key, deadline, judge).await?;
        Ok(())
    }

    /// Deletes a table. Fails with `ResourceNotFound` if there is none. After this no request reads or writes the
    /// table's entities, and the name may be used again.
    pub(crate) async fn delete(&self, name: &str, deadline: Instant) -> Result<(), Failure> {
        let (router, account) = (self.router.clone(), self.account.to_owned());
        let key = self.key(name);
        // This is a task of its own, because a client that hangs up must not stop it between its two steps.
        let steps = tokio::spawn(async move { delete_steps(&router, &account, key, deadline).await });
        steps.await.unwrap_or_else(|failed| {
            error!(%failed, "the DELETE of a table was broken off; it is finished in the background if it was begun");
            Err(ErrorCode::OperationTimedOut.into())
        })
    }

    /// Replaces a table's stored access policies.
    pub(crate) async fn set_policies(
        &self,
        name: &str,
        policies: Vec<AccessPolicy>,
        deadline: Instant,
    ) -> Result<(), Failure> {
        check_table_name(name)?;
        let key = self.key(name);
        let judge = |current: &[Option<bytes::Bytes>], _now| {
            let Some(stored) = &current[0] else {
                return Err(Failure::from(TableError::from(ErrorCode::TableNotFound)));
            };
            let record =
                TableRecord { policies: policies.clone(), ..TableRecord::decode(stored).map_err(damaged)? };
            Ok(vec![(key.clone(), Some(record.encode()))])
        };
        self.write(&key, deadline, judge).await?;
        Ok(())
    }

    /// Up to `most` tables for which `wanted` holds, from the name `from` on. If `only` names a table, only that one
    /// is looked at.
    pub(crate) async fn page(
        &self,
        from: Option<&str>,
        only: Option<&str>,
        most: usize,
        mut wanted: impl FnMut(&str) -> bool + Send,
    ) -> Result<TablePage, Failure> {
        let mut keys = match only {
            Some(name) => KeyRange::prefix(&self.key(name)),
            None => KeyRange::prefix(&tables_prefix(self.account)),
        };
        if let Some(name) = from {
            keys = keys.intersect(&KeyRange::new(self.key(name), None));
        }
        let begin = || (TablePage { names: Vec::new(), next: None }, None);
        let visit = |(page, failure): &mut (TablePage, Option<Failure>), _: &[u8], value: &bytes::Bytes| {
            match TableRecord::decode(value) {
                Err(error) => {
                    *failure = Some(damaged(error));
                    ControlFlow::Break(())
                }
                Ok(record) if !wanted(&record.name) => ControlFlow::Continue(()),
                Ok(record) if page.names.len() == most => {
                    page.next = Some(record.name);
                    ControlFlow::Break(())
                }
                Ok(record) => {
                    page.names.push(record.name);
                    ControlFlow::Continue(())
                }
            }
        };
        match self.router.scan(&keys, begin, visit).await? {
            (_, Some(failure)) => Err(failure),
            (page, None) => Ok(page),
        }
    }

    async fn write<E: Send>(
        &self,
        key: &Vec<u8>,
        deadline: Instant,
        judge: impl FnMut(&[Option<bytes::Bytes>], rangehold_map::Timestamp) -> Result<RowChanges, E> + Send,
    ) -> Result<(), WriteError<E>> {
        let partition = self.partition();
        let request = WriteRequest::new(&partition, std::slice::from_ref(key), deadline);
        self.router.write(&request, judge).await.map(drop)
    }

    /// The account's service properties; the defaults until they are set.
    pub(crate) async fn service_properties(&self) -> Result<ServiceProperties, Failure> {
        let key = Key::ServiceProperties { account: self.account.to_owned() }.encode();
        match self.router.get(&key).await? {
            Some(stored) => ServiceProperties::decode(&stored).map_err(damaged),
            None => Ok(ServiceProperties::default()),
        }
    }

    /// Changes the account's service properties by `change`, from their newest state.
    pub(crate) async fn change_service_properties(
        &self,
        change: impl Fn(ServiceProperties) -> ServiceProperties + Send + Sync,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let key = Key::ServiceProperties { account: self.account.to_owned() }.encode();
        let judge = |current: &[Option<bytes::Bytes>], _now| {
            let properties = match &current[0] {
                Some(stored) => ServiceProperties::decode(stored).map_err(damaged)?,
                None => ServiceProperties::default(),
            };
            Ok::<_, Failure>(vec![(key.clone(), Some(change(properties).encode()))])
        };
        self.write(&key, deadline, judge).await?;
        Ok(())
    }
}

/// The two steps of deleting the table whose row is `key`; see the module.
async fn delete_steps(
    router: &Router,
    account: &str,
    key: Vec<u8>,
    deadline: Instant,
) -> Result<(), Failure> {
    let mut dropped = None;
    let judge = |current: &[Option<bytes::Bytes>], _now| {
        let Some(stored) = &current[0] else {
            return Err(Failure::from(TableError::from(ErrorCode::ResourceNotFound)));
        };
        let id = TableRecord::decode(stored).map_err(damaged)?.id;
        dropped = Some(id);
        let note = Key::DroppedTable { account: account.to_owned(), table: id };
        Ok(vec![(key.clone(), None), (note.encode(), Some(Vec::new()))])
    };
    let catalogue = PartitionPrefix::catalogue(account);
    let keys = std::slice::from_ref(&key);
    let request = WriteRequest { space: Space::ReturnsMuch, ..WriteRequest::new(&catalogue, keys, deadline) };
    router.write(&request, judge).await?;
    let id = dropped.expect("a write that succeeds was judged");
    router.drop_table(account, id, deadline).await.map_err(|failed| {
        // The name is gone already, so this must not read like a refusal.
        warn!(%failed, table = id.0, "a table is deleted from its catalogue, and its range not yet told; going on in the background");
        ErrorCode::OperationTimedOut.into()
    })
}
