//! How commands print a server's answers: as text for people, or as JSON for programs.

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::admin::AdminClient;

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables and sentences.
    #[value(alias = "table")]
    Text,
    /// JSON: of a server, the answer of the admin API; of events, one object on each line.
    Json,
}

/// The server to ask, and the form in which its answer is printed.
#[derive(Debug, Args)]
pub(crate) struct View {
    #[command(flatten)]
    pub(crate) admin: AdminClient,
    /// The form of the output: text for people, json for programs.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Format,
}

impl View {
    /// Prints an answer: as it is, or as the text that `text` makes of it.
    pub(crate) fn print(&self, answer: &Value, text: impl Fn(&Value) -> String) {
        match self.output {
            Format::Json => println!("{answer:#}"),
            Format::Text => print!("{}", text(answer)),
        }
    }
}

/// A range and its generation, such as `r2@3`.
pub(crate) fn name(range: &Value) -> String {
    format!("{}@{}", cell(&range["range"]), cell(&range["generation"]))
}

/// The keys of a range, such as `[marathon/Half, end)`.
pub(crate) fn keys(range: &Value) -> String {
    let high = range["high"].as_str().unwrap_or("end");
    format!("[{}, {high})", cell(&range["low"]))
}

/// What is unusual about a range: the change that it is part of, or that it is offline.
pub(crate) fn note(range: &Value) -> String {
    match range["doing"].as_str() {
        Some(doing) => doing.to_owned(),
        None if range["online"] == false => "offline".to_owned(),
        None => String::new(),
    }
}

/// A value as a cell of a table. Null is an empty cell.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The members of an array; none if it is another value.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
