//! A view: all rows of an interval, as they were at one moment.

use bytes::Bytes;

use super::block::Row;
use super::blocks::Blocks;

/// See the module. Blocks that are changed or evicted later stay in it as they were.
#[derive(Debug)]
pub(in crate::range) struct View {
    blocks: Blocks,
    /// From where on nothing was shown yet.
    low: Bytes,
    high: Bytes,
}

impl View {
    pub(super) fn new(blocks: Blocks, low: &[u8], high: &[u8]) -> Self {
        Self { blocks, low: Bytes::copy_from_slice(low), high: Bytes::copy_from_slice(high) }
    }

    /// The next rows, a block's at a time; there may be none in a block. `None` at the end.
    pub(in crate::range) fn next_rows(&mut self) -> Option<&[Row]> {
        if self.low >= self.high {
            return None;
        }
        let (rows, end) = self.blocks.rows_from(&self.low, &self.high)?;
        self.low = end.clone().min(self.high.clone());
        Some(rows)
    }

    /// From where on nothing was shown.
    pub(in crate::range) fn reached(&self) -> &Bytes {
        &self.low
    }

    /// Passes over the rows below `key`. A key that is behind changes nothing.
    pub(in crate::range) fn seek(&mut self, key: Bytes) {
        self.low = std::mem::take(&mut self.low).max(key);
    }
}
