//! Cross-origin requests: the headers that tell a browser what pages of other origins may do.
//!
//! Before a page sends a request, the browser may ask (the preflight, `OPTIONS`) whether the page may use
//! the method and the headers. In the answer to the request itself, headers tell the browser whether the
//! page may see it. The first of an account's rules that allows the origin and the method decides. A later
//! rule is not tried, even if it would allow the headers too.
//!
//! Origins are compared as texts, including case. For a rule that allows all origins the answer is `*`,
//! with which browsers send no credentials. For a rule that names the origin, the answer repeats it and
//! allows credentials.

use super::properties::CorsRule;

/// Headers to add to a reply.
pub type CorsHeaders = Vec<(&'static str, String)>;

const ANY: &str = "*";

/// The headers of the answer to a preflight from `origin` for `method`. `headers` lists the names of
/// headers that the page wants to send, and may be empty. `None` if the rules do not allow it; the caller
/// then answers `CorsPreflightFailure`.
pub fn preflight(rules: &[CorsRule], origin: &str, method: &str, headers: &str) -> Option<CorsHeaders> {
    let rule = deciding(rules, origin, method)?;
    let mut asked = headers.split(',').map(str::trim).filter(|name| !name.is_empty());
    if !asked.all(|name| matches_any(&rule.allowed_headers, name)) {
        return None;
    }
    let mut out = allow_origin(rule, origin);
    out.push(("Access-Control-Allow-Methods", method.to_owned()));
    if !headers.is_empty() {
        out.push(("Access-Control-Allow-Headers", headers.to_owned()));
    }
    out.push(("Access-Control-Max-Age", rule.max_age_seconds.to_string()));
    Some(out)
}

/// The headers for the reply to a request by `method` from a page of `origin`; `None` if the account has
/// no rules. A request that no rule allows is answered too, but then the browser does not show the answer
/// to the page.
pub fn actual(rules: &[CorsRule], origin: &str, method: &str) -> Option<CorsHeaders> {
    if rules.is_empty() {
        return None;
    }
    let Some(rule) = deciding(rules, origin, method) else {
        return Some(vary(method));
    };
    let mut out = allow_origin(rule, origin);
    if !rule.exposed_headers.is_empty() {
        out.push(("Access-Control-Expose-Headers", rule.exposed_headers.join(",")));
    }
    if !allows_all(rule) {
        out.extend(vary(method));
    }
    Some(out)
}

/// The headers for the reply to a request by `method` without an origin. They tell a cache on the way
/// whether the answer would differ for a request with one.
pub fn without_origin(rules: &[CorsRule], method: &str) -> CorsHeaders {
    let for_all = rules.iter().find(|rule| allows_all(rule) && allows_method(rule, method));
    match for_all {
        Some(_) => actual(rules, ANY, method).unwrap_or_default(),
        None if rules.is_empty() => CorsHeaders::new(),
        None => vary(method),
    }
}

/// `Vary` for the methods whose answers caches keep.
fn vary(method: &str) -> CorsHeaders {
    match method {
        "GET" | "HEAD" => vec![("Vary", "Origin".to_owned())],
        _ => CorsHeaders::new(),
    }
}

fn allow_origin(rule: &CorsRule, origin: &str) -> CorsHeaders {
    if allows_all(rule) {
        return vec![("Access-Control-Allow-Origin", ANY.to_owned())];
    }
    vec![
        ("Access-Control-Allow-Origin", origin.to_owned()),
        ("Access-Control-Allow-Credentials", "true".to_owned()),
    ]
}

/// The first rule for an origin and a method.
fn deciding<'r>(rules: &'r [CorsRule], origin: &str, method: &str) -> Option<&'r CorsRule> {
    rules.iter().find(|rule| {
        let for_origin = allows_all(rule) || rule.allowed_origins.iter().any(|allowed| allowed == origin);
        for_origin && allows_method(rule, method)
    })
}

fn allows_all(rule: &CorsRule) -> bool {
    rule.allowed_origins.iter().any(|allowed| allowed == ANY)
}

fn allows_method(rule: &CorsRule, method: &str) -> bool {
    rule.allowed_methods.iter().any(|allowed| allowed == method)
}

