//! gRPC: the services `google.storage.v2.Storage` and `google.storage.control.v2.StorageControl`.
//!
//! A call is a POST to the path of its method. The body has messages in [frames](frame); the reply has the same, and
//! at its end, in the trailers, the [status] of the call.
//!
//! | what | where |
//! |---|---|
//! | the messages of Google's API, generated | [`messages`], from `messages.proto` |
//! | a message as a call of the JSON API, and the reply as a message | [`Ask`], in `bucket`, `object`, `media`, `control`, `folder` |
//! | which fields an update changes and a reply has | `mask` |
//! | names such as `projects/_/buckets/B` | [`name`] |
//!
//! What a message asks for, the JSON API offers too, in another form. So this module only translates; nothing is
//! decided here that another module decides for the JSON API.

mod bucket;
mod call;
mod control;
mod folder;
pub mod frame;
mod json;
pub mod limits;
mod mask;
mod media;
#[rustfmt::skip]
pub mod messages;
pub mod name;
mod object;
pub mod status;

pub use self::call::{Ask, JsonCall, JsonReply};
pub use self::media::{
    announced, check_data, checksummed, on_upload, open_call, range_refused, read_call, read_range,
    write_call,
};
pub use self::object::object_of;
