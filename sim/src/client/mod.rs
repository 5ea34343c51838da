//! Simulated clients: they speak HTTP to a front end. A request ends in one of three ways: it was never sent, it was
//! answered, or its outcome is unknown.

pub mod http;
pub mod objects;
pub mod requests;
pub mod sas;

use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::time::{sleep, timeout};

use crate::chance::Dice;
use crate::events;
use crate::faults::Fault;
use crate::world::{Process, World};
use http::{Reply, Request};

/// How long a client waits for a reply: the service promises one within 30 s.
const PATIENCE: Duration = Duration::from_secs(40);
/// How often a request is sent again at once in a retry storm.
const STORM_RETRIES: usize = 6;

/// Why a request has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// It was not sent, so it was not carried out.
    Unsent,
    /// It was sent: it may have been carried out, or may still be carried out.
    Unknown,
}

/// A request's outcome.
#[derive(Debug)]
pub struct Asked {
    /// The reply.
    pub answer: Result<Reply, NoAnswer>,
    /// Whether the request arrived a second time; no client saw the reply to that copy.
    pub twice: bool,
}

/// What a client knows after it has asked.
#[derive(Debug)]
pub enum Told {
    /// The service's answer.
    Answer(Reply),
    /// It was not done, and may be asked for again.
    NotDone,
    /// It may have been done, it may be done later, or it may never be done.
    Unknown,
}

impl Asked {
    /// What the client knows now. 503 says that nothing was done; 500 and 504 do not.
    pub fn told(self) -> Told {
        match self.answer {
            Ok(reply) if reply.status == 503 => Told::NotDone,
            Ok(reply) if reply.status >= 500 => Told::Unknown,
            Ok(reply) => Told::Answer(reply),
            Err(NoAnswer::Unsent) => Told::NotDone,
            Err(NoAnswer::Unknown) => Told::Unknown,
        }
    }
}

/// Which service a client speaks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    Tables,
    Objects,
}

impl Service {
    fn connect(self, process: &Process) -> DuplexStream {
        match self {
            Self::Tables => process.connect(),
            Self::Objects => process.connect_objects(),
        }
    }
}

/// A client with one connection.
pub struct Client {
    world: World,
    name: String,
    service: Service,
    dice: Dice,
    /// The one front end that it talks to; `None` for any.
    home: Option<usize>,
    /// Whether its requests may arrive twice.
    doubled: bool,
    /// How long it waits for a reply.
    patience: Duration,
    sas: String,
    connection: Option<Connection>,
}

struct Connection {
    process: usize,
    life: u64,
    stream: DuplexStream,
}

impl Client {
    /// A client that is `name` in the log, and talks to the front end `home`, or to any.
    pub fn new(world: &World, name: &str, home: Option<usize>) -> Self {
        let dice = world.dice(name);
        let (world, name) = (world.clone(), name.to_owned());
        Self {
            world,
            name,
            service: Service::Tables,
            dice,
            home,
            doubled: true,
            patience: PATIENCE,
            sas: sas::query(),
            connection: None,
        }
    }

    /// The same, but its requests never arrive twice.
    pub fn only_once(self) -> Self {
        Self { doubled: false, ..self }
    }

    /// A client of the object service of the first process, in its newest life. Only one process serves the objects of
    /// a store, since what it is doing with blobs is in its memory.
    pub fn of_objects(world: &World, name: &str) -> Self {
        Self { service: Service::Objects, ..Self::new(world, name, Some(0)) }
    }