/// Whether a list of names and prefixes has a header's name, in either case.
fn matches_any(allowed: &[String], name: &str) -> bool {
    allowed.iter().any(|allowed| match allowed.strip_suffix(ANY) {
        Some(prefix) => name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix)),
        None => allowed.eq_ignore_ascii_case(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &str, methods: &str, allowed: &str) -> CorsRule {
        let list = |text: &str| text.split(',').filter(|t| !t.is_empty()).map(str::to_owned).collect();
        CorsRule {
            allowed_origins: list(origins),
            allowed_methods: list(methods),
            allowed_headers: list(allowed),
            exposed_headers: list("x-ms-*"),
            max_age_seconds: 5,
        }
    }

    /// The three rules of the documentation's example.
    fn documented() -> Vec<CorsRule> {
        let blob = "x-ms-blob-content-type,x-ms-blob-content-disposition";
        vec![
            rule("http://www.contoso.com", "PUT,HEAD", blob),
            rule("*", "PUT,GET", blob),
            rule("http://www.contoso.com", "GET", "x-ms-client-request-id"),
        ]
    }

    fn value(headers: &CorsHeaders, name: &str) -> Option<String> {
        headers.iter().find(|(given, _)| *given == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn the_first_rule_for_origin_and_method_decides() {
        let (rules, contoso) = (documented(), "http://www.contoso.com");
        let origin_of = |method, headers| {
            preflight(&rules, contoso, method, headers)
                .and_then(|out| value(&out, "Access-Control-Allow-Origin"))
        };
        assert_eq!(origin_of("PUT", "x-ms-blob-content-type").as_deref(), Some(contoso));
        assert_eq!(origin_of("GET", "x-ms-blob-content-type").as_deref(), Some("*"));
        assert_eq!(origin_of("GET", "x-ms-client-request-id"), None, "the third rule would allow it");
        assert_eq!(origin_of("POST", ""), None);
        assert!(preflight(&rules[..1], "http://WWW.contoso.com", "PUT", "").is_none());
        assert!(preflight(&[], contoso, "GET", "").is_none());
    }

    #[test]
    fn a_preflight_allows_the_method_and_headers_that_it_asked_for() {
        let rules = [rule("http://a", "GET,MERGE", "x-ms-meta-*,accept")];
        let headers = preflight(&rules, "http://a", "MERGE", "X-MS-Meta-Foo, Accept").expect("allowed");
        let expected = [
            ("Access-Control-Allow-Origin", "http://a"),
            ("Access-Control-Allow-Credentials", "true"),
            ("Access-Control-Allow-Methods", "MERGE"),
            ("Access-Control-Allow-Headers", "X-MS-Meta-Foo, Accept"),
            ("Access-Control-Max-Age", "5"),
        ];
        assert_eq!(headers, expected.map(|(name, value)| (name, value.to_owned())));
        for refused in ["x-ms-meta", "authorization", "é"] {
            assert!(preflight(&rules, "http://a", "GET", refused).is_none(), "{refused}");
        }
        let all = [rule("http://a", "GET", "*")];
        assert!(preflight(&all, "http://a", "GET", "authorization,é").is_some());
    }

    #[test]
    fn actual_requests_get_the_documented_headers() {
        let exact = [rule("http://a", "GET,PUT", "")];
        let all = [rule("*", "GET", "")];
        let names = |headers: CorsHeaders| headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let (allow, credentials, expose) = (
            "Access-Control-Allow-Origin",
            "Access-Control-Allow-Credentials",
            "Access-Control-Expose-Headers",
        );
        assert_eq!(actual(&[], "http://a", "GET"), None);
        assert_eq!(
            actual(&exact, "http://a", "GET").map(names),
            Some(vec![allow, credentials, expose, "Vary"])
        );
        assert_eq!(actual(&exact, "http://a", "PUT").map(names), Some(vec![allow, credentials, expose]));
        assert_eq!(actual(&exact, "http://b", "GET").map(names), Some(vec!["Vary"]));
        assert_eq!(actual(&exact, "http://b", "PUT").map(names), Some(vec![]));
        assert_eq!(actual(&all, "http://b", "GET").map(names), Some(vec![allow, expose]));
        assert_eq!(names(without_origin(&[], "GET")), Vec::<&str>::new());
        assert_eq!(names(without_origin(&exact, "GET")), ["Vary"]);
        assert_eq!(names(without_origin(&all, "GET")), [allow, expose]);
    }
}
