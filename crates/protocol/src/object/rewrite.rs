//! Rewrites in several calls: how many bytes each call may move, and the tokens between the calls.
//!
//! A client limits the bytes of a call by `maxBytesRewrittenPerCall`. The limit counts only if bytes would have to be moved: if
//! the source and the target differ in their location or storage class. A call that does not reach the end answers with a
//! token, and the next call goes on with it. In truth nothing is moved before the last call, which names the bytes of the
//! source again. So the token is all that is kept of a rewrite: it says how far the rewrite is, and what must stay the same.
//!
//! <https://cloud.google.com/storage/docs/json_api/v1/objects/rewrite> has the rules.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::checksum::Crc32c;
use super::error::ObjectError;
use super::request::{Call, Query};

/// The limit of a call is a multiple of this.
const LIMIT_UNIT: u64 = 1 << 20;
/// The form of tokens.
const FORM: u8 = 1;
/// The bytes of a token before its base64: the form, three numbers, what is rewritten, and a checksum.
const TOKEN_BYTES: usize = 1 + 3 * 8 + 4 + 4;

/// What a call of a rewrite asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    limit: Option<u64>,
    begun: Option<Begun>,
    /// Stands for the names of the source and of the target.
    names: u32,
}

/// A rewrite of which calls were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    generation: u64,
    limit: u64,
    rewritten: u64,
}

/// The answer of a call after which the rewrite is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The bytes of all calls so far.
    pub rewritten: u64,
    /// What the next call must bring.
    pub token: String,
}

impl Asked {
    /// Reads `maxBytesRewrittenPerCall` and `rewriteToken` of a call.
    ///
    /// Fails with 400 for a limit that is 0 or not a multiple of 1 MiB, and for a token that was changed, that is of another
    /// rewrite, or that comes with another limit.
    pub fn of(call: &Call, query: &Query) -> Result<Self, ObjectError> {
        let name = "maxBytesRewrittenPerCall";
        let limit = query.number(name)?;
        if let Some(limit) = limit.filter(|limit| *limit == 0 || limit % LIMIT_UNIT != 0) {
            return Err(ObjectError::invalid(name, limit, "Write a multiple of 1,048,576, or leave it out."));
        }
        let names = [&call.bucket, &call.object, &call.to_bucket, &call.to_object];
        // No name has a zero byte.
        let names = Crc32c::of(names.map(String::as_str).join("\0").as_bytes()).0;
        let token = query.get("rewriteToken").filter(|token| !token.is_empty());
        let begun = token.map(|token| {
            let begun = Begun::parse(token, names).filter(|begun| limit == Some(begun.limit));
            let hint =
                "Use the token of the call before, unchanged, with the same objects and the same limit.";
            begun.ok_or_else(|| ObjectError::invalid("rewriteToken", token, hint))
        });
        Ok(Self { limit, begun: begun.transpose()?, names })
    }

    /// The generation of the source with which the rewrite was begun.
    pub fn generation(&self) -> Option<u64> {
        self.begun.map(|begun| begun.generation)
    }

    /// What to answer if this call does not reach the end of a source of `size` bytes; `None` if the object is made now.
    /// `moves` says whether source and target differ in their location or storage class.
    pub fn unfinished(&self, generation: u64, size: u64, moves: bool) -> Option<Unfinished> {
        let limit = self.limit.filter(|_| moves)?;
        let rewritten = self.begun.map_or(0, |begun| begun.rewritten).saturating_add(limit);
        let token = Begun { generation, limit, rewritten }.token(self.names);
        (rewritten < size).then_some(Unfinished { rewritten, token })
    }
}

impl Begun {
    fn token(self, names: u32) -> String {
        let mut out = vec![FORM];
        for number in [self.generation, self.limit, self.rewritten] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&names.to_be_bytes());
        let checksum = Crc32c::of(&out);
        out.extend_from_slice(&checksum.0.to_be_bytes());
        URL_SAFE_NO_PAD.encode(out)
    }

    fn parse(token: &str, names: u32) -> Option<Self> {
        let bytes: [u8; TOKEN_BYTES] = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
        let number = |at: usize| Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let begun = Self { generation: number(1)?, limit: number(9)?, rewritten: number(17)? };
        // The checksum covers all of it, so a token is right if it is the one that would be given.
        (begun.token(names) == token).then_some(begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::request::Operation;

    const MIB: u64 = 1 << 20;

    fn call(to: &str) -> Call {
        let text = str::to_owned;
        Call {
            operation: Operation::ObjectsRewrite,
            bucket: text("a"),
            object: text("x"),
            to_bucket: text("b"),
            to_object: text(to),
            id: String::new(),
        }
    }

    fn asked(to: &str, query: &str) -> Result<Asked, ObjectError> {
        Asked::of(&call(to), &Query::parse(query).expect("a query"))
    }

    #[test]
    fn three_mib_are_rewritten_by_three_calls_of_one_each() {
        let first =
            asked("y", "maxBytesRewrittenPerCall=1048576").unwrap().unfinished(7, 3 * MIB, true).unwrap();
        assert_eq!(first.rewritten, MIB);
        let query = format!("maxBytesRewrittenPerCall=1048576&rewriteToken={}", first.token);
        let second = asked("y", &query).unwrap();
        assert_eq!(second.generation(), Some(7));
        let second = second.unfinished(7, 3 * MIB, true).unwrap();
        assert_eq!(second.rewritten, 2 * MIB);
        let query = format!("maxBytesRewrittenPerCall=1048576&rewriteToken={}", second.token);
        assert_eq!(asked("y", &query).unwrap().unfinished(7, 3 * MIB, true), None);
    }

    #[test]
    fn without_a_limit_or_a_reason_to_move_bytes_one_call_is_enough() {
        assert_eq!(asked("y", "").unwrap().unfinished(7, u64::MAX, true), None);
        let limited = asked("y", "maxBytesRewrittenPerCall=1048576").unwrap();
        assert_eq!(limited.unfinished(7, 3 * MIB, false), None);
        assert_eq!(limited.unfinished(7, MIB, true), None);
    }

    #[test]
    fn limits_that_are_not_multiples_and_tokens_of_other_rewrites_are_refused() {
        for limit in ["0", "100", "1048577", "-5", "x"] {
            assert!(asked("y", &format!("maxBytesRewrittenPerCall={limit}")).is_err(), "{limit}");
        }
        let token = asked("y", "maxBytesRewrittenPerCall=1048576")
            .unwrap()
            .unfinished(7, 3 * MIB, true)
            .unwrap()
            .token;
        let with = |limit: u64, token: &str| format!("maxBytesRewrittenPerCall={limit}&rewriteToken={token}");
        assert!(asked("y", &with(MIB, &token)).is_ok());
        assert!(asked("z", &with(MIB, &token)).is_err(), "another target");
        assert!(asked("y", &with(2 * MIB, &token)).is_err(), "another limit");
        assert!(asked("y", &format!("rewriteToken={token}")).is_err(), "without a limit");
        for wrong in [&token[1..], "AAAA", "%20", &token.replace('A', "B")] {
            assert!(asked("y", &with(MIB, wrong)).is_err(), "{wrong}");
        }
    }
}
