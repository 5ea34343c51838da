//! Bytes that have moved for jobs which have not ended, for the line that shows how far a command is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of all jobs that go on. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow(Arc<AtomicU64>);

/// The bytes of one job. They leave the sum when this is dropped.
#[derive(Debug)]
pub(super) struct Moving {
    all: Flow,
    own: AtomicU64,
}

impl Flow {
    /// A job begins.
    pub(super) fn begin(&self) -> Moving {
        Moving { all: self.clone(), own: AtomicU64::new(0) }
    }

    /// The bytes that have moved for the jobs that go on.
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Moving {
    /// So many more have moved.
    pub(super) fn add(&self, bytes: u64) {
        self.own.fetch_add(bytes, Ordering::Relaxed);
        self.all.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.all.0.fetch_sub(*self.own.get_mut(), Ordering::Relaxed);
    }
}

#[test]
fn the_bytes_of_a_job_leave_the_sum_with_it() {
    let flow = Flow::default();
    let (one, two) = (flow.begin(), flow.begin());
    one.add(3);
    two.add(4);
    one.add(5);
    assert_eq!(flow.bytes(), 12);
    drop(one);
    assert_eq!(flow.bytes(), 4);
    drop(two);
    assert_eq!(flow.bytes(), 0);
}
