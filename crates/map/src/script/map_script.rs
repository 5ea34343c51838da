//! Runs commands on a map in memory, as a service that never fails would carry them out.

use std::fmt::Write as _;

use super::command::{Asked, Command, CommandRefused, Profile, Step, Target};
use super::names::Names;
use super::seen::Seen;
use super::show::{show_map, show_range, show_state};
use super::words::show_duration;
use crate::key::TableId;
use crate::plan::{Plan, Policy, plan};
use crate::range::{Generation, RangeId, ServerId};
use crate::range_map::{Change, ChangeRefused, DatabaseName, Home, Intent, RangeEntry, RangeMap};

/// Runs commands on a map that begins with one range, r1, on server s1. Keys without an account are of
/// the account `acct`. New tables get the ids 1, 2, and so on.
///
/// Work that takes time in a service is done at once and never fails. Both halves of a split stay on the
/// server of the whole. A merged range is on the server of its left half.
#[derive(Debug, Clone)]
pub struct MapScript {
    map: RangeMap,
    names: Names,
    tables: u64,
    seen: Seen,
}

impl Default for MapScript {
    fn default() -> Self {
        Self::new()
    }
}

impl MapScript {
    /// The first version of a map, and no tables.
    pub fn new() -> Self {
        let home = Home { server: ServerId(1), database: first_database(RangeId(1)) };
        Self {
            map: RangeMap::single(RangeId(1), home),
            names: Names::new("acct"),
            tables: 0,
            seen: Seen::default(),
        }
    }

    /// The map as it is now.
    pub fn map(&self) -> &RangeMap {
        &self.map
    }

    /// The names of its tables.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Runs a line and returns its output, which may also be a refusal or an error.
    pub fn run_line(&mut self, line: &str) -> String {
        self.try_line(line).unwrap_or_else(|why| format!("{why}\n"))
    }

    /// Runs a line and returns its output. The error is the refusal, or says why the line is not a command.
    pub fn try_line(&mut self, line: &str) -> Result<String, String> {
        let command: Command = line.parse().map_err(|malformed| format!("error: {malformed}"))?;
        self.run(&command).map_err(|refused| format!("refused: {}", refused.sentence(&self.names)))
    }

    /// Runs a command and returns its output in lines.
    pub fn run(&mut self, command: &Command) -> Result<String, CommandRefused> {
        match command {
            Command::Table { account, name } => {
                self.tables += 1;
                let id = TableId(self.tables);
                self.names.add_table(account.as_deref(), name, id);
                Ok(format!("{name} is table #{}\n", id.0))
            }
            Command::Map => Ok(show_map(&self.map, &self.names)),
            Command::Check => Ok(self.check()),
            Command::Find(key) => {
                let entry = Target::Holding(key.clone()).find(&self.map, &self.names)?;
                Ok(format!("{key} is in {}\n", self.whereabouts(entry)))
            }
            Command::Change { step: Step::Begin, asked } => {
                let change = asked.change(&self.map, &self.names)?;
                Ok(self.advance(self.map.begin(&change)?))
            }
            Command::Change { step: Step::Whole, asked } => {
                let change = asked.change(&self.map, &self.names)?;
                Ok(self.advance(carried_out(&self.map, &change)?))
            }
            Command::Done(range) => {
                let range = range.find(&self.map, &self.names)?.id;
                Ok(self.advance(done(&self.map, range)?))
            }
            Command::Undo(range) => {
                let range = range.find(&self.map, &self.names)?.id;
                Ok(self.advance(self.map.undone(range)?))
            }
            Command::Server { server, capacity, standing } => {
                self.seen.server(*server, *capacity, *standing);
                Ok(format!("{command}\n"))
            }
            Command::Observe { range, observed } => {
                let entry = range.find(&self.map, &self.names)?;
                self.seen.observe(entry.id, observed.clone());
                Ok(format!("{} {observed}\n", show_range(entry)))
            }
            Command::Wait(time) => {
                self.seen.now = self.seen.now.saturating_add(*time);
                Ok(format!("{} since the beginning\n", show_duration(self.seen.now)))
            }
            Command::Plan(profile) => Ok(self.show(&self.plan(*profile)?)),
            Command::Execute(profile) => {
                let plan = self.plan(*profile)?;
                let said: String = plan.changes.iter().map(|change| self.execute(change)).collect();
                Ok(if said.is_empty() { "# nothing to do\n".to_owned() } else { said })
            }
        }
    }

