//! Admission and rehearsals for the handlers of tables.
//!
//! A transaction is charged to its account before anything else is done. Its table, its partition and its number
//! of entities are known only later; then the rest of admission decides. The answers of a range that rehearses
//! also come from here, because here a request can be carried out and its answer held back. Every handler
//! that touches entities goes through [`TableService::admitted`].

use std::future::Future;

use rangehold_map::codec::Reader;
use rangehold_map::key::table_prefix;
use rangehold_map::load::Access;
use rangehold_map::{PartitionPrefix, TableId};
use rangehold_protocol::error::{ErrorCode, TableError};
use rangehold_protocol::table::request::Operation;

use tokio::time::{Instant, sleep_until};

use super::TableService;
use super::failure::Failure;
use crate::admission::{Admission, Cause, Tenant};
use crate::rehearsal::Staged;

/// What a request touches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touched<'a> {
    pub(super) account: &'a str,
    pub(super) table: TableId,
    /// The first stored key that the request can touch.
    pub(super) key: &'a [u8],
    /// How it touches the keys from there on.
    pub(super) access: Access,
    /// How many entities it writes. 1 for reads: their pages are charged entity by entity.
    pub(super) entities: usize,
}

impl Touched<'_> {
    /// The bytes with which the keys of the first touched partition begin. If the request begins before any
    /// partition, the bytes with which the keys of the table begin.
    fn partition(&self) -> &[u8] {
        let table = table_prefix(self.account, self.table).len();
        let mut reader = Reader::new(&self.key[table.min(self.key.len())..]);
        match reader.raw_text() {
            Ok(_) => &self.key[..table + reader.position()],
            Err(_) => self.key,
        }
    }
}

impl TableService {
    /// Lets an operation on `account` in, or refuses it. An operation on tables touches the account's catalogue.
    pub(super) fn admit_operation(&self, account: &str, operation: &Operation) -> Result<(), Failure> {
        // No key is passed: this refusal says nothing about the load of a range.
        self.refusing(self.admission.admit_account(account), None)?;
        if operation.is_of_entities() {
            return Ok(());
        }
        let catalogue = PartitionPrefix::catalogue(account);
        let tenant = self.admission.tenant(account, catalogue.as_bytes());
        // It counts as a scan, since no single row of the catalogue is asked for.
        let refused_at = Some((catalogue.as_bytes(), Access::Scan));
        self.refusing(self.admission.admit_partition(tenant, 1), refused_at)
    }

    /// Carries `act` out if admission allows it. If the range rehearses, the rehearsal decides the answer.
    pub(super) async fn admitted<T>(
        &self,
        touched: Touched<'_>,
        deadline: Instant,
        act: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.let_in(&touched)?;
        match self.staged(touched.key) {
            None => act.await,
            Some(Staged::Busy) => {
                self.metrics.throttled(Cause::Rehearsal);
                Err(refusal(Cause::Rehearsal))
            }
            Some(Staged::TimedOut { late, gateway, done }) => {
                let answer_at = deadline.min(Instant::now() + late);
                if done {
                    // The client must not learn the outcome, because the rehearsal leaves it open.
                    let _ = act.await;
                }
                sleep_until(answer_at).await;
                let code = if gateway { ErrorCode::GatewayTimeout } else { ErrorCode::OperationTimedOut };
                Err(code.into())
            }
        }
    }

    fn let_in(&self, touched: &Touched<'_>) -> Result<(), Failure> {
        if !self.admission.looks_at_partitions() {
            return Ok(());
        }
        let table = table_prefix(touched.account, touched.table);
        // No key is passed: a split does not help a table that is over its budget.
        self.refusing(self.admission.admit_table(&table), None)?;
        let tenant = self.admission.tenant(touched.account, touched.partition());
        let refused_at = Some((touched.key, touched.access));
        self.refusing(self.admission.admit_partition(tenant, touched.entities), refused_at)
    }

    /// The answer that the range of `key` gives instead of doing the request.
    fn staged(&self, key: &[u8]) -> Option<Staged> {
        if !self.rehearsals.any() {
            return None;
        }
        let range = self.router.map().lookup(key)?.id;
        self.rehearsals.stage(range)
    }

    /// Counts a refusal in the metrics. If the request was refused `at` a key, counts it in the load of that key's
    /// range too. Otherwise the range would look idle, since requests that are refused never reach it.
    fn refusing(&self, admitted: Result<(), Cause>, at: Option<(&[u8], Access)>) -> Result<(), Failure> {
        admitted.map_err(|cause| {
            self.metrics.throttled(cause);
            if let Some((key, access)) = at {
                self.router.throttled(key, access);
            }
            refusal(cause)
        })
    }
}

/// The error for a client that is not let in. The texts come from recordings of the service, and that of the account
/// from its documents.
fn refusal(cause: Cause) -> Failure {
    match cause {
        Cause::Account => {
            TableError::new(ErrorCode::ServerBusy, "Operations per second is over the account limit.").into()
        }
        Cause::Table | Cause::Partition | Cause::Overload | Cause::Rehearsal => ErrorCode::ServerBusy.into(),
        // Requests for tables are not refused for these.
        Cause::ObjectName | Cause::BucketRate | Cause::Bandwidth => ErrorCode::ServerBusy.into(),
    }
}

/// Charges the partitions of the entities that a page returns.
pub(super) struct PageCharge<'a> {
    admission: &'a Admission,
    account: &'a str,
    table: TableId,
    /// The partition of the last entity.
    current: Option<(String, Tenant)>,
    /// The partition that was charged one entity when the page was let in.
    prepaid: Option<Tenant>,
}

impl<'a> PageCharge<'a> {
    /// For a page that was let in as `touched`; `None` if partitions are not charged.
    pub(super) fn new(admission: &'a Admission, touched: &Touched<'a>) -> Option<Self> {
        admission.charges_partitions().then(|| Self {
            admission,
            account: touched.account,
            table: touched.table,
            current: None,
            prepaid: Some(admission.tenant(touched.account, touched.partition())),
        })
    }

    /// Charges one entity, and tells whether the page may return it.
    pub(super) fn may_return(&mut self, partition_key: &str) -> bool {
        let tenant = match &self.current {
            Some((current, tenant)) if current == partition_key => *tenant,
            _ => {
                let partition = PartitionPrefix::entity(self.account, self.table, partition_key);
                let tenant = self.admission.tenant(self.account, partition.as_bytes());
                self.current = Some((partition_key.to_owned(), tenant));
                tenant
            }
        };
        self.prepaid.take_if(|prepaid| *prepaid == tenant).is_some() || self.admission.charge(tenant, 1)
    }
}
