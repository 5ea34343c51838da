//! Listings of objects. A page is written while its rows are read, each range as of one moment.

use rangehold_engine::Visit;
use rangehold_protocol::object::bucket::Bucket;
use rangehold_protocol::object::generation::Projection;
use rangehold_protocol::object::list::{JsonPage, ListRequest, Listing, PageEnd, Want};

use super::ObjectService;
use super::exchange::Exchange;
use super::failure::Failure;
use super::objects::address;
use super::reply::Reply;

impl ObjectService {
    pub(super) async fn list_objects(&self, exchange: &Exchange<'_>, bucket: &str) -> Result<Reply, Failure> {
        let request = ListRequest::parse(|name| exchange.query.get(name))?;
        let (projection, fields) = (exchange.query.projection(Projection::NoAcl)?, exchange.fields()?);
        let bucket = self.bucket(bucket).await?;
        let address = address(exchange, &bucket, "");
        let begin = || {
            let listing = Listing::new(&request, bucket.id, exchange.now.into());
            (listing, JsonPage::new(address, projection, &fields))
        };
        let keys = request.keys(bucket.id);
        let scanned = self.router.scan(&keys, begin, |(listing, page), key, row| {
            visit_of(listing.visit(key, row, |name, generation| page.put(name, generation)))
        });
        let (listing, mut page) = scanned.await?;
        let mut end = listing.finish(|name, generation| page.put(name, generation))?;
        if exchange.query.flag("includeFoldersAsPrefixes")? {
            add_folders(&request, &bucket, &mut end);
        }
        Ok(Reply::json(200, page.finish(&end)))
    }
}

/// Adds the managed folders that lie in the page to its prefixes.
fn add_folders(request: &ListRequest, bucket: &Bucket, end: &mut PageEnd) {
    let begin = request.position.as_ref().map_or("", |position| position.name.as_str());
    let rolled_up = bucket.managed_folders.keys().filter_map(|name| {
        let rest = name.strip_prefix(&request.prefix).filter(|_| !request.delimiter.is_empty())?;
        let length = rest.find(&request.delimiter)? + request.delimiter.len();
        Some(&name[..request.prefix.len() + length])
    });
    let in_page =
        |name: &&str| *name > begin && end.next.as_ref().is_none_or(|next| *name <= next.name.as_str());
    let folders: Vec<String> = rolled_up.filter(in_page).map(str::to_owned).collect();
    end.prefixes.extend(folders);
    end.prefixes.sort();
    end.prefixes.dedup();
}

/// What a listing wants, as the engine's scans take it.
pub(super) fn visit_of(want: Want) -> Visit {
    match want {
        Want::Next => Visit::Next,
        Want::Stop => Visit::Stop,
        Want::Seek(key) => Visit::Seek(key),
    }
}
