//! Which web pages of other origins may ask a bucket.

use serde::{Deserialize, Serialize};

/// One rule of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CorsRule {
    /// Origins; `*` for all.
    pub origin: Vec<String>,
    /// Methods; `*` for all.
    pub method: Vec<String>,
    /// Headers of replies that the page may read.
    pub response_header: Vec<String>,
    /// How long a browser may keep the answer of a preflight, in seconds.
    pub max_age_seconds: Option<u32>,
}

impl CorsRule {
    /// Whether the rule lets a page of `origin` send requests with `method`.
    pub fn allows(&self, origin: &str, method: &str) -> bool {
        self.names(origin) && has(&self.method, method)
    }

    /// Whether the rule lets a page of `origin` send any requests.
    pub fn names(&self, origin: &str) -> bool {
        has(&self.origin, origin)
    }
}

fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|item| item == "*" || item.eq_ignore_ascii_case(value))
}

/// The first of `rules` that lets a page of `origin` send requests with `method`.
pub fn allowing<'a>(rules: &'a [CorsRule], origin: &str, method: &str) -> Option<&'a CorsRule> {
    rules.iter().find(|rule| rule.allows(origin, method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_answers() {
        let rule = |origin: &str, method: &str, age| CorsRule {
            origin: vec![origin.to_owned()],
            method: vec![method.to_owned()],
            max_age_seconds: Some(age),
            ..CorsRule::default()
        };
        let rules = [rule("https://a.example", "GET", 1), rule("*", "GET", 2), rule("*", "*", 3)];
        let age = |origin, method| allowing(&rules, origin, method).and_then(|rule| rule.max_age_seconds);
        assert_eq!(age("https://a.example", "GET"), Some(1));
        assert_eq!(age("https://b.example", "GET"), Some(2));
        assert_eq!(age("https://b.example", "PUT"), Some(3));
        assert_eq!(allowing(&rules[..2], "https://b.example", "PUT"), None);
    }
}
