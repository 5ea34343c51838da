//! What a request has begun goes on when its client hangs up, or when its deadline passes.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use rangehold_engine::WriteRequest;
use rangehold_engine::store::Store;
use rangehold_map::PartitionPrefix;
use rangehold_map::key::{BucketId, BucketRow};
use rangehold_testkit::gate::{Gate, Passage};
use tokio::time::{Instant, sleep, timeout};

use crate::support::wire::Request;
use crate::support::{Service, Wanted};

#[tokio::test]
async fn a_bucket_whose_deletion_is_on_its_way_is_not_opened_again() {
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let gate = Gate::before(&memory);
    let service = Service::open(Wanted { store: Store::on(gate.clone()), ..Wanted::default() }).await;
    service.create_bucket("photos").await;
    let (router, soon) = (service.node.router(), Instant::now() + Duration::from_secs(30));
    router.close_bucket(BucketId(1), soon, ()).await.expect("it can be closed");

    gate.set(Passage::HoldWrites);
    let partition = PartitionPrefix::bucket("photos");
    let row = partition.bucket_row(&BucketRow::Bucket);
    let deletion = WriteRequest::new(&partition, &[], soon);
    let deletion = router.write(&deletion, |_, _| Ok::<_, ()>(vec![(row.clone(), None)]));
    assert!(timeout(Duration::from_millis(100), deletion).await.is_err(), "the deletion waits at the gate");

    let target = "/upload/storage/v1/b/photos/o?uploadType=media&name=a";
    let insert = Request::new("POST", target, &[], b"hello");
    let opening = async {
        sleep(Duration::from_millis(300)).await;
        gate.set(Passage::Open);
    };
    let (answer, ()) = tokio::join!(service.send_object(&insert), opening);
    assert_eq!(answer.status, 404, "an object was acknowledged in a bucket that is gone: {}", answer.body);
}
