//! What the end of one attempt means.

use crate::error::Error;
use crate::retry::is_transient;
use crate::transport::Lost;

/// The answer of the service that says that it did nothing, because there were too many requests.
const TOO_MANY_REQUESTS: u16 = 429;

/// What a failed attempt means for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Whether the same call may succeed later.
    pub(super) transient: bool,
    /// Whether the service may have carried the call out.
    pub(super) in_doubt: bool,
}

impl Verdict {
    /// A busy service, or a proxy before it, may answer with 503 and have done the work. So every transient status is
    /// in doubt, but for 429.
    pub(super) fn of(error: &Error) -> Self {
        match error {
            Error::Refused(refusal) => {
                let transient = is_transient(refusal.status);
                Self { transient, in_doubt: transient && refusal.status != TOO_MANY_REQUESTS }
            }
            Error::Lost(Lost::Unsent(_)) => Self { transient: true, in_doubt: false },
            Error::Lost(Lost::Unanswered(_)) => Self { transient: true, in_doubt: true },
            // The status was a success, but the answer does not say of what.
            Error::Unreadable(_) => Self { transient: false, in_doubt: true },
            Error::OutcomeUnknown(_)
            | Error::Invalid(_)
            | Error::Account(_)
            | Error::NoToken(_)
            | Error::NoAuthorities(_) => Self { transient: false, in_doubt: false },
        }
    }
}
