//! The limits of moving tables.

/// Bytes of a part, as the service counts them, unless the command says otherwise. A part is a file, a row group, and what a
/// killed command does again; each reader or writer has one in memory, where it takes about four times as much.
pub(crate) const PART_MIB: usize = 8;
/// The largest part that a command may ask for, in MiB.
pub(crate) const PART_MIB_MAX: u32 = 1024;
/// Parts that are under way at a time, unless the command says otherwise.
pub(crate) const PARTS_AT_ONCE: usize = 8;
/// The most parts at a time that a command may ask for.
pub(crate) const PARTS_AT_ONCE_MAX: u32 = 64;
/// Batches of one part that are under way at a time.
pub(crate) const BATCHES_AT_ONCE: usize = 4;
/// Pieces of a file that wait between its reader and its writer.
pub(crate) const PIECES_WAITING: usize = 1;
/// Bytes of a piece of which only the keys are needed.
pub(crate) const KEYS_PIECE_BYTES: usize = 1 << 20;
/// Columns of a Parquet file besides the keys. An entity has 252 properties at most; several sorts of entities share a
/// file.
pub(crate) const COLUMNS_MAX: usize = 1000;
/// Bytes of a line of JSON Lines: an entity of 1 MiB with every character escaped, and room.
pub(crate) const LINE_BYTES_MAX: u64 = 8 << 20;
/// Bytes of a record of CSV.
pub(crate) const RECORD_BYTES_MAX: u64 = 8 << 20;
