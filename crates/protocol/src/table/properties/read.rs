//! Reading a change of service properties.
//!
//! The body must follow the service's documentation. Everything else is refused with `InvalidXmlDocument`,
//! the only code that recordings show for it.

use super::{CorsRule, IncludeApis, Logging, Metrics, PropertiesUpdate};
use crate::error::{ErrorCode, TableError};
use crate::table::limits::{
    CORS_HEADERS_MAX, CORS_NAME_UNITS_MAX, CORS_ORIGINS_MAX, CORS_PREFIXES_MAX, CORS_RULES_MAX,
    RETENTION_DAYS_MAX,
};
use crate::table::xml::{self, Element, invalid};

/// Methods that a CORS rule may allow.
const METHODS: [&str; 8] = ["DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH"];

/// Reads the body of a request that changes service properties. Fails with `InvalidXmlDocument`.
pub fn parse_update(body: &[u8]) -> Result<PropertiesUpdate, TableError> {
    let root = xml::parse(body, "StorageServiceProperties")?;
    let mut update = PropertiesUpdate::default();
    for part in &root.children {
        match part.name.as_str() {
            "Logging" => put(&mut update.logging, part, logging(part)?)?,
            // `Metrics` is the name that hour metrics had before there were minute metrics.
            "HourMetrics" | "Metrics" => put(&mut update.hour_metrics, part, metrics(part)?)?,
            "MinuteMetrics" => put(&mut update.minute_metrics, part, metrics(part)?)?,
            "Cors" => put(&mut update.cors, part, cors(part)?)?,
            _ => return Err(part.unexpected()),
        }
    }
    Ok(update)
}

/// Keeps the value of `element`. Fails if it is given twice.
fn put<T>(slot: &mut Option<T>, element: &Element, value: T) -> Result<(), TableError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(invalid(format!("the element {} twice", element.name))),
    }
}

fn missing(element: &Element, child: &str) -> TableError {
    invalid(format!("the element {} without the element {child}", element.name))
}

fn logging(element: &Element) -> Result<Logging, TableError> {
    let (mut version, mut read, mut write, mut delete, mut retention) = (None, None, None, None, None);
    for field in &element.children {
        match field.name.as_str() {
            "Version" => put(&mut version, field, self::version(field)?)?,
            "Read" => put(&mut read, field, truth(field)?)?,
            "Write" => put(&mut write, field, truth(field)?)?,
            "Delete" => put(&mut delete, field, truth(field)?)?,
            "RetentionPolicy" => put(&mut retention, field, retention_days(field)?)?,
            _ => return Err(field.unexpected()),
        }
    }
    Ok(Logging {
        version: version.ok_or_else(|| missing(element, "Version"))?,
        read: read.ok_or_else(|| missing(element, "Read"))?,
        write: write.ok_or_else(|| missing(element, "Write"))?,
        delete: delete.ok_or_else(|| missing(element, "Delete"))?,
        retention_days: retention.flatten(),
    })
}

fn metrics(element: &Element) -> Result<Metrics, TableError> {
    let (mut version, mut enabled, mut include_apis, mut retention) = (None, None, None, None);
    for field in &element.children {
        match field.name.as_str() {
            "Version" => put(&mut version, field, self::version(field)?)?,
            "Enabled" => put(&mut enabled, field, truth(field)?)?,
            "IncludeAPIs" => put(&mut include_apis, field, truth(field)?)?,
            "RetentionPolicy" => put(&mut retention, field, retention_days(field)?)?,
            _ => return Err(field.unexpected()),
        }
    }
    let enabled = match enabled.ok_or_else(|| missing(element, "Enabled"))? {
        true => Some(IncludeApis(include_apis.ok_or_else(|| missing(element, "IncludeAPIs"))?)),
        false => None,
    };
    Ok(Metrics {
        version: version.ok_or_else(|| missing(element, "Version"))?,
        enabled,
        retention_days: retention.flatten(),
    })
}

fn retention_days(element: &Element) -> Result<Option<u32>, TableError> {
    let (mut enabled, mut days) = (None, None);
    for field in &element.children {
        match field.name.as_str() {
            "Enabled" => put(&mut enabled, field, truth(field)?)?,
            "Days" => put(&mut days, field, number(field)?)?,
            _ => return Err(field.unexpected()),
        }
    }
    if !enabled.ok_or_else(|| missing(element, "Enabled"))? {
        return Ok(None);
    }
    let days = days.ok_or_else(|| missing(element, "Days"))?;
    if !(1..=RETENTION_DAYS_MAX).contains(&days) {
        // Recorded without a reason.
        return Err(ErrorCode::InvalidXmlDocument.into());
    }
    Ok(Some(days))
}

