//! Admission and rehearsal, as the handlers of tables meet them.
//!
//! A transaction pays its account before anything of it is done. When it is known which table and
//! partition it touches, and with how many entities, the rest of admission decides; and what a range
//! that rehearses answers comes from here as well, since only here a request can be done and its answer
//! held back. Every handler that touches entities goes through [`TableService::admitted`].

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
    /// The first stored key that it can touch.
    pub(super) key: &'a [u8],
    /// How it touches them.
    pub(super) access: Access,
    /// How many entities it writes; 1 for reads, whose pages are charged as they grow.
    pub(super) entities: usize,
}

impl Touched<'_> {
    /// The bytes that the keys of the first touched partition begin with; those of the table, where
    /// it begins before any partition.
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
    /// Lets in an operation on `account`. Those on tables themselves touch its catalogue.
    pub(super) fn admit_operation(&self, account: &str, operation: &Operation) -> Result<(), Failure> {
        // An account is not refused for its ranges' sake.
        self.refusing(self.admission.admit_account(account), None)?;
        if operation.is_of_entities() {
            return Ok(());
        }
        let catalogue = PartitionPrefix::catalogue(account);
        let tenant = self.admission.tenant(account, catalogue.as_bytes());
        // No row of it is the one that is asked for.
        let refused_at = Some((catalogue.as_bytes(), Access::Scan));
        self.refusing(self.admission.admit_partition(tenant, 1), refused_at)
    }

    /// Does `act`, if what it touches is let in, and answers what its range rehearses.
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
                    // Its outcome is not told: that is the point.
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
        // Nor is a table: no split would help it.
        self.refusing(self.admission.admit_table(&table), None)?;
        let tenant = self.admission.tenant(touched.account, touched.partition());
        let refused_at = Some((touched.key, touched.access));
        self.refusing(self.admission.admit_partition(tenant, touched.entities), refused_at)
    }

    /// What the range of `key` answers instead of doing what it is asked.
    fn staged(&self, key: &[u8]) -> Option<Staged> {
        if !self.rehearsals.any() {
            return None;
        }
        let range = self.router.map().lookup(key)?.id;
        self.rehearsals.stage(range)
    }

    /// Counts a refusal, with the range of the key `at` which it was refused too: where load wants to be is
    /// seen only if it is told.
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

/// What a client is told who is not let in: recorded, but the account's, which is documented.
fn refusal(cause: Cause) -> Failure {
    match cause {
        Cause::Account => {
            TableError::new(ErrorCode::ServerBusy, "Operations per second is over the account limit.").into()
        }
        Cause::Table | Cause::Partition | Cause::Overload | Cause::Rehearsal => ErrorCode::ServerBusy.into(),
    }
}

/// Charges the partitions of the entities that a page returns.
pub(super) struct PageCharge<'a> {
    admission: &'a Admission,
    account: &'a str,
    table: TableId,
    /// The partition of the last entity.
    current: Option<(String, Tenant)>,
    /// The one for which an entity was paid when the page was let in.
    prepaid: Option<Tenant>,
}

impl<'a> PageCharge<'a> {
    /// For a page that was let in as `touched`; `None` where nobody keeps count.
    pub(super) fn new(admission: &'a Admission, touched: &Touched<'a>) -> Option<Self> {
        admission.charges_partitions().then(|| Self {
            admission,
            account: touched.account,
            table: touched.table,
            current: None,
            prepaid: Some(admission.tenant(touched.account, touched.partition())),
        })
    }

    /// Charges one entity. Whether the page may return it.
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
