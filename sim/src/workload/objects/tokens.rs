//! Tokens: objects of a bucket of their own that are moved all the time, to names that are free. Nobody makes one or
//! deletes one, so each listing of the bucket must show each of them once, whatever range its names lie in: a move is seen
//! whole or not at all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rangehold_protocol::object::checksum::Crc32c;
use serde_json::json;

use super::known::bytes_of;
use crate::check::register::Value;
use crate::client::Client;
use crate::client::http::Reply;
use crate::client::objects::{
    Described, ObjectName, ObjectPage, Shown, create_bucket_with, list_beginning, move_to, page, shown,
    upload,
};
use crate::workload::{IN_THE_END, make};
use crate::world::{World, until_some};

const BUCKET: &str = "tokens";
/// Names: more than there are tokens.
const NAMES: [&str; 6] = ["a", "b", "c/1", "c/2", "d", "e"];
/// The bytes of each token. One lies in its row, the others in blobs.
const TOKENS: [usize; 3] = [700, 70_000, 90_000];

/// What is known of the tokens of a run.
#[derive(Default)]
pub struct Tokens {
    are_made: AtomicBool,
    /// Where each token was seen last.
    seen: Mutex<BTreeMap<Value, (usize, u64)>>,
}

impl Tokens {
    /// Makes the tokens, and then moves them until `end`.
    pub async fn make_and_move(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        let settings = json!({"softDeletePolicy": {"retentionDurationSeconds": "0"}});
        let made = |reply: &Reply| matches!(reply.status, 200 | 409);
        make(&mut client, "the bucket of the tokens", &create_bucket_with(BUCKET, &settings), made).await;
        for (at, length) in TOKENS.into_iter().enumerate() {
            let bytes = bytes_of(&vec![(at as Value, length)]);
            let name = object(at);
            let described = Described { to: &name, value: at as Value, if_generation: None };
            let request = upload(described, &bytes, &Crc32c::of(&bytes).text());
            make(&mut client, format!("token {at}"), &request, |reply| reply.status == 200).await;
        }
        self.are_made.store(true, Ordering::Relaxed);
        self.move_on(client, end, think).await;
    }

    /// Moves tokens from where they were seen last to names that may be free.
    pub async fn move_on(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            client.think(think.0, think.1).await;
            let token = client.dice().index(TOKENS.len()) as Value;
            let to = client.dice().index(NAMES.len());
            // No token is moved before all are made: the next one could be made under its new name, and overwrite it.
            let are_made = self.are_made.load(Ordering::Relaxed);
            let seen = self.seen().get(&token).copied();
            let Some((from, generation)) = seen.filter(|(from, _)| are_made && *from != to) else {
                continue;
            };
            let request = move_to(&object(from), generation, &object(to), Some(0));
            let Ok(reply) = client.ask(request).await.answer else { continue };
            match (reply.status, shown(&reply)) {
                (200, Some(shown)) if shown.value == token => {
                    self.saw(to, &shown);
                }
                (404 | 408 | 412 | 500.., _) => {}
                (status, shown) => {
                    client
                        .world()
                        .found(format_args!("the move of token {token} was answered {status}: {shown:?}"));
                }
            }
        }
    }

    /// Lists the bucket again and again until `end`.
    pub async fn watch(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        while client.world().now() < end {
            client.think(think.0, think.1).await;
            let _ = self.look(&mut client).await;
        }
    }

    /// Looks once more when all is calm.
    pub async fn look_at_last(&self, world: &World) {
        if !self.are_made.load(Ordering::Relaxed) {
            return;
        }
        let client = tokio::sync::Mutex::new(Client::of_objects(world, "last of tokens").only_once());
        if until_some(IN_THE_END, || async { self.look(&mut *client.lock().await).await }).await.is_none() {
            world.found("the tokens cannot be listed when all is calm");
        }
    }

    /// Lists the bucket and judges the page; `None` without a page that shows all of it.
    async fn look(&self, client: &mut Client) -> Option<()> {
        let were_made = self.are_made.load(Ordering::Relaxed);
        let begun = client.world().now();
        let reply = client.ask(list_beginning(BUCKET, "", false)).await.answer.ok()?;
        let page = page(&reply).filter(|page| reply.status == 200 && page.next.is_none())?;
        for wrong in wrongs(&page).into_iter().filter(|_| were_made) {
            let begun = begun.as_secs_f64();
            client.world().found(format_args!("a listing of tokens begun at {begun:.3} s {wrong}"));
        }
        for item in &page.items {
            if let Some(at) = NAMES.iter().position(|name| *name == item.name) {
                self.saw(at, item);
            }
        }
        Some(())
    }

    /// A token was seen at a name. Generations tell nothing of the order: they grow for each name, and the clocks of two
    /// ranges may differ.
    fn saw(&self, at: usize, shown: &Shown) {
        self.seen().insert(shown.value, (at, shown.generation));
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, BTreeMap<Value, (usize, u64)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is wrong with a page that shows the whole bucket.
fn wrongs(page: &ObjectPage) -> Vec<String> {
    let mut wrongs = Vec::new();
    for (token, length) in TOKENS.into_iter().enumerate() {
        let at: Vec<&Shown> = page.items.iter().filter(|item| item.value == token as Value).collect();
        let names: Vec<&str> = at.iter().map(|item| item.name.as_str()).collect();
        if at.len() != 1 {
            wrongs.push(format!("shows token {token} at {names:?}"));
        }
        let sum = Crc32c::of(&bytes_of(&vec![(token as Value, length)])).text();
        if at.iter().any(|item| item.crc32c != sum) {
            wrongs.push(format!("shows token {token} at {names:?} with another checksum than {sum}"));
        }
    }
    if page.items.len() > TOKENS.len() {
        wrongs.push(format!("shows more than the tokens: {:?}", page.items));
    }
    wrongs
}

fn object(at: usize) -> ObjectName {
    ObjectName::new(BUCKET, NAMES[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, token: usize) -> Shown {
        let crc32c = Crc32c::of(&bytes_of(&vec![(token as Value, TOKENS[token])])).text();
        Shown { name: name.to_owned(), value: token as Value, generation: 1, crc32c }
    }

    #[test]
    fn a_page_shows_each_token_once() {
        let page = |items: &[(&str, usize)]| {
            let items = items.iter().map(|(name, token)| item(name, *token)).collect();
            ObjectPage { items, ..ObjectPage::default() }
        };
        assert_eq!(wrongs(&page(&[("a", 1), ("b", 0), ("e", 2)])), Vec::<String>::new());
        assert_eq!(wrongs(&page(&[("a", 1), ("e", 2)])), ["shows token 0 at []"]);
        let both = wrongs(&page(&[("a", 1), ("b", 0), ("c/1", 1), ("e", 2)]));
        assert_eq!((both.len(), both[0].as_str()), (2, "shows token 1 at [\"a\", \"c/1\"]"));
    }
}
