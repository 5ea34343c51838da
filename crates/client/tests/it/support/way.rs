//! The way to a real server of objects, on which requests are refused and answers get lost.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use parking_lot::Mutex;
use rangehold_client::object::{Access, Bucket, Storage};
use rangehold_client::{Http, Lost, Options, Policy, Transport, Watch};
use serde_json::{Value, json};

use super::Home;

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Fine,
    /// It is not carried out, and answered with this status.
    Refused(u16),
    /// It is carried out, and its answer is lost.
    AnswerLost,
    /// It is carried out, and its answer is that of an operation that goes on.
    Unfinished,
}

/// The way to a real server, with the next fates in a list.
pub(crate) struct Way {
    http: Http,
    fates: Mutex<Vec<Fate>>,
    sent: Mutex<u32>,
}

impl Transport for Way {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, Lost>> {
        *self.sent.lock() += 1;
        let fate = self.fates.lock().pop().unwrap_or(Fate::Fine);
        async move {
            if let Fate::Refused(status) = fate {
                return Ok(Response::builder().status(status).body(Bytes::new()).expect("it is a status"));
            }
            let answer = self.http.send(request).await?;
            match fate {
                Fate::AnswerLost => Err(Lost::Unanswered("lost by the test".into())),
                Fate::Unfinished => Ok(unfinished(answer)),
                Fate::Fine | Fate::Refused(_) => Ok(answer),
            }
        }
        .boxed()
    }
}

impl Way {
    /// Sets the fates of the next requests, the first one first.
    pub(crate) fn next(&self, fates: &[Fate]) {
        *self.fates.lock() = fates.iter().rev().copied().collect();
        *self.sent.lock() = 0;
    }

    pub(crate) fn sent(&self) -> u32 {
        *self.sent.lock()
    }
}

/// The answer of an operation as it was before the operation ended.
fn unfinished(answer: Response<Bytes>) -> Response<Bytes> {
    answer.map(|body| {
        let mut operation: Value = serde_json::from_slice(&body).expect("JSON");
        let members = operation.as_object_mut().expect("an operation");
        members.remove("response").expect("it was done");
        members.insert("done".to_owned(), false.into());
        operation.to_string().into()
    })
}

/// A server with a new bucket, and the way there.
pub(crate) async fn bucket(name: &str) -> Option<(Home, Arc<Way>, Storage, Bucket)> {
    let policy = Policy::fixed(Duration::from_millis(1), 4);
    bucket_of(Home::open(), name, &json!({ "location": "EU" }), policy, None).await
}

/// The same with settings of the bucket, and a client that repeats by a policy and tells a watch.
pub(crate) async fn bucket_of(
    home: Home,
    name: &str,
    settings: &Value,
    retry: Policy,
    watch: Option<Watch>,
) -> Option<(Home, Arc<Way>, Storage, Bucket)> {
    let endpoint = home.objects()?;
    let way = Arc::new(Way { http: Http::plain(), fates: Mutex::default(), sent: Mutex::default() });
    let options = Options { transport: Some(way.clone()), retry, watch, seed: Some(1), ..Options::default() };
    let storage = Storage::new(&endpoint, Access::Anonymous, options).expect("it is an endpoint");
    storage.create_bucket("p", name, settings).await.expect("the name is new");
    let bucket = storage.bucket(name).expect("it is a name");
    Some((home, way, storage, bucket))
}
