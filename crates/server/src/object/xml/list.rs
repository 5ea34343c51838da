//! Listings, of both versions.

use rangehold_protocol::object::generation::Generation;
use rangehold_protocol::object::list::{ListRequest, PageEnd, Position};
use rangehold_protocol::object::xml::list::{ListRequest as XmlListRequest, ListedObject, Page};

use super::{XmlApi, xml_reply};
use crate::object::exchange::Exchange;
use crate::object::failure::Failure;
use crate::object::reply::Reply;

impl XmlApi<'_> {
    pub(super) async fn list(&self, exchange: &Exchange<'_>, bucket: &str) -> Result<Reply, Failure> {
        let (asked, request) = listing(exchange)?;
        let bucket = self.bucket(bucket).await?;
        if asked.keys_max == 0 {
            return Ok(xml_reply(200, asked.render(&bucket.name, &Page::default())));
        }
        let put = |objects: &mut Vec<_>, name: &str, generation: &Generation| {
            objects.push(listed(name, generation));
        };
        let (objects, end) = self.page(exchange, &bucket, &request, Vec::new, put).await?;
        let PageEnd { prefixes, next } = end;
        let next = next.map(|next| if asked.second_version { next.token() } else { next.name });
        Ok(xml_reply(200, asked.render(&bucket.name, &Page { objects, prefixes, next })))
    }
}

/// What is asked for, in the words of this API and of the one with JSON.
pub(super) fn listing(exchange: &Exchange<'_>) -> Result<(XmlListRequest, ListRequest), Failure> {
    let asked = XmlListRequest::read(&exchange.query)?;
    let request = ListRequest {
        prefix: asked.prefix.clone(),
        delimiter: asked.delimiter.clone(),
        max_results: asked.keys_max as usize,
        position: position(&asked)?,
        by_marker: !asked.second_version,
        ..ListRequest::default()
    };
    Ok((asked, request))
}

/// Where the page begins.
fn position(asked: &XmlListRequest) -> Result<Option<Position>, Failure> {
    if let Some(token) = &asked.token {
        return Ok(Some(Position::parse(token)?));
    }
    if asked.after.is_empty() {
        return Ok(None);
    }
    let delimiter = if asked.second_version { "" } else { &asked.delimiter };
    Ok(Some(Position::of_marker(&asked.after, &asked.prefix, delimiter)))
}

fn listed(name: &str, generation: &Generation) -> ListedObject {
    ListedObject {
        name: name.to_owned(),
        generation: generation.id.0,
        metageneration: generation.metageneration,
        modified: generation.updated.text(),
        etag: generation.xml_etag(),
        size: generation.size,
        storage_class: generation.storage_class.name().to_owned(),
    }
}
