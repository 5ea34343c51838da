//! Chooses the form of the JSON for a reply: one of three metadata levels, by `$format` or `Accept`.

use crate::error::{ErrorCode, TableError};

/// How much metadata a JSON reply has (the levels of OData).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetadataLevel {
    /// Only values.
    None,
    /// ETags, and the types that JSON cannot show.
    #[default]
    Minimal,
    /// Everything, ids and links included.
    Full,
}

impl MetadataLevel {
    /// The content type of a reply at this level, as the service sends it.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }

    /// The level that a request asks for. `$format` counts before `Accept`. Of several accepted types, one
    /// that names a level counts first, because some SDKs also send `application/json` without a level.
    ///
    /// Fails with `AtomFormatNotSupported` or `MediaTypeNotSupported` (both 415) where the client accepts
    /// only formats that the service does not write.
    pub fn negotiate<'a>(
        format: Option<&str>,
        accepts: impl Iterator<Item = &'a str>,
    ) -> Result<Self, TableError> {
        if let Some(format) = format.filter(|f| !f.is_empty()) {
            return match Self::of_media_type(format) {
                MediaType::Json(level) => Ok(level.unwrap_or_default()),
                MediaType::Any if format == "json" => Ok(Self::Minimal),
                MediaType::Any | MediaType::Other => Err(ErrorCode::MediaTypeNotSupported.into()),
                MediaType::Atom => Err(ErrorCode::AtomFormatNotSupported.into()),
            };
        }
        let mut acceptable = None;
        let mut refused = None;
        for media_type in accepts.flat_map(|accept| accept.split(',')) {
            match Self::of_media_type(media_type.trim()) {
                MediaType::Json(Some(level)) => return Ok(level),
                MediaType::Json(None) | MediaType::Any => acceptable = Some(Self::Minimal),
                MediaType::Atom => refused = Some(ErrorCode::AtomFormatNotSupported),
                MediaType::Other => refused = refused.or(Some(ErrorCode::MediaTypeNotSupported)),
            }
        }
        match (acceptable, refused) {
            (Some(level), _) => Ok(level),
            (None, Some(code)) => Err(code.into()),
            (None, None) => Ok(Self::Minimal),
        }
    }

    fn of_media_type(text: &str) -> MediaType {
        let mut parts = text.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
        match essence.as_str() {
            "application/json" => {
                let level = parts.find_map(|parameter| {
                    let (name, value) = parameter.split_once('=')?;
                    // The value may be a quoted string (RFC 9110, section 5.6.6).
                    let value = value.trim().trim_matches('"').to_ascii_lowercase();
                    name.trim().eq_ignore_ascii_case("odata").then_some(value)
                });
                match level.as_deref() {
                    None => MediaType::Json(None),
                    Some("nometadata") => MediaType::Json(Some(Self::None)),
                    Some("minimalmetadata") => MediaType::Json(Some(Self::Minimal)),
                    Some("fullmetadata") => MediaType::Json(Some(Self::Full)),
                    // `verbose` is the JSON of OData 2, which the service never wrote for tables.
                    Some(_) => MediaType::Other,
                }
            }
            "" | "*/*" | "application/*" | "json" => MediaType::Any,
            "application/atom+xml" => MediaType::Atom,
            _ => MediaType::Other,
        }
    }
}

enum MediaType {
    Json(Option<MetadataLevel>),
    Any,
    Atom,
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(format: Option<&str>, accepts: &[&str]) -> Result<MetadataLevel, ErrorCode> {
        MetadataLevel::negotiate(format, accepts.iter().copied()).map_err(|error| error.code)
    }

    #[test]
    fn a_type_that_names_a_level_counts_first() {
        assert_eq!(of(None, &[]), Ok(MetadataLevel::Minimal));
        assert_eq!(of(None, &["application/json"]), Ok(MetadataLevel::Minimal));
        assert_eq!(
            of(None, &["application/json", "application/json;odata=fullmetadata"]),
            Ok(MetadataLevel::Full)
        );
        assert_eq!(of(None, &["application/json;odata=nometadata, */*"]), Ok(MetadataLevel::None));
        assert_eq!(
            of(Some("application/json;odata=minimalmetadata"), &["application/json;odata=nometadata"]),
            Ok(MetadataLevel::Minimal)
        );
        assert_eq!(of(None, &["application/json; odata=\"nometadata\""]), Ok(MetadataLevel::None));
        assert_eq!(of(None, &["*/*"]), Ok(MetadataLevel::Minimal));
    }

    #[test]
    fn formats_other_than_json_are_refused() {
        assert_eq!(of(None, &["application/atom+xml"]), Err(ErrorCode::AtomFormatNotSupported));
        assert_eq!(of(Some("atom"), &[]), Err(ErrorCode::MediaTypeNotSupported));
        assert_eq!(of(None, &["text/html"]), Err(ErrorCode::MediaTypeNotSupported));
        assert_eq!(of(None, &["application/json;odata=verbose"]), Err(ErrorCode::MediaTypeNotSupported));
    }
}