    /// The same, but it hangs up when a reply takes longer than this.
    pub fn patient_for(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Its chance.
    pub fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The world it lives in.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Waits between `low` and `high` milliseconds.
    pub async fn think(&mut self, low: u64, high: u64) {
        sleep(Duration::from_millis(self.dice.between(low, high))).await;
    }

    /// Sends a request and waits for its reply. In a retry storm it does not wait when it is refused,
    /// but asks again at once.
    pub async fn ask(&mut self, request: Request) -> Asked {
        let mut asked = self.ask_once(request.clone()).await;
        // A 503 of the object service may mean that the outcome is unknown, so a storm would make a write twice.
        let retries = if self.service == Service::Tables { STORM_RETRIES } else { 0 };
        for _ in 0..retries {
            let refused = asked.answer.as_ref().is_ok_and(|reply| reply.status == 503);
            if !(refused && self.world.weather().rages(Fault::RetryStorm)) {
                break;
            }
            let again = self.ask_once(request.clone()).await;
            asked = Asked { answer: again.answer, twice: asked.twice || again.twice };
        }
        asked
    }

    async fn ask_once(&mut self, mut request: Request) -> Asked {
        let number = self.world.count_request();
        let shown = format!("{} {}", request.method, request.target);
        if self.service == Service::Tables {
            self.sign(&mut request, number);
        }
        let Some(mut connection) = self.connected() else {
            self.log(&shown, &request, None, &Err(NoAnswer::Unsent));
            return Asked { answer: Err(NoAnswer::Unsent), twice: false };
        };
        let weather = self.world.weather().clone();
        let twice = self.doubled && weather.strikes(Fault::DuplicateRequest, &mut self.dice);
        if twice {
            self.send_again(connection.process, request.clone());
        }
        let slow_body = weather.strikes(Fault::SlowBody, &mut self.dice);
        let pause = slow_body.then(|| Duration::from_millis(self.dice.between(100, 3_000)));
        if weather.rages(Fault::SlowNetwork) {
            self.think(50, 1_500).await;
        }
        let (patience, half_open) = self.patience();
        let begun = self.world.now();
        let exchange = async {
            request.send(&mut connection.stream, pause).await?;
            Reply::receive(&mut connection.stream).await
        };
        let answer = match timeout(patience, exchange).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => {
                self.broken_off(&shown, &error);
                Err(NoAnswer::Unknown)
            }
            Err(_) => {
                if patience == PATIENCE {
                    self.left_waiting(&connection, begun, &shown);
                }
                Err(NoAnswer::Unknown)
            }
        };
        if weather.rages(Fault::SlowNetwork) {
            self.think(50, 1_500).await;
        }
        self.log(&shown, &request, Some(connection.process), &answer);
        self.judge(&shown, &answer);
        if half_open {
            // No task reads from it any more, and no task closes it.
            tokio::spawn(async move {
                sleep(PATIENCE).await;
                drop(connection);
            });
            return Asked { answer, twice };
        }
        if answer.as_ref().is_ok_and(|reply| reply.header("connection") != Some("close")) {
            self.connection = Some(connection);
        }
        Asked { answer, twice }
    }

    /// Adds what every request of the table service carries.
    fn sign(&self, request: &mut Request, number: u64) {
        let join = if request.target.contains('?') { '&' } else { '?' };
        request.target = format!("{}{join}{}", request.target, self.sas);
        request.headers.push(("x-ms-version", "2020-12-06".to_owned()));
        request.headers.push(("x-ms-client-request-id", format!("{}-{number}", self.name)));
    }

    /// The connection it has, or a new one; `None` when no front end is up.
    fn connected(&mut self) -> Option<Connection> {
        let candidates: Vec<usize> = match self.home {
            Some(home) => vec![home],
            None => {
                (0..self.world.processes()).filter(|number| self.world.process(*number).is_some()).collect()
            }
        };
        if candidates.is_empty() {
            return None;
        }
        let old = self.connection.take();
        let wanted = match &old {
            Some(old) if self.home.is_some() || !self.dice.happens(0.3) => old.process,
            _ => *self.dice.pick(&candidates),
        };
        let process = match self.service {
            Service::Tables => self.world.process_for_client(wanted, &mut self.dice)?,
            Service::Objects => self.world.process(wanted)?,
        };
        match old.filter(|old| old.process == wanted && old.life == process.life) {
            Some(old) => Some(old),
            None => Some(Connection {
                process: wanted,
                life: process.life,
                stream: self.service.connect(&process),
            }),
        }
    }

