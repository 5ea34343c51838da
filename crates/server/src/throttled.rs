//! The causes for which admission refuses requests. The metrics count by them.

use prometheus_client::encoding::EncodeLabelValue;

/// Why a request was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum Cause {
    /// Its account is above its budget.
    Account,
    /// Its table is above its budget.
    Table,
    /// Its partition is above its budget.
    Partition,
    /// The process is overloaded, and this is one of its hot tenants.
    Overload,
    /// The object's name was written a moment ago.
    ObjectName,
    /// The bucket bears no more requests for names like this.
    BucketRate,
    /// The project has used up its bandwidth in this location.
    Bandwidth,
    /// Its range rehearses a failure.
    Rehearsal,
}
