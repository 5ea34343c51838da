//! How long changes made clients wait: from the times of requests and of changes.
//!
//! **The pause of a change** is the time for which its ranges' writes were held, by the clock of the server
//! that held them: what the change itself costs. Reads are not held.
//!
//! **The wait for a change** is the longest time that a request of a connection of its slot took, from its first byte
//! sent to its answer read. It counts the requests that were under way at any moment between the request for the
//! change and its answer, writes and reads separately. So it is at least what the change cost any client, and it
//! includes the usual waiting as well: for the disk, for other requests, for the processors.
//!
//! Two more figures are printed next to both: the times of all requests during which a change of their slot was under
//! way, and of those during which none was. They show how much of the wait is usual.

use std::time::{Duration, Instant};

use rangehold_testkit::load::Timed;

/// The requests of one connection, in their order.
pub(crate) struct Connection {
    pub(crate) slot: usize,
    pub(crate) times: Vec<Timed>,
}

/// Between asking for a change of a slot and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) slot: usize,
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

/// Durations, in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Distribution(Vec<Duration>);

impl Distribution {
    pub(crate) fn of(durations: impl IntoIterator<Item = Duration>) -> Self {
        let mut durations: Vec<Duration> = durations.into_iter().collect();
        durations.sort_unstable();
        Self(durations)
    }

    /// The least duration that `percent` of them do not exceed; zero if there are none.
    pub(crate) fn at(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0.get(rank.max(1) - 1).copied().unwrap_or_default()
    }

    pub(crate) fn max(&self) -> Duration {
        self.at(100)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Connection {
    /// Its longest request, of writes or of reads, under way in the window.
    fn longest(&self, window: &Window, writes: bool) -> Option<Duration> {
        let first = self.times.partition_point(|timed| timed.to < window.from);
        let during = self.times[first..].iter().take_while(|timed| timed.from <= window.to);
        during.filter(|timed| timed.writes == writes).map(|timed| timed.to - timed.from).max()
    }
}

/// The waits for these changes, of writes or of reads. A change has none if no request was under way during it.
pub(crate) fn waits(connections: &[Connection], windows: &[Window], writes: bool) -> Distribution {
    let of = |window: &Window| {
        let slot = connections.iter().filter(|connection| connection.slot == window.slot);
        slot.filter_map(|connection| connection.longest(window, writes)).max()
    };
    Distribution::of(windows.iter().filter_map(of))
}

/// How long requests took, of writes and of reads.
pub(crate) struct Requests {
    pub(crate) writes: Distribution,
    pub(crate) reads: Distribution,
}

impl Requests {
    fn of(requests: &[&Timed]) -> Self {
        let of = |writes| {
            let wanted = requests.iter().filter(move |timed| timed.writes == writes);
            Distribution::of(wanted.map(|timed| timed.to - timed.from))
        };
        Self { writes: of(true), reads: of(false) }
    }
}

/// The requests during which one of these changes of their slot was under way; and the others.
pub(crate) fn by_change(connections: &[Connection], windows: &[Window]) -> (Requests, Requests) {
    let (mut during, mut apart) = (Vec::new(), Vec::new());
    for connection in connections {
        // Changes of one slot follow one another.
        let mut windows: Vec<&Window> =
            windows.iter().filter(|window| window.slot == connection.slot).collect();
        windows.sort_unstable_by_key(|window| window.from);
        for timed in &connection.times {
            let next = windows.partition_point(|window| window.to < timed.from);
            let meets = windows.get(next).is_some_and(|window| window.from <= timed.to);
            if meets { during.push(timed) } else { apart.push(timed) }
        }
    }
    (Requests::of(&during), Requests::of(&apart))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let hundred = Distribution::of((1..=100).rev().map(Duration::from_millis));
        assert_eq!([50, 99, 100].map(|percent| hundred.at(percent).as_millis()), [50, 99, 100]);
        let one = Distribution::of([Duration::from_millis(7)]);
        assert_eq!((one.at(50), one.at(99)), (one.max(), one.max()));
        assert_eq!(Distribution::default().at(50), Duration::ZERO);
    }

    #[test]
    fn a_wait_is_the_longest_request_that_meets_the_change_in_its_slot() {
        let begin = Instant::now();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let timed = |writes, from, to| Timed { writes, from: at(from), to: at(to) };
        let connections = [
            Connection {
                slot: 0,
                times: vec![
                    timed(true, 0, 90),
                    timed(true, 95, 105),
                    timed(false, 106, 109),
                    timed(true, 190, 230),
                ],
            },
            Connection { slot: 0, times: vec![timed(false, 80, 101), timed(true, 102, 122)] },
            Connection { slot: 1, times: vec![timed(true, 0, 900)] },
        ];
        let window = |from, to| Window { slot: 0, from: at(from), to: at(to) };
        let windows = [window(100, 120), window(200, 210)];
        let ms = |of: Distribution| of.0.iter().map(Duration::as_millis).collect::<Vec<_>>();
        assert_eq!(ms(waits(&connections, &windows, true)), [20, 40]);
        assert_eq!(ms(waits(&connections, &windows, false)), [21]);
        let (during, apart) = by_change(&connections, &windows);
        assert_eq!((ms(during.writes), ms(during.reads)), (vec![10, 20, 40], vec![3, 21]));
        assert_eq!((ms(apart.writes), ms(apart.reads)), (vec![90, 900], vec![]));
    }
}