    /// How long it waits this time, and whether the connection stays open when it gives up. Some clients hang up, and
    /// some never see the reply.
    fn patience(&mut self) -> (Duration, bool) {
        let weather = self.world.weather().clone();
        if weather.strikes(Fault::CancelledRequest, &mut self.dice) {
            (Duration::from_millis(self.dice.between(1, 60)), false)
        } else if weather.strikes(Fault::LostReply, &mut self.dice) {
            (Duration::from_millis(self.dice.between(1, 5)), true)
        } else {
            (self.patience, false)
        }
    }

    /// Reports a missing reply. The service owes a reply if the process was up all the time.
    fn left_waiting(&self, connection: &Connection, begun: Duration, shown: &str) {
        let there = self.world.process(connection.process).is_some_and(|now| now.life == connection.life);
        if there && !self.world.was_troubled_since(begun) {
            self.world.found(format_args!(
                "{} had no reply from p{} within {PATIENCE:?} to {shown}",
                self.name, connection.process
            ));
        }
    }

    /// Reports an answer that breaks off in the middle, though no fault is on that a client may notice: its download
    /// lost the bytes that it was reading.
    fn broken_off(&self, shown: &str, error: &std::io::Error) {
        if self.service == Service::Objects && self.world.weather().is_harmless() {
            self.world.found(format_args!("the answer to {} broke off: {error}: {shown}", self.name));
        }
    }

    /// Reports a reply that the service may not give.
    fn judge(&self, shown: &str, answer: &Result<Reply, NoAnswer>) {
        let Ok(reply) = answer else { return };
        let weather = self.world.weather();
        if self.service == Service::Objects {
            if objects::is_wrong(reply, weather, self.world.is_cloud()) {
                let line = reply.body.replace('\n', " ");
                self.world.found(format_args!("{} was told {} to {shown}: {line}", self.name, reply.status));
            }
            return;
        }
        let spoilt = weather.is_on(Fault::FlippedBit) || weather.is_on(Fault::MisdirectedRead);
        // The cloud's documents allow these answers: for budgets, and for ranges that a real manager moves.
        let cloudy = match reply.code() {
            "ServerBusy" => self.world.is_cloud(),
            "OperationTimedOut" => self.world.is_cloud() && self.world.has_planner(),
            _ => false,
        };
        let bad = match (reply.status, reply.code()) {
            (500.., _) if cloudy => false,
            // No fault that a client may notice is on, so no error may be seen either.
            (500.., _) if weather.is_harmless() => true,
            (500, "InternalError") => !spoilt,
            (400 | 401 | 403 | 405.., _) => !matches!(reply.status, 409 | 412 | 500 | 503 | 504),
            _ => false,
        };
        if bad {
            self.world.found(format_args!(
                "{} was told {} {} to {shown}: {}",
                self.name,
                reply.status,
                reply.code(),
                reply.body.lines().next().unwrap_or_default()
            ));
        }
    }

    /// Sends the same request again on a connection of its own, some time later.
    fn send_again(&mut self, process: usize, request: Request) {
        let Some(process) = self.world.process(process) else { return };
        let service = self.service;
        let delay = Duration::from_millis(self.dice.between(0, 3_000));
        tokio::spawn(async move {
            sleep(delay).await;
            let mut stream = service.connect(&process);
            drop(process);
            if request.send(&mut stream, None).await.is_ok() {
                let _ = timeout(PATIENCE, Reply::receive(&mut stream)).await;
            }
        });
    }

    fn log(&self, shown: &str, request: &Request, process: Option<usize>, answer: &Result<Reply, NoAnswer>) {
        let body = events::hash([&request.body]);
        let events = self.world.events();
        match (answer, process) {
            (Ok(reply), Some(process)) => {
                let told = events::hash([reply.body.as_bytes()]);
                let etag = reply.header("etag").unwrap_or_default();
                events.add(
                    &self.name,
                    format_args!(
                        "p{process} {shown} {body:016x} -> {} {} {told:016x} {etag}",
                        reply.status,
                        reply.code()
                    ),
                );
            }
            (Err(NoAnswer::Unknown), Some(process)) => {
                events.add(&self.name, format_args!("p{process} {shown} {body:016x} -> no answer"));
            }
            _ => events.add(&self.name, format_args!("{shown} not sent")),
        }
    }
}
