//! Web pages of other origins: a bucket's CORS rules say which of them may send requests.
//!
//! A browser names the page's origin in each request. Without a rule that lets it, such a request is refused before
//! anything is done. Otherwise any page that a developer opens could write to the server on the same machine: simple
//! requests are sent without asking first.
//!
//! A browser asks first before a page may send a token. So a request with a token comes from a program, or from a page that a rule
//! lets. Programs name an origin when they begin an upload that a page is to go on with, and they are served, unless a rule names
//! the origin: what a browser learned about one method of an address it also believes for another one.

use rangehold_protocol::object::bucket::cors::{CorsRule, allowing};
use rangehold_protocol::object::error::{ErrorKind, ObjectError};

use super::ObjectService;
use super::access::bearer;
use super::exchange::Exchange;
use super::failure::Failure;
use super::reply::Reply;

impl ObjectService {
    /// Refuses a request of a page from another origin, unless a rule lets it.
    pub(super) async fn check_origin(&self, exchange: &Exchange<'_>) -> Result<(), Failure> {
        let Some(origin) = foreign_origin(exchange) else { return Ok(()) };
        let rules = self.rules(exchange).await;
        let has_token = exchange.header("authorization").is_some_and(|header| bearer(header).is_some());
        let is_of_program = has_token && !rules.iter().any(|rule| rule.names(origin));
        if is_of_program || allowing(&rules, origin, exchange.head.method.as_str()).is_some() {
            return Ok(());
        }
        let message = format!("No CORS rule of the bucket lets a page of {origin} send this request.");
        Err(ObjectError::new(ErrorKind::Forbidden, message).into())
    }

    /// Answers a browser that asks whether a page may send a request.
    pub(super) async fn preflight(&self, exchange: &Exchange<'_>) -> Result<Reply, Failure> {
        let (origin, method) = (exchange.header("origin"), exchange.header("access-control-request-method"));
        let (Some(origin), Some(method)) = (origin, method) else { return Ok(Reply::empty(200)) };
        let Some(rule) = self.rule(exchange, origin, method).await else { return Ok(Reply::empty(200)) };
        let mut reply = Reply::empty(200).header("Access-Control-Allow-Methods", method);
        if let Some(headers) = exchange.header("access-control-request-headers") {
            let allowed = headers.split(',').map(str::trim).filter(|asked| {
                rule.response_header.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(asked))
            });
            reply.set("Access-Control-Allow-Headers", allowed.collect::<Vec<_>>().join(", "));
        }
        reply.set("Access-Control-Max-Age", rule.max_age_seconds.unwrap_or(3600).to_string());
        allow(&mut reply, &rule, origin);
        Ok(reply)
    }

    /// Adds what a browser needs to show the reply to the page.
    pub(super) async fn add_cors(&self, exchange: &Exchange<'_>, reply: &mut Reply) {
        let Some(origin) = foreign_origin(exchange) else { return };
        let Some(rule) = self.rule(exchange, origin, exchange.head.method.as_str()).await else { return };
        allow(reply, &rule, origin);
        if !rule.response_header.is_empty() {
            reply.set("Access-Control-Expose-Headers", rule.response_header.join(", "));
        }
    }

    /// The rule that lets a page of `origin` send a request with `method`.
    async fn rule(&self, exchange: &Exchange<'_>, origin: &str, method: &str) -> Option<CorsRule> {
        allowing(&self.rules(exchange).await, origin, method).cloned()
    }

    /// The rules of the bucket in the request's address. A bucket that cannot be read has none.
    async fn rules(&self, exchange: &Exchange<'_>) -> Vec<CorsRule> {
        let in_path = || {
            let path = exchange.head.uri.path();
            let names = path.strip_prefix("/b/").or_else(|| path.split_once("/v1/b/").map(|(_, rest)| rest));
            let name = names.or_else(|| path.strip_prefix('/'))?.split('/').next()?;
            rangehold_protocol::uri::decode(name).ok()
        };
        let name = exchange.bucket_in_host.clone().or_else(in_path).filter(|name| !name.is_empty());
        let Some(name) = name else { return Vec::new() };
        let bucket = self.bucket(&name).await;
        bucket.ok().and_then(|bucket| bucket.settings.cors.clone()).unwrap_or_default()
    }
}

fn allow(reply: &mut Reply, rule: &CorsRule, origin: &str) {
    let any = rule.origin.iter().any(|known| known == "*");
    reply.set("Access-Control-Allow-Origin", if any { "*" } else { origin });
    reply.set("Vary", "Origin");
}

/// The origin of a page that is not of this server.
fn foreign_origin<'a>(exchange: &'a Exchange<'_>) -> Option<&'a str> {
    exchange.header("origin").filter(|origin| *origin != exchange.base)
}
