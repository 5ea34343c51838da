//! What the end of one attempt means.

use super::sender::{Attempt, Verdict};
use crate::error::Error;
use crate::retry::is_transient;
use crate::transport::Lost;

/// The answer of the service that says that it did nothing, because there were too many requests.
const TOO_MANY_REQUESTS: u16 = 429;

impl Attempt for Error {
    /// A busy service, or a proxy before it, may answer with 503 and have done the work. So every transient status is
    /// in doubt, but for 429.
    fn verdict(&self) -> Verdict {
        match self {
            Error::Refused(refusal) => {
                let transient = is_transient(refusal.status);
                Verdict { transient, in_doubt: transient && refusal.status != TOO_MANY_REQUESTS }
            }
            Error::Lost(Lost::Unsent(_)) => Verdict { transient: true, in_doubt: false },
            Error::Lost(Lost::Unanswered(_)) => Verdict { transient: true, in_doubt: true },
            // The status was a success, but the answer does not say of what.
            Error::Unreadable(_) => Verdict { transient: false, in_doubt: true },
            Error::OutcomeUnknown(_)
            | Error::Invalid(_)
            | Error::Account(_)
            | Error::NoToken(_)
            | Error::NoAuthorities(_) => Verdict { transient: false, in_doubt: false },
        }
    }
}
