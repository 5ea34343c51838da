//! Folders of buckets with a hierarchical namespace.
//!
//! There a folder is a resource of its own: it can be empty, and its rename moves all that lies in it, in one change or none. In
//! other buckets folders are only beginnings of names, and the calls of this module are refused;
//! [`Bucket::has_folders`] tells the two apart.
//!
//! ```no_run
//! # async fn example(photos: rangehold_client::object::Bucket) -> Result<(), rangehold_client::object::Error> {
//! if let Some(folder) = photos.folder("2026/trip/").await? {
//!     photos.rename_folder(&folder, "2026/alps/").await?;
//! }
//! # Ok(())
//! # }
//! ```

use futures::{Stream, TryStreamExt, stream};
use http::Method;
use rangehold_protocol::object::folder::{check_folder, with_slash};
use serde::Deserialize;
use serde_json::json;

use super::bucket::{Bucket, absent_is_none};
use super::call::{Call, segment};
use super::error::{Error, Refusal};
use super::line::parsed;
use super::resource::Metageneration;
use super::settle;
use crate::limits::{FOLDER_ASKS_MAX, FOLDER_WAIT};
use crate::request::Invalid;

/// A folder of a bucket with a hierarchical namespace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Folder {
    /// Its whole name, with a slash at its end.
    pub name: String,
    /// How often it was made or renamed.
    pub metageneration: Metageneration,
    /// When it was made, RFC 3339. A rename does not change it.
    #[serde(default)]
    pub create_time: Option<String>,
    /// When it was last renamed, RFC 3339.
    #[serde(default)]
    pub update_time: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layout {
    hierarchical_namespace: Option<Namespace>,
}

#[derive(Deserialize)]
struct Namespace {
    #[serde(default)]
    enabled: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Folders {
    #[serde(default)]
    items: Vec<Folder>,
    next_page_token: Option<String>,
}

/// Work that may go on after its request.
#[derive(Deserialize)]
struct Operation {
    name: String,
    #[serde(default)]
    done: bool,
    error: Option<Status>,
    response: Option<Folder>,
}

/// Why an operation failed: a code of `google.rpc.Code`.
#[derive(Deserialize)]
struct Status {
    code: u32,
    #[serde(default)]
    message: String,
}

impl Bucket {
    /// Whether the bucket has a hierarchical namespace, so that its folders are resources. Needs the permission to list objects.
    pub async fn has_folders(&self) -> Result<bool, Error> {
        let call = Call::api(Method::GET, &format!("/b/{}/storageLayout", segment(self.name())));
        let layout: Layout = self.line.read(&call).await?;
        Ok(layout.hierarchical_namespace.is_some_and(|namespace| namespace.enabled))
    }

    /// A folder by its whole name, with or without the slash at its end; `None` if there is none.
    pub async fn folder(&self, name: &str) -> Result<Option<Folder>, Error> {
        absent_is_none(self.line.read(&self.folder_call(Method::GET, &checked(name)?, "")).await)
    }

    /// The folders whose whole names begin with `prefix`, in the order of their names: a folder comes before those that lie in it.
    pub fn folders(&self, prefix: &str) -> impl Stream<Item = Result<Folder, Error>> + Send + 'static {
        let (bucket, prefix) = (self.clone(), Some(prefix.to_owned()).filter(|prefix| !prefix.is_empty()));
        let fetch = move |place: Option<Option<String>>| {
            let (bucket, prefix) = (bucket.clone(), prefix.clone());
            async move {
                let Some(token) = place else { return Ok(None) };
                let call = Call::api(Method::GET, &format!("/b/{}/folders", segment(bucket.name())));
                let page: Folders =
                    bucket.line.read(&call.maybe("prefix", prefix).maybe("pageToken", token)).await?;
                let next = page.next_page_token.map(Some);
                Ok::<_, Error>(Some((stream::iter(page.items.into_iter().map(Ok)), next)))
            }
        };
        stream::try_unfold(Some(None), fetch).try_flatten()
    }

    /// Makes a folder, and if `recursive` also those above it that are missing. Fails with status 409 if it exists, and with 412 if
    /// the folder above it is missing.
    pub async fn create_folder(&self, name: &str, recursive: bool) -> Result<Folder, Error> {
        let name = checked(name)?;
        let call = Call::api(Method::POST, &format!("/b/{}/folders", segment(self.name())))
            .maybe("recursive", recursive.then_some("true"))
            .json(&json!({ "name": name }))
            .idempotent(true);
        match self.line.send(&call).await {
            Ok(answer) => parsed(&answer),
            Err(failure) => Err(settle::of_folder(failure, self.folder_path(&name))),
        }
    }

