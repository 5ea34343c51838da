//! Listings: each page is a read of every name that lies in it, and a walk shows what lasts once.

use std::time::Duration;

use super::{BUCKET, LASTING, Objects};
use crate::check::pages::{Walk, check};
use crate::check::register::{Call, Return};
use crate::client::Client;
use crate::client::objects::{ObjectPage, list, page};

const DELIMITER: &str = "/";

impl Objects {
    /// Walks through the bucket again and again until `end`, and holds each token for a while.
    pub async fn walk(self: std::sync::Arc<Self>, mut client: Client, end: Duration, hold: (u64, u64)) {
        while client.world().now() < end {
            let most = client.dice().between(1, 6) as usize;
            let delimiter = client.dice().happens(0.3).then_some(DELIMITER);
            self.once_through(&mut client, end, (delimiter, most), hold).await;
            client.think(hold.0, hold.1).await;
        }
    }

    /// One walk, judged.
    async fn once_through(
        &self,
        client: &mut Client,
        end: Duration,
        (delimiter, most): (Option<&str>, usize),
        hold: (u64, u64),
    ) {
        let (mut walk, mut token) = (Walk::default(), None::<String>);
        let mut begins_after_last = true;
        let since = client.world().now();
        while client.world().now() < end && !walk.ended {
            let begun = client.world().now();
            let answer = client.ask(list(BUCKET, delimiter, most, token.as_deref())).await.answer;
            if let Ok(reply) = answer.as_ref()
                && reply.status < 500
                && reply.status != 408
            {
                let fits = |page: &ObjectPage| page.items.len() + page.prefixes.len() <= most;
                let Some(page) = page(reply).filter(fits).filter(|_| reply.status == 200) else {
                    return self.found_answer(client, Call::Read, reply);
                };
                self.read_page(client, begun, &walk, begins_after_last, delimiter, &page);
                begins_after_last = page.items.len() + page.prefixes.len() == most;
                let mut names: Vec<String> = page.items.into_iter().map(|item| item.name).collect();
                names.extend(page.prefixes);
                names.sort();
                walk.seen.extend(names.into_iter().map(|name| (String::new(), name)));
                token = page.next;
                walk.ended = token.is_none();
            }
            client.think(hold.0, hold.1).await;
        }
        let lasting: Vec<_> = lasting(delimiter).into_iter().map(|name| (String::new(), name)).collect();
        for finding in check(&walk, &lasting, |(_, name)| self.names.iter().any(|known| known.name == *name))
        {
            let since = since.as_secs_f64();
            client.world().found(format_args!("a listing of objects begun at {since:.3} s {finding}"));
        }
    }

    /// Notes what a page says of each name in it: the names after the last page, up to the last one of this page. A page that
    /// was not full may have ended behind its last name, so the page after it tells nothing of the names before its first one.
    fn read_page(
        &self,
        client: &Client,
        begun: Duration,
        walk: &Walk,
        begins_after_last: bool,
        delimiter: Option<&str>,
        page: &ObjectPage,
    ) {
        let after = walk.seen.last().map_or("", |(_, name)| name.as_str());
        let shown = || page.items.iter().map(|item| &item.name).chain(&page.prefixes);
        let (first, last) = (shown().min(), shown().max());
        let is_in_page = |name: &str| {
            let is_behind_begin = begins_after_last || first.is_some_and(|first| name >= first.as_str());
            let is_before_end = page.next.is_none() || last.is_some_and(|last| name <= last.as_str());
            name > after
                && is_behind_begin
                && is_before_end
                && delimiter.is_none_or(|delimiter| !name.contains(delimiter))
        };
        for (number, name) in self.names.iter().enumerate().filter(|(_, name)| is_in_page(&name.name)) {
            let item = page.items.iter().find(|item| item.name == name.name);
            let told = Return::Value(item.map(|item| item.value));
            self.known().note(client, number, Call::Read, begun, told);
            if let Some(item) = item {
                self.saw(client, number, begun, Some(item.clone()));
            }
        }
    }
}

/// What each walk shows.
fn lasting(delimiter: Option<&str>) -> Vec<String> {
    let rolled_up = |name: &&str| match delimiter.and_then(|delimiter| name.split_once(delimiter)) {
        Some((before, _)) => format!("{before}{DELIMITER}"),
        None => (*name).to_owned(),
    };
    let mut names: Vec<String> = LASTING.iter().map(rolled_up).collect();
    names.dedup();
    names
}
