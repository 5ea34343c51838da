//! The conditions of IAM policies: a small part of the Common Expression Language.
//!
//! ```text
//! resource.name.startsWith("projects/_/buckets/photos/objects/2026/") && request.time < timestamp("2027-01-01T00:00:00Z")
//! ```
//!
//! | what | forms |
//! |---|---|
//! | truth | `true`, `false`, `!a`, `a && b`, `a \|\| b`, parentheses |
//! | texts | `"..."`, `'...'`, `resource.name`, `resource.type`, `resource.service`, `api.getAttribute("key", "default")` |
//! | about texts | `==`, `!=`, `.startsWith(text)`, `.endsWith(text)` |
//! | times | `request.time`, `timestamp("2027-01-01T00:00:00Z")` |
//! | about times | `==`, `!=`, `<`, `<=`, `>`, `>=` |
//!
//! An expression is read when its policy is set, and what is not understood is refused then: a condition that was ignored would
//! grant too much, or nothing without anybody knowing why. Everything has one type, which is known when it is read, so an
//! expression that was read always has a value.

mod lexer;
mod parser;

use rangehold_map::Timestamp;

/// The attribute of a listing: the prefix that it asks for.
pub const LIST_PREFIX: &str = "storage.googleapis.com/objectListPrefix";

/// An expression that is true or false.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// `true` or `false`.
    Constant(bool),
    /// `!a`.
    Not(Box<Expression>),
    /// `a && b`.
    And(Box<Expression>, Box<Expression>),
    /// `a || b`.
    Or(Box<Expression>, Box<Expression>),
    /// A comparison of two texts.
    Texts(TextRelation, Text, Text),
    /// A comparison of two times.
    Times(TimeRelation, Time, Time),
}

/// A text in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// It is spelled out.
    Literal(String),
    /// `resource.name`.
    Name,
    /// `resource.type`.
    Sort,
    /// `resource.service`.
    Service,
    /// `api.getAttribute("key", "default")`.
    Attribute {
        /// Which attribute.
        key: String,
        /// What counts if the request does not have it.
        default: String,
    },
}

/// How two texts are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TextRelation {
    Equal,
    Different,
    StartsWith,
    EndsWith,
}

/// A time in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// `timestamp("...")`.
    Literal(Timestamp),
    /// `request.time`.
    Now,
}

/// How two times are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TimeRelation {
    Equal,
    Different,
    Before,
    BeforeOrAt,
    After,
    AfterOrAt,
}

/// Why an expression was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, at character {at} of the condition")]
pub struct ExpressionError {
    /// What was wrong.
    pub reason: String,
    /// Where, counted from 1 in bytes.
    pub at: usize,
}

/// A request as conditions see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circumstances<'a> {
    /// When it came.
    pub now: Timestamp,
    /// What it is about: `projects/_/buckets/b/objects/o`.
    pub name: &'a str,
    /// The sort of that: `storage.googleapis.com/Object`.
    pub sort: &'a str,
    /// The prefix of a listing of objects.
    pub list_prefix: Option<&'a str>,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`ExpressionError`] for everything that is not in the table of the module, and above the limits
    /// [`EXPRESSION_BYTES_MAX`](crate::object::limits::EXPRESSION_BYTES_MAX) and
    /// [`EXPRESSION_OPERATORS_MAX`](crate::object::limits::EXPRESSION_OPERATORS_MAX).
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        parser::parse(text)
    }

    /// Whether it is true of a request.
    pub fn holds(&self, of: &Circumstances<'_>) -> bool {
        match self {
            Self::Constant(value) => *value,
            Self::Not(inner) => !inner.holds(of),
            Self::And(one, other) => one.holds(of) && other.holds(of),
            Self::Or(one, other) => one.holds(of) || other.holds(of),
            Self::Texts(relation, one, other) => relation.holds(one.value(of), other.value(of)),
            Self::Times(relation, one, other) => relation.holds(one.value(of), other.value(of)),
        }
    }
}

impl Text {
    fn value<'v>(&'v self, of: &Circumstances<'v>) -> &'v str {
        match self {
            Self::Literal(text) => text,
            Self::Name => of.name,
            Self::Sort => of.sort,
            Self::Service => "storage.googleapis.com",
            Self::Attribute { key, default } => match of.list_prefix.filter(|_| key == LIST_PREFIX) {
                Some(prefix) => prefix,
                None => default,
            },
        }
    }
}