    /// Gives a folder another whole name, and so all that lies in it, in one change or none. Waits until that is done.
    ///
    /// The folder above the new name must exist (status 412), and the new name must be free (409). Fails with status 412 too if the
    /// folder was renamed since it was looked up, and with 404 if it is not there any more.
    pub async fn rename_folder(&self, folder: &Folder, to: &str) -> Result<Folder, Error> {
        let to = checked(to)?;
        let rest = format!("/renameTo/folders/{}", segment(&to));
        // May be repeated: after the first execution the old name is free and the new one is taken, and only a new folder of the old
        // name, with the new name free again, would let a second one through.
        let call = self
            .folder_call(Method::POST, &folder.name, &rest)
            .parameter("ifSourceMetagenerationMatch", folder.metageneration.to_string())
            .header("Content-Length", "0")
            .idempotent(true);
        let failure = match self.line.send(&call).await {
            Ok(answer) => return self.folder_renamed(parsed(&answer)?, &to).await,
            Err(failure) => failure,
        };
        // The refusal of a later attempt may come from the success of an earlier one.
        let found = if failure.in_doubt { self.folder(&to).await.ok().flatten() } else { None };
        match found.filter(|found| found.was(folder)) {
            Some(renamed) => Ok(renamed),
            None => Err(settle::of_folder(failure, self.folder_path(&folder.name))),
        }
    }

    /// Deletes a folder in which nothing lies. Fails with status 412 if something does, and with 404 if there is no such folder.
    pub async fn delete_folder(&self, name: &str) -> Result<(), Error> {
        let name = checked(name)?;
        let call = self.folder_call(Method::DELETE, &name, "").idempotent(true);
        let deleted = self.line.send(&call).await;
        deleted.map(drop).map_err(|failure| settle::of_folder(failure, self.folder_path(&name)))
    }

    fn folder_call(&self, method: Method, name: &str, rest: &str) -> Call {
        Call::api(method, &format!("/b/{}/folders/{}{rest}", segment(self.name()), segment(name)))
    }

    fn folder_path(&self, folder: &str) -> String {
        format!("{}/{folder}", self.name())
    }

    /// Waits for the end of a rename.
    async fn folder_renamed(&self, mut operation: Operation, to: &str) -> Result<Folder, Error> {
        for asks in 1..=FOLDER_ASKS_MAX {
            if operation.done {
                return match (operation.error, operation.response) {
                    (Some(status), _) => Err(status.refusal().into()),
                    (None, Some(folder)) => Ok(folder),
                    (None, None) => {
                        let what = format!("a rename to {to} without a folder and without an error");
                        Err(Error::Unreadable { what, cause: None })
                    }
                };
            }
            tokio::time::sleep(FOLDER_WAIT.wait(asks, self.line.sender.chance())).await;
            let id = operation.name.rsplit('/').next().unwrap_or_default();
            let path = format!("/b/{}/operations/{}", segment(self.name()), segment(id));
            operation = self.line.read(&Call::api(Method::GET, &path)).await?;
        }
        Err(Error::Unfinished { operation: operation.name })
    }
}

impl Folder {
    /// Whether this folder was `earlier` before a rename.
    fn was(&self, earlier: &Self) -> bool {
        self.create_time.is_some()
            && self.create_time == earlier.create_time
            && self.metageneration > earlier.metageneration
    }
}

impl Status {
    /// The refusal with the status of HTTP that has this code.
    fn refusal(self) -> Refusal {
        let status = match self.code {
            3 => 400,
            5 => 404,
            6 | 10 => 409,
            7 => 403,
            9 => 412,
            14 => 503,
            _ => 500,
        };
        Refusal { status, reason: String::new(), text: self.message }
    }
}

/// The whole name of a folder with its slash, so that a wrong one is refused before anything is sent.
fn checked(name: &str) -> Result<String, Error> {
    let whole = with_slash(name);
    match check_folder(&whole) {
        Ok(()) => Ok(whole),
        Err(error) => Err(Invalid(format!("{name:?} is not the name of a folder: {}", error.message)).into()),
    }
}
