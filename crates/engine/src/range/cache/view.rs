//! A view: all rows of an interval, as they were at one moment.

use std::hint::black_box;

use bytes::Bytes;

use super::block::Row;
use super::blocks::{At, Blocks};

/// See the module. Blocks that are changed or evicted later stay in it as they were.
#[derive(Debug)]
pub(in crate::range) struct View {
    blocks: Blocks,
    /// From where on nothing was shown yet.
    low: Bytes,
    high: Bytes,
    /// The block that follows the last that was shown, unless keys were passed over.
    next: Option<At>,
}

impl View {
    /// A view of an interval whose keys are all in `blocks`.
    pub(super) fn new(blocks: Blocks, low: &[u8], high: &[u8]) -> Self {
        let (low, high) = (Bytes::copy_from_slice(low), Bytes::copy_from_slice(high));
        Self { blocks, low, high, next: None }
    }

    /// The next rows, a block's at a time; there may be none in a block. `None` at the end.
    pub(in crate::range) fn next_rows(&mut self) -> Option<&[Row]> {
        if self.low >= self.high {
            return None;
        }
        let at = self.next.or_else(|| self.blocks.at(&self.low))?;
        let block = self.blocks.block(at);
        debug_assert!(
            *block.low() <= self.low && self.low < *block.high(),
            "a view of keys that are not known"
        );
        block.mark_read();
        let rows = block.rows(&self.low, &self.high);
        // A visitor that passes over keys mostly wants one row of each block.
        let is_in_order = self.next.is_some();
        self.next = self.blocks.after(at).filter(|_| *block.high() < self.high);
        if is_in_order {
            let next_block = self.next.map(|at| self.blocks.block(at).low());
            read_ahead(rows.iter().map(|(_, value)| value).chain(next_block));
        }
        self.low = block.high().clone().min(self.high.clone());
        Some(rows)
    }

    /// From where on nothing was shown.
    pub(in crate::range) fn reached(&self) -> &Bytes {
        &self.low
    }

    /// Passes over the rows below `key`. A key that is behind changes nothing.
    pub(in crate::range) fn seek(&mut self, key: Bytes) {
        if key > self.low {
            self.low = key;
            self.next = None;
        }
    }
}

/// Makes the processor fetch the beginnings of all of these, which have mostly more than a cache line each. A visitor looks at one
/// after the other, and would wait for each; here the processor waits for many of them at once.
fn read_ahead<'a>(pieces: impl Iterator<Item = &'a Bytes>) {
    let first_bytes = pieces.map(|piece| u64::from(piece.first().copied().unwrap_or(0)));
    black_box(first_bytes.sum::<u64>());
}
