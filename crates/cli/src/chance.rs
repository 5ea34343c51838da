//! Random bytes from the system. All random generators of the process get their seeds here.

use anyhow::{Context, Result};
use rand::TryRng;
use rand::rngs::SysRng;

/// Random bytes that cannot be guessed. Fails if the system gives none.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes).context("the system gives no random bytes")?;
    Ok(bytes)
}

/// A seed for a generator.
pub(crate) fn seed() -> Result<u64> {
    Ok(u64::from_le_bytes(bytes()?))
}
