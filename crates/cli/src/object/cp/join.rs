//! Two sorted lists of names, side by side: what only one of them has, and what both have.
//!
//! Both sides are streams, so a comparison of any number of names needs the memory of a page.

use anyhow::Result;
use futures::stream::{BoxStream, Peekable};
use futures::{StreamExt, stream};

use super::entry::Entry;

/// A name, and what is known of it on each side.
#[derive(Debug)]
pub(in crate::object) enum Pair {
    Source(Entry),
    Target(Entry),
    Both(Entry, Entry),
}

type Side = std::pin::Pin<Box<Peekable<BoxStream<'static, Result<Entry>>>>>;

/// Joins two streams that are in the order of [`Entry::name`].
pub(in crate::object) fn join(
    source: BoxStream<'static, Result<Entry>>,
    target: BoxStream<'static, Result<Entry>>,
) -> BoxStream<'static, Result<Pair>> {
    let sides: (Side, Side) = (Box::pin(source.peekable()), Box::pin(target.peekable()));
    stream::unfold(sides, |(mut source, mut target)| async move {
        let next = next(&mut source, &mut target).await?;
        Some((next, (source, target)))
    })
    .boxed()
}

/// The next pair. An error of a side comes before everything else.
async fn next(source: &mut Side, target: &mut Side) -> Option<Result<Pair>> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (source.as_mut().peek().await, target.as_mut().peek().await) {
        (None, None) => return None,
        (Some(Err(_)), _) | (Some(_), None) => Less,
        (_, Some(Err(_))) | (None, Some(_)) => Greater,
        (Some(Ok(source)), Some(Ok(target))) => source.name.cmp(&target.name),
    };
    Some(match order {
        Less => source.next().await?.map(Pair::Source),
        Greater => target.next().await?.map(Pair::Target),
        Equal => match (source.next().await?, target.next().await?) {
            (Ok(source), Ok(target)) => Ok(Pair::Both(source, target)),
            (Err(error), _) | (_, Err(error)) => Err(error),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(names: &[&str]) -> BoxStream<'static, Result<Entry>> {
        let entries: Vec<_> = names.iter().map(|name| Ok(Entry::file(name, "x".into(), 0))).collect();
        stream::iter(entries).boxed()
    }

    #[tokio::test]
    async fn each_name_comes_once_in_its_order() {
        let pairs = join(side(&["a", "b", "d"]), side(&["b", "c", "e", "f"]));
        let seen: Vec<String> = pairs
            .map(|pair| match pair.expect("no side fails") {
                Pair::Source(entry) => format!("+{}", entry.name),
                Pair::Target(entry) => format!("-{}", entry.name),
                Pair::Both(entry, _) => format!("={}", entry.name),
            })
            .collect()
            .await;
        assert_eq!(seen, ["+a", "=b", "-c", "+d", "-e", "-f"]);
    }
}
