//! Moves, and compositions that remove their sources. Each is a write of its target and a deletion of its sources, and
//! each of these names must be a register all the same. That no reader sees one without the other is for
//! [`super::tokens`] to check.

use std::collections::BTreeMap;
use std::time::Duration;

use super::known::Seen;
use super::{CHANGING, Heard, Objects, SOURCES_MAX, heard, with_value};
use crate::check::register::{Call, Expected, Return};
use crate::client::objects::{Described, compose_away, move_to, shown};
use crate::client::{Asked, Client, NoAnswer};

/// A change of several names, as it was sent.
struct Sent {
    begun: Duration,
    to: usize,
    call: Call,
    /// The sources that go.
    sources: Vec<(usize, Seen)>,
}

impl Objects {
    /// Moves the object that was seen last under a name to another name.
    pub(super) async fn move_one(&self, client: &mut Client, from: usize) {
        let to = client.dice().index(CHANGING.len());
        let call = self.some_write(client.dice(), to);
        let Some(source) = self.to_remove(from).filter(|_| to != from) else { return };
        if !self.known().comes(to, source.value) {
            return;
        }
        let call = with_value(call, source.value);
        let request =
            move_to(&self.names[from], source.generation, &self.names[to], self.condition(to, call));
        let sent = Sent { begun: client.world().now(), to, call, sources: vec![(from, source)] };
        let asked = client.ask(request).await;
        self.note_several(client, &sent, &asked);
    }

    /// Joins objects that were seen last under some names, and removes them.
    pub(super) async fn compose_away(&self, client: &mut Client, to: usize) {
        let count = client.dice().between(1, SOURCES_MAX);
        let names: Vec<usize> = (0..count).map(|_| client.dice().index(CHANGING.len())).collect();
        let call = self.some_write(client.dice(), to);
        let sources: BTreeMap<usize, Seen> =
            names.iter().filter_map(|from| Some((*from, self.to_remove(*from)?))).collect();
        if sources.is_empty() {
            return;
        }
        let value = self.next_value();
        let contents = sources.values().filter_map(|seen| self.known().content(seen.value).cloned());
        let content = contents.flatten().collect();
        self.known().brings(to, value, content);
        let named: Vec<(&str, u64)> =
            sources.iter().map(|(from, seen)| (self.names[*from].name.as_str(), seen.generation)).collect();
        let call = with_value(call, value);
        let described = Described { to: &self.names[to], value, if_generation: self.condition(to, call) };
        let request = compose_away(&named, described);
        // The target is overwritten if it is a source too.
        let sources = sources.into_iter().filter(|(from, _)| *from != to).collect();
        let sent = Sent { begun: client.world().now(), to, call, sources };
        let asked = client.ask(request).await;
        self.note_several(client, &sent, &asked);
    }

    /// The object that was seen last under a name, if its write has one generation.
    fn to_remove(&self, name: usize) -> Option<Seen> {
        let known = self.known();
        known.last_seen(name).filter(|seen| !known.doubled.contains(&seen.value))
    }

    /// Notes what became of each name.
    fn note_several(&self, client: &Client, sent: &Sent, Asked { answer, twice }: &Asked) {
        if *twice {
            self.known().doubled.extend(super::written_by(sent.call));
            self.note_each(client, sent, Return::Unknown);
        }
        match answer {
            Err(NoAnswer::Unsent) => {}
            Err(NoAnswer::Unknown) => self.note_each(client, sent, Return::Unknown),
            // A condition does not hold, and the answer does not say of which name.
            Ok(reply) if reply.status == 412 => {}
            Ok(reply) => match heard(sent.call, reply, true) {
                Some(Heard::Told(told)) => {
                    self.note_each(client, sent, told);
                    if told == Return::Done {
                        self.saw(client, sent.to, sent.begun, shown(reply));
                    }
                }
                Some(Heard::Nothing) => {}
                None => self.found_answer(client, sent.call, reply),
            },
        }
    }

    fn note_each(&self, client: &Client, sent: &Sent, told: Return) {
        let mut known = self.known();
        known.note(client, sent.to, sent.call, sent.begun, told);
        for (from, seen) in &sent.sources {
            known.note(client, *from, Call::Delete(Expected::Is(seen.value)), sent.begun, told);
        }
    }
}