impl TextRelation {
    fn holds(self, one: &str, other: &str) -> bool {
        match self {
            Self::Equal => one == other,
            Self::Different => one != other,
            Self::StartsWith => one.starts_with(other),
            Self::EndsWith => one.ends_with(other),
        }
    }
}

impl Time {
    fn value(self, of: &Circumstances<'_>) -> Timestamp {
        match self {
            Self::Literal(time) => time,
            Self::Now => of.now,
        }
    }
}

impl TimeRelation {
    fn holds(self, one: Timestamp, other: Timestamp) -> bool {
        match self {
            Self::Equal => one == other,
            Self::Different => one != other,
            Self::Before => one < other,
            Self::BeforeOrAt => one <= other,
            Self::After => one > other,
            Self::AfterOrAt => one >= other,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::time::parse_iso;

    fn holds(text: &str) -> bool {
        let of = Circumstances {
            now: parse_iso("2026-11-25T10:00:00Z").expect("a time"),
            name: "projects/_/buckets/b/objects/a/1.jpg",
            sort: "storage.googleapis.com/Object",
            list_prefix: Some("a/"),
        };
        Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).holds(&of)
    }

    #[test]
    fn conditions_as_the_documents_show_them_have_their_values() {
        for (text, expected) in [
            (r#"resource.name.startsWith("projects/_/buckets/b/objects/a/")"#, true),
            (r#"resource.name.startsWith("projects/_/buckets/b/objects/b")"#, false),
            (r#"resource.name.endsWith('.jpg') && resource.type == "storage.googleapis.com/Object""#, true),
            (r#"resource.type != "storage.googleapis.com/Bucket""#, true),
            (r#"resource.service == "storage.googleapis.com""#, true),
            (r#"request.time < timestamp("2026-11-25T10:00:00.1Z")"#, true),
            (r#"request.time >= timestamp("2026-11-25T10:00:01Z")"#, false),
            (r#"timestamp("2026-11-25T12:00:00+02:00") == request.time"#, true),
            (r#"api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("a/")"#, true),
            (r#"api.getAttribute("other", "x") == "x""#, true),
            ("true", true),
            ("!(true && false) || false", true),
            ("false && false || true", true),
            ("false && (false || true)", false),
            (r#"!resource.name.startsWith("x")"#, true),
            (r#"resource.name == "projects/_/buckets/b/objects/a/1\x2ejpg" || "\"" == '"'"#, true),
        ] {
            assert_eq!(holds(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_place() {
        for (text, at) in [
            ("", 1),
            ("resource.name", 14),
            ("resource.name = \"a\"", 15),
            ("resource.labels == \"a\"", 10),
            ("resource.name.contains(\"a\")", 15),
            ("resource.name.matches('a')", 15),
            ("request.time == \"a\"", 17),
            ("request.time < timestamp(\"soon\")", 26),
            ("request.time < timestamp(\"2026-01-01\")", 26),
            ("request.time.getHours(\"UTC\")", 14),
            ("resource.name < \"a\"", 15),
            ("true && ", 9),
            ("(true", 6),
            ("true true", 6),
            ("\"a", 1),
            ("size(resource.name)", 1),
            ("api.getAttribute(\"a\", [])", 23),
            ("resource.name == \"a\" ? true : false", 22),
            ("1 == 1", 1),
            ("\"a\" == \"\\q\"", 9),
        ] {
            let refused = Expression::parse(text).expect_err(text);
            assert_eq!(refused.at, at, "{text}: {refused}");
        }
        let many = vec!["true"; 14].join(" && ");
        assert!(Expression::parse(&many).expect_err("13 operators").reason.contains("12"));
        let deep = format!("{}true{}", "(".repeat(200), ")".repeat(200));
        assert!(Expression::parse(&deep).expect_err("deep").reason.contains("parentheses"));
        assert!(Expression::parse(&" ".repeat(20_000)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([a-z.]{1,8}|[&|!=<>()\"' ,]|resource.name|request.time|timestamp|\\PC){0,20}") {
            if let Ok(expression) = Expression::parse(&text) {
                let of = Circumstances { now: Timestamp::default(), name: "", sort: "", list_prefix: None };
                let _ = expression.holds(&of);
            }
        }
    }
}
