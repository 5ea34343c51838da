//! Headers that change what a request does, and so must be signed.
//!
//! A signed URL permits what its signer wrote down. If its holder could add `x-goog-acl` or `x-goog-copy-source`, the
//! URL would permit more. The server may read the words of both dialects in one request, so a signature of either
//! dialect refuses the headers of both.

use super::{SignedError, SignedRequest};

/// How the headers begin that change what a request does.
const PREFIXES: [&str; 2] = ["x-goog-", "x-amz-"];
/// Headers that may come unsigned. The first four belong to the signature itself. The others describe the client and
/// change nothing; official clients add them after they have signed.
const FREE: [&str; 7] = [
    "x-goog-date",
    "x-goog-content-sha256",
    "x-amz-date",
    "x-amz-content-sha256",
    "x-goog-api-client",
    "x-goog-gcs-idempotency-token",
    "x-goog-user-project",
];

/// Refuses a header that changes the request and is not signed. `is_signed` gets its name in small letters.
pub(super) fn refuse(
    request: &SignedRequest<'_>,
    is_signed: impl Fn(&str) -> bool,
) -> Result<(), SignedError> {
    let mut names = request.headers.iter().map(|(name, _)| name.to_ascii_lowercase());
    let unsigned = names.find(|name| {
        let matters = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        matters && !FREE.contains(&name.as_str()) && !is_signed(name)
    });
    unsigned.map_or(Ok(()), |name| Err(SignedError::Unsigned(name)))
}
