//! Reports on a peak that is made up.

use super::*;
use crate::stress::book::{Asked, Outcome};
use crate::stress::designs::Design;

/// One second in which half of all is refused, for five seconds.
fn report(seen: Option<Seen>) -> Report {
    let mut plan = Design::OneValue.plan().unwrap();
    plan.kinds[0].name = "<b>a \"club\" & its runners</b>".to_owned();
    let target = Target::of(&plan);
    let mut book = Book::new(&plan, &target);
    for number in 0..100 {
        let at = Duration::from_millis(50 * number);
        let asked = Asked { kind: 0, at, partition: target.partition.clone(), is_new: true };
        book.asked(&asked, Duration::ZERO);
        let outcome = if number % 2 == 0 { Outcome::Done(20) } else { Outcome::Busy };
        book.ended(&asked, at + Duration::from_millis(3), outcome);
    }
    let about = Circumstances {
        service: "http://127.0.0.1:10002/devstoreaccount1".to_owned(),
        table: "stress1".to_owned(),
        seed: 1,
        loaded: 10_000,
        time: Duration::from_secs(5),
        is_cut_short: false,
        seen,
    };
    Report::of(&plan, &target, &book, about)
}

/// The names of tags that are open at the end, or a tag that ends another one.
fn open_tags(html: &str) -> Result<Vec<&str>, String> {
    let mut open = Vec::new();
    for part in html.split('<').skip(1) {
        let tag = part.split('>').next().unwrap_or_default();
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        match tag {
            _ if tag.starts_with('/') && open.pop() != Some(name) => return Err(tag.to_owned()),
            _ if tag.starts_with(['/', '!']) || tag.ends_with('/') || ["meta", "br"].contains(&name) => {}
            _ => open.push(name),
        }
    }
    Ok(open)
}

#[test]
fn the_page_is_one_whole_file_and_texts_cannot_change_it() {
    let mut seen = Seen::default();
    let told = serde_json::json!({ "ranges": [{ "range": "r1", "server": "s1", "low": "start" }] });
    seen.ranges(1.0, "stress1", &told);
    let html = report(Some(seen)).html();
    assert_eq!(open_tags(&html), Ok(Vec::new()), "{html}");
    for word in [
        "&lt;b&gt;a &quot;club&quot; &amp; its runners",
        "ServerBusy",
        "2,000 entities/s",
        "Priming is not a cure",
    ] {
        assert!(html.contains(word), "{word}: {html}");
    }
    for outside in ["<script", "href=", "src=", "url(", "@import", "<b>", "NaN", "inf,"] {
        assert!(!html.contains(outside), "{outside}: {html}");
    }
    assert_eq!(html.matches("<svg").count(), 3);
}

#[test]
fn the_terminal_shows_the_verdict_first_and_what_was_asked_and_not_met() {
    let text = report(None).to_string();
    assert!(text.starts_with("LIMITED") || text.starts_with("MISSED"), "{text}");
    for word in ["█", "·", "MISSED", "exponential waits"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");
    assert!(text.contains("2,000 ┼"), "the line of the partition's target: {text}");
}

#[test]
fn programs_get_the_same_figures() {
    let json = serde_json::to_value(report(None)).unwrap();
    assert_eq!(json["kinds"][0]["asked"], 100);
    assert_eq!(json["kinds"][0]["busy"], 50);
    assert_eq!(json["series"]["asked"].as_array().map(Vec::len), Some(5));
    assert_eq!(
        (json["asked_entities_per_s"].as_f64(), json["done_entities_per_s"].as_f64()),
        (Some(400.0), Some(200.0))
    );
    assert_eq!(json["ranges"], serde_json::Value::Null);
    assert!(json["headline"].is_string() && json["outcome"].is_string());
}
