//! `rangehold object cat`

use std::io::Write;

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::TryStreamExt;
use rangehold_client::object::{Bucket, Generation};

use super::find::{Found, Look, matching};
use super::place::cloud;
use super::service::{Kind, ServiceFlags};

/// `rangehold object cat`
#[derive(Debug, Args)]
pub(super) struct Cat {
    /// Objects, such as gs://BUCKET/NAME, gs://BUCKET/NAME#GENERATION or a pattern gs://BUCKET/a*.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Only these bytes: FIRST-LAST, FIRST- or -COUNT for the last ones.
    #[arg(short, long, value_name = "RANGE", allow_hyphen_values = true, value_parser = range)]
    range: Option<Bytes>,
    /// Print the name of each object before its bytes.
    #[arg(short = 'd', long)]
    display_url: bool,
}

/// The bytes that `--range` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bytes {
    From(u64),
    FromTo(u64, u64),
    Last(u64),
}

fn range(text: &str) -> Result<Bytes, String> {
    let wrong = || format!("{text:?} is not a range: write it as 0-99, 100- or -100");
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    match text.split_once('-').ok_or_else(wrong)? {
        ("", count) => Ok(Bytes::Last(number(count)?)),
        (first, "") => Ok(Bytes::From(number(first)?)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first { Err(wrong()) } else { Ok(Bytes::FromTo(first, last)) }
        }
    }
}

/// Prints objects one after the other.
pub(super) async fn run(service: &ServiceFlags, cat: &Cat) -> Result<()> {
    let (storage, _) = service.open(Kind::Reads)?;
    for url in &cat.urls {
        let place = cloud(url)?;
        let bucket = storage.bucket(&place.bucket)?;
        if !place.is_pattern() || place.generation.is_some() {
            print(&bucket, &place.name, place.generation, cat).await.with_context(|| url.clone())?;
            continue;
        }
        let mut found = matching(&bucket, &place, Look::default())?;
        let mut any = false;
        while let Some(found) = found.try_next().await? {
            let Found::Object(object) = found else { continue };
            any = true;
            let name = format!("gs://{}/{}", bucket.name(), object.name);
            print(&bucket, &object.name, Some(object.generation), cat).await.with_context(|| name)?;
        }
        if !any {
            bail!("no object matches {url}");
        }
    }
    Ok(())
}

async fn print(bucket: &Bucket, name: &str, generation: Option<Generation>, cat: &Cat) -> Result<()> {
    let mut output = std::io::stdout().lock();
    if cat.display_url {
        writeln!(output, "==> gs://{}/{name} <==", bucket.name())?;
    }
    drop(output);
    let (range, generation) = match cat.range {
        None => (None, generation),
        Some(range) => {
            let object = bucket.stat(name, generation).await?.context("there is no such object")?;
            let (size, limited) = (object.size, |end: u64| end.min(object.size));
            let range = match range {
                Bytes::From(first) => first..size,
                Bytes::FromTo(first, last) => first..limited(last.saturating_add(1)),
                Bytes::Last(count) => size.saturating_sub(count)..size,
            };
            (Some(range), Some(object.generation))
        }
    };
    let mut download = bucket.download(name, generation)?;
    if let Some(range) = range {
        download = download.part(range);
    }
    while let Some(piece) = download.next().await? {
        std::io::stdout().write_all(&piece).context("cannot write to standard output")?;
    }
    std::io::stdout().flush().context("cannot write to standard output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_or_refused() {
        assert_eq!(
            [range("0-9"), range("5-"), range("-3")].map(Result::unwrap),
            [Bytes::FromTo(0, 9), Bytes::From(5), Bytes::Last(3)]
        );
        for text in ["", "5", "9-1", "-", "a-b"] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
