//! `/readyz`: whether requests are served, and what is wrong.
//!
//! Everybody who can connect may read it. So it names ranges and servers by their numbers, and never shows a key. The
//! sentences may name files of the server. Only those who reach the admin endpoint read them; on the ports of tables and
//! objects the reply says what kind of thing is wrong, and what is not served because of it.

use rangehold_engine::{Statistics, Trouble};
use serde_json::{Value, json};

/// The port on which a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// That of the admin endpoint.
    Operators,
    /// Those of tables and objects.
    Clients,
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// The kind, for programs.
    kind: &'static str,
    /// What is not served because of it. If this is not empty, the process is not ready.
    pub(super) stops: Option<&'static str>,
    /// The sentence, for people.
    sentence: String,
}

/// Everything that is wrong, the worst first. `history` says why the history of load is not kept.
pub(super) fn troubles(engine: &Statistics, history: Option<String>) -> Vec<Told> {
    let mut told = Vec::new();
    if engine.disk_low {
        let sentence = "the disk is nearly full: writes are refused, reads are served; make room".to_owned();
        told.push(Told { kind: "disk", stops: Some("writes"), sentence });
    }
    told.extend(engine.troubles.iter().map(of_engine));
    told.extend(history.map(|why| Told {
        kind: "history",
        stops: None,
        sentence: format!("the history of load is not being kept: {why}"),
    }));
    told.sort_by_key(|told| told.stops.is_none());
    told
}

fn of_engine(trouble: &Trouble) -> Told {
    let (kind, stops) = match trouble {
        Trouble::Range { .. } | Trouble::AllOffline => ("range", Some("requests")),
        // Its ranges cannot be read until other servers have them.
        Trouble::Server { ranges, .. } => ("server", (*ranges > 0).then_some("reads")),
        Trouble::Task(_) => ("task", None),
    };
    Told { kind, stops, sentence: trouble.to_string() }
}

/// The body of the reply.
pub(super) fn answer(ready: bool, troubles: &[Told], audience: Audience) -> Value {
    let told = |told: &Told| match audience {
        Audience::Operators => json!({ "kind": told.kind, "stops": told.stops, "sentence": told.sentence }),
        Audience::Clients => json!({ "kind": told.kind, "stops": told.stops }),
    };
    json!({ "ready": ready, "troubles": troubles.iter().map(told).collect::<Vec<_>>() })
}
