//! How a request proves who sends it.

use std::fmt;
use std::sync::Arc;

use crate::account::Tokens;

/// How a request proves the sender.
#[derive(Clone)]
pub enum Access {
    /// Not at all: for emulators and public objects.
    Anonymous,
    /// By bearer tokens.
    Tokens(Arc<dyn Tokens>),
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Tokens(_) => "Tokens",
        })
    }
}
