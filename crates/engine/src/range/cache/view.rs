//! A view: all rows of an interval, as they were at one moment.

use std::hint::black_box;

use bytes::Bytes;

use super::block::Row;
use super::blocks::{At, Blocks};

/// About how many bytes of a value are read ahead. A listing needs the fields of an object, which mostly take less; the bytes of the
/// object lie behind them. If a visitor wants all of a long value, the processor itself sees that after the first lines.
const READ_AHEAD_BYTES: usize = 256;
/// What the processor fetches at once.
const CACHE_LINE_BYTES: usize = 64;

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
        // A visitor that passes over keys mostly wants one row of each block. So does one that wants a single row.
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

/// Makes the processor fetch the beginnings of all of these. A visitor looks at one after the other, and would wait for each;
/// here the processor waits for many of them at once.
fn read_ahead<'a>(pieces: impl Iterator<Item = &'a Bytes>) {
    let of_lines = pieces.flat_map(|piece| piece.iter().take(READ_AHEAD_BYTES).step_by(CACHE_LINE_BYTES));
    black_box(of_lines.map(|byte| u64::from(*byte)).sum::<u64>());
}