fn cors(element: &Element) -> Result<Vec<CorsRule>, TableError> {
    if element.children.len() > CORS_RULES_MAX {
        return Err(invalid(format!("{} CORS rules, of {CORS_RULES_MAX} allowed", element.children.len())));
    }
    element.children.iter().map(cors_rule).collect()
}

fn cors_rule(element: &Element) -> Result<CorsRule, TableError> {
    if element.name != "CorsRule" {
        return Err(element.unexpected());
    }
    let (mut origins, mut methods, mut allowed, mut exposed, mut max_age) = (None, None, None, None, None);
    for field in &element.children {
        match field.name.as_str() {
            "AllowedOrigins" => put(&mut origins, field, filled_list(field)?)?,
            "AllowedMethods" => put(&mut methods, field, cors_methods(field)?)?,
            "AllowedHeaders" => put(&mut allowed, field, header_names(field)?)?,
            "ExposedHeaders" => put(&mut exposed, field, header_names(field)?)?,
            "MaxAgeInSeconds" => put(&mut max_age, field, number(field)?)?,
            _ => return Err(field.unexpected()),
        }
    }
    Ok(CorsRule {
        allowed_origins: origins.ok_or_else(|| missing(element, "AllowedOrigins"))?,
        allowed_methods: methods.ok_or_else(|| missing(element, "AllowedMethods"))?,
        allowed_headers: allowed.unwrap_or_default(),
        exposed_headers: exposed.unwrap_or_default(),
        max_age_seconds: max_age.unwrap_or_default(),
    })
}

fn cors_methods(element: &Element) -> Result<Vec<String>, TableError> {
    let methods: Vec<String> =
        filled_list(element)?.iter().map(|method| method.to_ascii_uppercase()).collect();
    match methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
        None => Ok(methods),
        Some(method) => {
            Err(invalid(format!("the method {method}; a CORS rule allows {}", METHODS.join(", "))))
        }
    }
}

/// Names of headers, perhaps none. The service returns prefixes after whole names.
fn header_names(element: &Element) -> Result<Vec<String>, TableError> {
    let (prefixes, mut names): (Vec<String>, Vec<String>) =
        list(element)?.into_iter().partition(|name| name.ends_with('*'));
    if names.len() > CORS_HEADERS_MAX || prefixes.len() > CORS_PREFIXES_MAX {
        return Err(invalid(format!(
            "{} with {} names and {} prefixes, of {CORS_HEADERS_MAX} and {CORS_PREFIXES_MAX} allowed",
            element.name,
            names.len(),
            prefixes.len()
        )));
    }
    names.extend(prefixes);
    Ok(names)
}

fn filled_list(element: &Element) -> Result<Vec<String>, TableError> {
    let items = list(element)?;
    if items.is_empty() {
        return Err(invalid(format!("nothing in {}", element.name)));
    }
    if items.len() > CORS_ORIGINS_MAX {
        return Err(invalid(format!(
            "{} items in {}, of {CORS_ORIGINS_MAX} allowed",
            items.len(),
            element.name
        )));
    }
    Ok(items)
}

/// A list with commas between its items.
fn list(element: &Element) -> Result<Vec<String>, TableError> {
    let items: Vec<String> =
        element.text().split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect();
    let unfit = |item: &String| {
        item.encode_utf16().count() > CORS_NAME_UNITS_MAX || item.chars().any(|c| c.is_control())
    };
    match items.iter().find(|item| unfit(item)) {
        None => Ok(items),
        Some(_) => Err(invalid(format!(
            "an item of {} that has more than {CORS_NAME_UNITS_MAX} characters, or control characters",
            element.name
        ))),
    }
}

fn version(element: &Element) -> Result<String, TableError> {
    match element.text() {
        version @ ("1.0" | "2.0") => Ok(version.to_owned()),
        other => Err(invalid(format!("Version {other:?}, which is not 1.0"))),
    }
}

fn truth(element: &Element) -> Result<bool, TableError> {
    match element.text().to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(invalid(format!("{} {other:?}, which is neither true nor false", element.name))),
    }
}

fn number(element: &Element) -> Result<u32, TableError> {
    let text = element.text();
    text.parse::<u32>()
        .ok()
        .filter(|number| *number <= i32::MAX as u32)
        .ok_or_else(|| invalid(format!("{} {text:?}, which is not a number", element.name)))
}
