//! The names of boundaries whose keys are not stored: salted hashes.

use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::tls::write_private;

/// Name of the file with the salt, beside the segments.
const SALT_FILE: &str = "salt";

/// Hashes boundaries. Because of the salt, hashes of two directories cannot be compared, and lists of hashes that were
/// made in advance are useless.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hasher {
    salt: [u8; 16],
}

impl Hasher {
    /// A hasher with the salt in `directory`. If there is none, `random` becomes the salt.
    pub(super) fn in_directory(directory: &Path, random: [u8; 16]) -> io::Result<Self> {
        let path = directory.join(SALT_FILE);
        match fs::read(&path) {
            Ok(bytes) => match bytes.try_into() {
                Ok(salt) => return Ok(Self { salt }),
                // A crash while the file was made cut it short, so nothing was hashed with it.
                Err(_) => write_private(&path, &random)?,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => write_private(&path, &random)?,
            Err(error) => return Err(error),
        }
        Ok(Self { salt: random })
    }

    /// A hasher with this salt, for a history that ends with the process.
    pub(super) fn new(salt: [u8; 16]) -> Self {
        Self { salt }
    }

    /// The name of a boundary.
    pub(super) fn name(&self, key: &[u8]) -> u64 {
        let hash = Sha256::new().chain_update(self.salt).chain_update(key).finalize();
        hash.iter().take(8).fold(0, |name, byte| name << 8 | u64::from(*byte))
    }
}
