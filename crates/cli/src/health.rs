//! `rangehold health`: whether a running server is ready, and what is wrong.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::output::{Format, View, cell, list};

/// Shows whether a server is ready. Fails if it is not.
pub(crate) fn show(view: &View) -> Result<()> {
    let (status, body) = view.admin.readiness()?;
    let answer = answer_in(status, &body);
    if status != 200 {
        // People read the sentences in the error.
        if view.output == Format::Json {
            println!("{answer:#}");
        }
        bail!("not ready: {}", sentences(&answer).join("; "));
    }
    view.print(&answer, ready_text);
    Ok(())
}

/// The server's answer. An answer that is not from the API, such as one to a connection too many, becomes a trouble.
fn answer_in(status: u16, body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| {
        let trouble = json!({ "kind": null, "stops": null, "sentence": body.trim() });
        json!({ "ready": status == 200, "troubles": [trouble] })
    })
}

fn ready_text(answer: &Value) -> String {
    let lines = ["ready".to_owned()].into_iter().chain(sentences(answer));
    lines.map(|line| line + "\n").collect()
}

/// What is wrong, in sentences.
fn sentences(answer: &Value) -> Vec<String> {
    list(&answer["troubles"]).iter().map(|trouble| cell(&trouble["sentence"])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_server_may_have_troubles() {
        assert_eq!(ready_text(&json!({ "ready": true, "troubles": [] })), "ready\n");
        let body =
            r#"{"ready": true, "troubles": [{"kind": "history", "stops": null, "sentence": "no history"}]}"#;
        assert_eq!(ready_text(&answer_in(200, body)), "ready\nno history\n");
    }

    #[test]
    fn an_answer_in_another_form_is_a_trouble() {
        let answer = answer_in(503, "too many connections\n");
        assert_eq!(answer["ready"], false);
        assert_eq!(sentences(&answer), ["too many connections"]);
    }
}
