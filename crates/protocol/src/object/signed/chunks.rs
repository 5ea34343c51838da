//! The signatures of a body that is sent in signed chunks.
//!
//! The signature of the request signs its headers alone. Each chunk has a signature of its own, which also signs the one
//! before it, so chunks can neither be left out nor change places. The trailer is signed as the last of them.

use sha2::{Digest, Sha256};

use super::{Claim, Method, SignedError, secret};

/// Checks the signatures of one body, one after the other.
#[derive(Clone)]
pub struct ChunkSigner {
    key: Vec<u8>,
    date: String,
    scope: String,
    /// The signature before the next one, in hexadecimal digits.
    previous: String,
}

impl std::fmt::Debug for ChunkSigner {
    /// The key is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkSigner").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl Claim {
    /// What checks the chunks of the body, if the request was signed in a header by version 4 with this secret.
    pub fn chunk_signer(&self, secret: &str) -> Option<ChunkSigner> {
        let Method::HmacSha256 { before, scope } = &self.method else { return None };
        // The second line of the text is the date.
        let date = self.texts.first()?.split('\n').nth(1)?.to_owned();
        let key = secret::key((before, secret), scope);
        Some(ChunkSigner { key, date, scope: scope.clone(), previous: const_hex::encode(&self.signature) })
    }
}

impl ChunkSigner {
    /// Checks the signature of a chunk whose bytes have this SHA-256.
    ///
    /// # Errors
    /// [`SignedError::Mismatch`].
    pub fn check_chunk(&mut self, sum: &[u8], signature: &str) -> Result<(), SignedError> {
        let empty = const_hex::encode(Sha256::digest(b""));
        let rest = format!("{empty}\n{}", const_hex::encode(sum));
        self.check("AWS4-HMAC-SHA256-PAYLOAD", &rest, signature)
    }

    /// Checks the signature of a trailer: `name:value` and a line feed for each of its lines.
    ///
    /// # Errors
    /// [`SignedError::Mismatch`].
    pub fn check_trailer(&mut self, trailer: &str, signature: &str) -> Result<(), SignedError> {
        let rest = const_hex::encode(Sha256::digest(trailer));
        self.check("AWS4-HMAC-SHA256-TRAILER", &rest, signature)
    }

    fn check(&mut self, algorithm: &str, rest: &str, signature: &str) -> Result<(), SignedError> {
        let text = format!("{algorithm}\n{}\n{}\n{}\n{rest}", self.date, self.scope, self.previous);
        let given = const_hex::decode(signature).unwrap_or_default();
        if !secret::is_signed(&self.key, &text, &given) {
            return Err(SignedError::Mismatch { string_to_sign: text, canonical_request: None });
        }
        self.previous = signature.to_ascii_lowercase();
        Ok(())
    }
}
