//! The newest rows, durable or not, which a judge decides by.
//!
//! Most of them are in the cache. Those of a large batch that are not are read by one scan.

use bytes::Bytes;
use futures::future::BoxFuture;
use rangehold_map::key::after_prefix;
use rangehold_map::{KeyRange, PartitionPrefix};
use slatedb::config::DurabilityLevel;

use super::{Opening, stored};
use crate::error::ReadError;
use crate::limits::{SCAN_INSTEAD_OF_GETS, SCAN_ROWS_FOR_A_GET};

impl Opening {
    /// The newest rows, durable or not. The next batch will be applied to them. The caller holds the lock of their
    /// partition.
    pub(super) async fn newest_rows(
        &self,
        partition: &PartitionPrefix,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Bytes>>, ReadError> {
        let mut known = self.rows.newest_of(keys);
        if known.iter().filter(|row| row.is_none()).count() >= SCAN_INSTEAD_OF_GETS {
            Box::pin(self.read_together(partition, keys, &mut known)).await?;
        }
        let mut rows = Vec::with_capacity(keys.len());
        for (key, known) in keys.iter().zip(known) {
            rows.push(match known {
                Some(row) => row,
                None => self.read_newest(key).await?,
            });
        }
        Ok(rows)
    }

    /// Reads the rows that are not `known` by one scan from the first of their keys to the first row behind the last. The
    /// cache then knows all of this interval. A batch mostly inserts rows behind each other, so its scan finds little,
    /// and the next batch that goes on there asks nobody.
    ///
    /// No write of these keys is pending: the cache would know it. So their durable rows are the newest. Ends early if too
    /// many other rows lie between them; then some are still not known.
    fn read_together<'a>(
        &'a self,
        partition: &'a PartitionPrefix,
        keys: &'a [Vec<u8>],
        known: &'a mut [Option<Option<Bytes>>],
    ) -> BoxFuture<'a, Result<(), ReadError>> {
        Box::pin(async move {
            let mut asked: Vec<usize> = (0..keys.len()).filter(|index| known[*index].is_none()).collect();
            asked.sort_unstable_by_key(|index| &keys[*index]);
            let mut steps = asked.len() * SCAN_ROWS_FOR_A_GET;
            let mut asked = asked.into_iter().peekable();
            let Some(first) = asked.peek() else { return Ok(()) };
            let interval = KeyRange::new(keys[*first].clone(), after_prefix(partition.as_bytes()));
            let mut filling = self.rows.fill(&interval);
            if !filling.is_under_way() {
                // The cache is off, and then it does not tell which writes are pending.
                return Ok(());
            }
            let durable = || self.durable_sequence();
            let mut rows = stored::scan(&self.db, &interval, DurabilityLevel::Remote, true).await?;
            while let Some(row) = stored::next(&mut rows).await? {
                filling.row(&row.key, &row.value, durable);
                while let Some(index) = asked.next_if(|index| keys[*index].as_slice() <= &*row.key) {
                    known[index] = Some((keys[index].as_slice() == &*row.key).then(|| row.value.clone()));
                }
                steps = steps.saturating_sub(1);
                if asked.peek().is_none() || steps == 0 {
                    filling.end(Some(&row.key), durable);
                    return Ok(());
                }
            }
            asked.for_each(|index| known[index] = Some(None));
            filling.end(None, durable);
            Ok(())
        })
    }

    /// The newest row of a key that the cache does not know. In a box, so that judges that find their rows in the cache have
    /// small futures.
    fn read_newest<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, ReadError>> {
        Box::pin(async move {
            let row = stored::get(&self.db, key, DurabilityLevel::Memory).await?;
            // A judge that finds no row mostly makes one, which may never be read.
            if let Some(value) = &row {
                self.rows.learn(key, value);
            }
            Ok(row)
        })
    }
}