    fn plan(&self, profile: Profile) -> Result<Plan, CommandRefused> {
        let policy = match profile {
            Profile::Fast => Policy::fast(),
            Profile::Cloud => Policy::cloud(),
        };
        Ok(plan(&self.map, &self.seen.observations(&self.map, &self.names)?, &policy))
    }

    /// A plan as a script: the changes as commands, and the report as comments.
    fn show(&self, plan: &Plan) -> String {
        let changes = plan.changes.iter().map(|change| format!("{}\n", Asked::of(change, &self.names)));
        let report = plan.report.iter().map(|line| format!("# {line}\n"));
        let said: String = changes.chain(report).collect();
        if said.is_empty() { "# nothing to do\n".to_owned() } else { said }
    }

    /// Carries out one change of a plan. If it is refused, the others are still carried out.
    fn execute(&mut self, change: &Change) -> String {
        match carried_out(&self.map, change) {
            Ok(next) => self.advance(next),
            Err(refused) => format!("refused: {}\n", CommandRefused::from(refused).sentence(&self.names)),
        }
    }

    fn check(&self) -> String {
        let findings = self.map.check_homes();
        if findings.is_empty() {
            return "no rule is broken\n".to_owned();
        }
        findings.iter().map(|finding| format!("{finding}\n")).collect()
    }

    /// Takes the next version of the map, and says what is new in it.
    fn advance(&mut self, next: RangeMap) -> String {
        let broken = next.check_homes();
        assert!(broken.is_empty(), "a change broke rules of the map: {broken:?} in {next:?}");
        let is_new = |entry: &&RangeEntry| self.map.get(entry.id) != Some(entry);
        let mut said = String::new();
        for entry in next.entries().iter().filter(is_new) {
            let _ = writeln!(said, "version {}: {}", next.version(), self.whereabouts(entry));
        }
        self.seen.note(&self.map, &next);
        self.map = next;
        said
    }

    /// `r2@1 [start, marathon/Half) of s1`.
    fn whereabouts(&self, entry: &RangeEntry) -> String {
        let mut text =
            format!("{} {} of {}", show_range(entry), self.names.range(&entry.keys), entry.place.server);
        let state = show_state(entry, &self.names);
        if !state.is_empty() {
            let _ = write!(text, ", {state}");
        }
        text
    }
}

/// The map after a change was carried out. In a merge across servers, the right range first moves to the
/// server of the left one.
fn carried_out(map: &RangeMap, change: &Change) -> Result<RangeMap, ChangeRefused> {
    match *change {
        Change::Offline { .. } | Change::Online { .. } => map.begin(change),
        Change::Split { range, .. } | Change::Move { range, .. } => done(&map.begin(change)?, range),
        Change::Merge { left, left_generation, right, right_generation } => {
            // If the merge is refused, it must be refused before the range moves.
            let begun = map.begin(change)?;
            let (Some(to), Some(from)) = (map.get(left), map.get(right)) else { return done(&begun, left) };
            if to.place.server == from.place.server {
                return done(&begun, left);
            }
            let to = Home { server: to.place.server, ..from.place };
            let together =
                carried_out(map, &Change::Move { range: right, generation: right_generation, to })?;
            let right_generation = right_generation.next();
            carried_out(&together, &Change::Merge { left, left_generation, right, right_generation })
        }
    }
}

/// The map after the change that was begun on a range is finished.
fn done(map: &RangeMap, range: RangeId) -> Result<RangeMap, ChangeRefused> {
    let entry = map.get(range).ok_or(ChangeRefused::UnknownRange { range })?;
    let home = |range| Home { server: entry.place.server, database: first_database(range) };
    match entry.intent {
        Some(Intent::Split { left, right, .. }) => map.split_done(range, home(left), home(right)),
        Some(Intent::Merge { into, .. }) => map.merge_done(range, home(into)),
        Some(Intent::MergeWith { left }) => done(map, left),
        Some(Intent::Move { .. }) => map.move_done(range),
        None => Err(ChangeRefused::NotBegun { range, doing: "being changed" }),
    }
}

/// The name of the first database of a range.
fn first_database(range: RangeId) -> DatabaseName {
    DatabaseName { range, generation: Generation::FIRST, attempt: 1 }
}
