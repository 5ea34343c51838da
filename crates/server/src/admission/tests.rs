//! Tests of admission as a whole, with paused time.

use std::collections::VecDeque;

use tokio::time::advance;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Makes `tries` requests of one entity, evenly spread over `lasting`. Returns how many were let in.
async fn tried(admission: &Admission, tenant: Tenant, tries: u32, lasting: Duration) -> u32 {
    let mut let_in = 0;
    for _ in 0..tries {
        let_in += u32::from(admission.admit_partition(tenant, 1).is_ok());
        advance(lasting / tries).await;
    }
    let_in
}

#[tokio::test(start_paused = true)]
async fn in_cloud_a_partition_is_held_at_its_target_and_its_neighbour_is_not() {
    let admission = Admission::new(&Profile::cloud(), 1, Metrics::new());
    let (hot, quiet) = (admission.tenant("a", b"hot"), admission.tenant("a", b"quiet"));
    let (mut of_hot, mut of_quiet) = (0, 0);
    for _ in 0..20 {
        of_hot += tried(&admission, hot, 5_000, SECOND).await;
        of_quiet += tried(&admission, quiet, 100, SECOND / 100).await;
    }
    assert!((40_000..43_000).contains(&of_hot), "{of_hot}");
    assert_eq!(of_quiet, 2_000);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_its_entities_for_the_partition_and_one_for_the_account() {
    let admission = Admission::new(&Profile::cloud(), 1, Metrics::new());
    let tenant = admission.tenant("a", b"p");
    let batches = (0..100).filter(|_| admission.admit_partition(tenant, 100).is_ok()).count();
    assert_eq!(batches, 20);
    let transactions = (0..50_000).filter(|_| admission.admit_account("a").is_ok()).count();
    assert_eq!(transactions, 20_000);
    assert!(admission.admit_account("b").is_ok());
}

/// Reads `pages` pages of up to a thousand entities at once: one row of each page in turn. Returns the lengths of the
/// pages.
fn pages_at_once(admission: &Admission, tenant: Tenant, pages: usize) -> Vec<usize> {
    let mut rows: Vec<usize> = Vec::new();
    for _ in 0..pages {
        // The first entity of a page is charged when the page is let in.
        rows.extend(admission.admit_partition(tenant, 1).is_ok().then_some(1));
    }
    let mut under_way: Vec<usize> = (0..rows.len()).collect();
    while !under_way.is_empty() {
        under_way.retain(|&page| {
            let goes_on = rows[page] < 1_000 && admission.charge(tenant, 1);
            rows[page] += usize::from(goes_on);
            goes_on
        });
    }
    rows
}

#[tokio::test(start_paused = true)]
async fn a_lone_reader_gets_whole_pages_until_its_partition_owes_half_a_second() {
    let admission = Admission::new(&Profile::cloud(), 1, Metrics::new());
    let tenant = admission.tenant("a", b"p");
    assert_eq!(pages_at_once(&admission, tenant, 1), [1_000]);
    assert_eq!(pages_at_once(&admission, tenant, 1), [1_000]);
    assert_eq!(pages_at_once(&admission, tenant, 1), [0_usize; 0]);
    advance(SECOND / 1_000).await;
    assert_eq!(pages_at_once(&admission, tenant, 1), [1_000]);
    advance(SECOND * 49 / 100).await;
    assert_eq!(pages_at_once(&admission, tenant, 1), [0_usize; 0]);
    advance(SECOND / 100).await;
    assert_eq!(pages_at_once(&admission, tenant, 1).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn many_readers_at_once_get_short_pages() {
    let admission = Admission::new(&Profile::cloud(), 1, Metrics::new());
    let tenant = admission.tenant("a", b"p");
    let pages = pages_at_once(&admission, tenant, 50);
    assert_eq!(pages.len(), 50);
    assert!((2_900..=3_000).contains(&pages.iter().sum::<usize>()), "{pages:?}");
}

#[tokio::test(start_paused = true)]
async fn in_fast_everything_is_let_in() {
    let admission = Admission::new(&Profile::fast(), 1, Metrics::new());
    let tenant = admission.tenant("a", b"p");
    for _ in 0..100_000 {
        assert_eq!((admission.admit_account("a"), admission.admit_partition(tenant, 100)), (Ok(()), Ok(())));
    }
    assert!(admission.charge(tenant, 1_000_000));
}

/// A machine that does a thousand requests a second, in the order in which they come. Three times as many come: most
/// of them to one partition, and the others to ten quiet ones.
struct Machine {
    admission: Admission,
    tenants: Vec<Tenant>,
    /// The waiting requests, each by the index of its tenant.
    queue: VecDeque<usize>,
    asked: Vec<u32>,
    served: Vec<u32>,
}

/// Requests of the hot tenant in one step. A quiet tenant makes 5 requests in 100 ms.
const HOT_EVERY_STEP: usize = 25;
const STEP: Duration = Duration::from_millis(10);

impl Machine {
    fn new() -> Self {
        let profile = Profile { overload: Profile::cloud().overload, ..Profile::fast() };
        let admission = Admission::new(&profile, 1, Metrics::new());
        let hot = admission.tenant("busy", b"hot");
        let quiet =
            (0..10_u8).map(|number| admission.tenant(["busy", "other"][number as usize % 2], &[number]));
        let tenants: Vec<Tenant> = std::iter::once(hot).chain(quiet).collect();
        let none = vec![0; tenants.len()];
        Self { admission, tenants, queue: VecDeque::new(), asked: none.clone(), served: none }
    }

    fn ask(&mut self, tenant: usize) {
        self.asked[tenant] += 1;
        if self.admission.admit_partition(self.tenants[tenant], 1).is_ok() {
            self.queue.push_back(tenant);
        }
    }

    async fn step(&mut self, number: u32) {
        (0..HOT_EVERY_STEP).for_each(|_| self.ask(0));
        for quiet in 1..self.tenants.len() {
            if number.is_multiple_of(2) {
                self.ask(quiet);
            }
        }
        self.admission.measured(Duration::from_millis(self.queue.len() as u64));
        for tenant in self.queue.drain(..self.queue.len().min(10)) {
            self.served[tenant] += 1;
        }
        advance(STEP).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_process_sheds_the_hot_tenant_and_serves_the_quiet_ones() {
    let mut machine = Machine::new();
    for number in 0..3_000 {
        machine.step(number).await;
    }
    (machine.asked, machine.served) = (vec![0; 11], vec![0; 11]);
    let mut longest = 0;
    for number in 0..3_000 {
        machine.step(number).await;
        longest = longest.max(machine.queue.len());
    }
    // The machine could do 30,000. The quiet tenants asked for 15,000 and get them; the hot one gets the rest.
    let quiet: u32 = machine.served[1..].iter().sum();
    assert!(quiet >= machine.asked[1..].iter().sum::<u32>() * 98 / 100, "{:?}", machine.served);
    assert!(machine.served[0] > 12_000, "{:?}", machine.served);
    // A queue of 1,000 takes a second. The queue stays near 200, which is the delay that counts as too long.
    assert!(longest < 600, "{longest}");
}
