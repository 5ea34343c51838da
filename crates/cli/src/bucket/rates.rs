//! `rangehold bucket rates`: what a bucket of a running server bears, what is asked of it, and how its names grow.

use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;

use crate::admin::{ANSWER_WITHIN, AdminClient, encoded};
use crate::object::service::Form;
use crate::output::{cell, list};
use crate::text_table::text_table;

/// `rangehold bucket rates`
#[derive(Debug, Args)]
pub(super) struct RatesFlags {
    /// The bucket, such as gs://BUCKET.
    #[arg(value_name = "URL")]
    pub(super) url: String,
    #[command(flatten)]
    admin: AdminClient,
}

impl RatesFlags {
    /// Shows the rates of `bucket`.
    pub(super) fn show(&self, bucket: &str, output: Form) -> Result<()> {
        let path = format!("/v1/buckets/{}/rates", encoded(bucket));
        let answer = self.admin.get(&path, ANSWER_WITHIN)?;
        if answer["spans"].is_null() {
            bail!("the server's answer has no spans: is the server of another version?");
        }
        match output {
            Form::Json => println!("{answer:#}"),
            Form::Table => print!("{}", text(&answer)),
        }
        Ok(())
    }
}

fn text(answer: &Value) -> String {
    let spans = list(&answer["spans"]);
    let [writes, reads] = both(&answer["bears"]);
    let parts = if spans.len() == 1 { "in one part".to_owned() } else { format!("in {} parts", spans.len()) };
    let mut text =
        format!("gs://{} bears {writes} writes/s and {reads} reads/s, {parts}\n\n", cell(&answer["bucket"]));
    let rows: Vec<[String; 5]> = spans.iter().map(|span| row(span, answer)).collect();
    text +=
        &text_table(["names from", "bears writes/s, reads/s", "asked writes/s, reads/s", "used", ""], &rows);
    // Parts in which all is well need no words, unless there is nothing else to be read.
    for span in spans.iter().filter(|span| spans.len() == 1 || !span["undivided"].is_null()) {
        text += &format!("\n{}: {}\n", cell(&span["low"]), cell(&span["sentence"]));
    }
    text + &names(answer)
}

fn row(span: &Value, answer: &Value) -> [String; 5] {
    let pair = |of: &Value| both(of).join(", ");
    let used = match span["used_for_s"].as_f64() {
        Some(used) => format!("{used} of {} s", number(&answer["grows_after_s"])),
        None => String::new(),
    };
    let undivided = span["undivided"].as_str().map_or(String::new(), |why| format!("not cut: {why}"));
    [cell(&span["low"]), pair(&span["bears"]), pair(&span["asked"]), used, undivided]
}

/// Writes and reads each second.
fn both(rates: &Value) -> [String; 2] {
    ["writes_per_s", "reads_per_s"].map(|of| number(&rates[of]))
}

/// A number, without a fraction if it is whole.
fn number(value: &Value) -> String {
    value.as_f64().unwrap_or(0.0).to_string()
}

/// What was found about names.
fn names(answer: &Value) -> String {
    let Some(at) = answer["found_at"].as_str() else {
        return format!(
            "\nnothing is known about names yet: while a tenth of the threshold or more is asked for, names are sampled for \
             {} s at a time, and each sample is compared with the one before\n",
            number(&answer["sampled_for_s"])
        );
    };
    let mut text = format!("\nnames, as of {}:\n", at.get(..19).map_or(at.to_owned(), |at| format!("{at}Z")));
    for finding in list(&answer["findings"]) {
        text += &format!("\n{}: {}\n", cell(&finding["of"]), cell(&finding["sentence"]));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_and_names_are_shown_with_reasons() {
        let span = |low: &str, used: Value, undivided: Value| {
            json!({
                "low": low, "high": null, "bears": { "writes_per_s": 10.0, "reads_per_s": 50.0 },
                "asked": { "writes_per_s": 6.25, "reads_per_s": 0.0 }, "used_for_s": used,
                "undivided": undivided, "sentence": "was not cut, because.",
            })
        };
        let mut answer = json!({
            "bucket": "photos", "at": "2026-11-21T16:27:00Z",
            "threshold": { "writes_per_s": 10.0, "reads_per_s": 50.0 },
            "bears": { "writes_per_s": 20.0, "reads_per_s": 100.0 }, "grows_after_s": 60.0, "sampled_for_s": 15.0,
            "spans": [
                span("gs://photos/*", Value::Null, Value::Null),
                span("gs://photos/images/c", json!(36.5), json!("append")),
            ],
            "found_at": "2026-11-21T16:26:45.1234567Z",
            "findings": [{ "of": "writes", "sentence": "all names scale" }],
        });
        assert_eq!(
            text(&answer),
            "gs://photos bears 20 writes/s and 100 reads/s, in 2 parts\n\n\
             names from            bears writes/s, reads/s  asked writes/s, reads/s  used\n\
             gs://photos/*         10, 50                   6.25, 0\n\
             gs://photos/images/c  10, 50                   6.25, 0                  36.5 of 60 s  not cut: append\n\n\
             gs://photos/images/c: was not cut, because.\n\n\
             names, as of 2026-11-21T16:26:45Z:\n\n\
             writes: all names scale\n"
        );
        answer["found_at"] = Value::Null;
        assert!(text(&answer).ends_with(
            "names are sampled for 15 s at a time, and each sample is compared with the one before\n"
        ));
    }
}
