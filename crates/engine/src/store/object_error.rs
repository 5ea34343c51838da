//! The error of one request to the store.

use thiserror::Error;

/// A request to the store failed, also after the store's own retries. Asking again may help. If it was a write, it is
/// not known whether it was made.
#[derive(Debug, Error)]
#[error("the store failed while {action} {object}")]
pub struct ObjectError {
    /// What was being done, such as "reading".
    pub action: &'static str,
    /// The name of the object, or of the place that was listed.
    pub object: String,
    /// The store's error.
    pub source: Box<object_store::Error>,
}

impl ObjectError {
    /// Makes an error of what a store says while this is done to that object.
    pub(crate) fn while_doing<T: ToString>(
        action: &'static str,
        object: &T,
    ) -> impl Fn(object_store::Error) -> Self + use<T> {
        let object = object.to_string();
        move |error| Self { action, object: object.clone(), source: Box::new(error) }
    }
}
