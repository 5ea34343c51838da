//! Changes in doubt: what is there afterwards, and what that says.
//!
//! A change is in doubt if one of its attempts had no answer, or one that says nothing. With a condition on the generation it cannot
//! have happened twice, so a success after a doubt is a success. A refusal (412, 404) may come from the effect of an
//! earlier attempt. Then the client looks at the object. Only a token in its metadata proves whose write it is: equal bytes
//! may come from another client.

use super::error::{Error, Found, OutcomeUnknown};
use super::line::Failure;
use super::resource::Object;

/// The error of a failed change of a bucket.
pub(super) fn of_bucket(failure: Failure, name: &str) -> Error {
    let found = Found::Unread("a bucket does not tell which client changed it".to_owned());
    unknown(failure, name.to_owned(), found)
}

/// The error of a failed change of the folder `target`.
pub(super) fn of_folder(failure: Failure, target: String) -> Error {
    let found = Found::Unread("a folder does not tell which client changed it".to_owned());
    unknown(failure, target, found)
}

/// The outcome of a failed change of the object `target`: what `look` finds there, if `is_ours` recognises it.
pub(super) async fn of_object(
    failure: Failure,
    target: String,
    look: impl Future<Output = Result<Option<Object>, Error>>,
    is_ours: impl Fn(&Object) -> bool,
) -> Result<Object, Error> {
    if !failure.in_doubt {
        return Err(failure.error);
    }
    let found = match look.await {
        Ok(Some(object)) if is_ours(&object) => return Ok(object),
        Ok(Some(object)) => Found::Object(Box::new(object)),
        Ok(None) => Found::Nothing,
        Err(error) => Found::Unread(error.to_string()),
    };
    Err(unknown(failure, target, found))
}

fn unknown(failure: Failure, target: String, found: Found) -> Error {
    let Failure { error, attempts, in_doubt } = failure;
    match in_doubt {
        true => Box::new(OutcomeUnknown { target, attempts, found, last: error }).into(),
        false => error,
    }
}
