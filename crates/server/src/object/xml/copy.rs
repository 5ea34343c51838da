//! Copies: a put whose bytes are those of another object.

use rangehold_protocol::object::error::ObjectError;
use rangehold_protocol::object::generation::{Draft, Encryption, Generation, Settings};
use rangehold_protocol::object::write::Name;
use rangehold_protocol::object::xml::request::CopySource;
use rangehold_protocol::object::xml::{headers, parts};

use super::object::described;
use super::{XmlApi, conditions, xml_reply};
use crate::object::encryption::{check_key, customer_key};
use crate::object::exchange::Exchange;
use crate::object::failure::Failure;
use crate::object::located::Wants;
use crate::object::media::{TRIES_MAX, replaced_again};
use crate::object::reply::Reply;

impl XmlApi<'_> {
    pub(super) async fn copy(
        &self,
        exchange: &Exchange<'_>,
        bucket: &str,
        name: &str,
        source: &CopySource,
    ) -> Result<Reply, Failure> {
        let described = described(exchange, name)?;
        let source_conditions = headers::source_conditions(|name| exchange.header(name))?;
        let conditions = conditions(exchange)?;
        let wanted = source_generation(exchange, source)?;
        let (from, from_name) = self.place(exchange, &source.bucket, &source.name, Wants::There).await?;
        let key = customer_key(exchange, "x-goog-copy-source-encryption")?;
        for _ in 0..TRIES_MAX {
            let source = self.source(&from, &from_name, wanted, &source_conditions).await?;
            check_key(&source.generation, key)?;
            let draft = match exchange.header("x-goog-metadata-directive") {
                None | Some("COPY") => {
                    let Generation { settings, encryption, .. } = &source.generation;
                    copied_draft(settings, encryption, described.draft.clone())
                }
                Some("REPLACE") => described.draft.clone(),
                Some(other) => {
                    let hint = "Give COPY or REPLACE.";
                    return Err(ObjectError::invalid("x-goog-metadata-directive", other, hint).into());
                }
            };
            let (to, to_name) = self.place(exchange, bucket, name, Wants::New).await?;
            let to = Name { bucket: &to, name: &to_name };
            let from = (Name { bucket: &from, name: &from_name }, &source);
            if let Some(made) = self.take_over(exchange, to, &draft, &conditions, from).await? {
                return Ok(copied(&made));
            }
        }
        Err(replaced_again())
    }
}

/// The answer that tells what was made.
fn copied(made: &Generation) -> Reply {
    xml_reply(200, parts::copied(&made.updated.text(), &made.xml_etag()))
        .header("x-goog-generation", made.id.0.to_string())
        .header("x-goog-metageneration", made.metageneration.to_string())
        .header("ETag", format!("\"{}\"", made.xml_etag()))
}

/// What the source has, without what protects it, and with what the request says of the list, class and key.
fn copied_draft(settings: &Settings, encryption: &Encryption, said: Draft) -> Draft {
    let settings =
        Settings { temporary_hold: None, event_based_hold: None, retention: None, ..settings.clone() };
    let source_key = match encryption {
        Encryption::Kms(key) => Some(key.clone()),
        Encryption::Default | Encryption::Customer(_) => None,
    };
    Draft { settings, kms_key: said.kms_key.or(source_key), ..said }
}

/// The generation that is copied, if one is named.
pub(super) fn source_generation(
    exchange: &Exchange<'_>,
    source: &CopySource,
) -> Result<Option<u64>, ObjectError> {
    let header = "x-goog-copy-source-generation";
    let number =
        |text: &str| text.parse().map_err(|_| ObjectError::invalid(header, text, "Give a generation."));
    Ok(exchange.header(header).map(number).transpose()?.or(source.generation))
}
