//! The operations: what each sends, and which answers are right.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::thread;

use anyhow::{Result, ensure};
use rand::RngExt;
use rand::rngs::StdRng;
use rangehold_testkit::client::{self, ACCOUNT, Client, Credential, Step, entity_path, must, send_all};
use rangehold_testkit::http::{Answer, Connection, Request};
use serde_json::{Map, Value};

/// The bucket and the table.
const BUCKET: &str = "bench";
const TABLE: &str = "bench";
/// Bytes of an object, and of the text of an entity.
const BYTES: usize = 1024;
/// Names of one page, and entities of one partition.
const PAGE: u64 = 1_000;
/// The names lie in so many folders.
const FOLDERS: u64 = 10;
/// Clients at once while loading.
const LOADERS: usize = 8;

/// A sort of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Inserts an entity of 1 KiB.
    Insert,
    /// Puts an object of 1 KiB under a new name.
    Put,
    /// Reads an entity.
    GetEntity,
    /// Reads the bytes of an object.
    GetObject,
    /// Reads a partition of 1,000 entities.
    Page,
    /// Lists 1,000 names.
    List,
    /// Lists the folders of the bucket.
    Folders,
}

/// Which operation it is.
pub(super) struct Turn {
    /// Names that were loaded.
    pub(super) names: u64,
    pub(super) round: usize,
    /// Its number among the operations of the run.
    pub(super) number: u64,
    /// Whether the answer is that of another server, which may have no pages.
    pub(super) is_peer: bool,
}

/// A client of tables and one of objects.
pub(super) struct Clients {
    tables: Client,
    objects: Connection,
}

impl Clients {
    /// Clients of a table service and of a service of objects.
    pub(super) fn connect(tables: SocketAddr, objects: SocketAddr) -> Result<Self> {
        let tables = Client::new(tables, Credential::SharedKey);
        Ok(Self { tables, objects: Connection::open(objects)? })
    }

    fn object(&mut self, request: &Request, expected: u16) -> Result<Answer> {
        let answer = self.objects.send(request)?;
        let (method, target) = (&request.method, &request.target);
        ensure!(answer.status == expected, "{method} {target}: {} {:.300}", answer.status, answer.body);
        Ok(answer)
    }
}

impl Operation {
    pub(super) const ALL: [Self; 7] =
        [Self::Insert, Self::Put, Self::GetEntity, Self::GetObject, Self::Page, Self::List, Self::Folders];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Insert => "insert an entity of 1 KiB",
            Self::Put => "put an object of 1 KiB",
            Self::GetEntity => "get an entity",
            Self::GetObject => "get an object",
            Self::Page => "page of 1,000 entities",
            Self::List => "listing of 1,000 names",
            Self::Folders => "listing of the folders",
        }
    }

    /// The operation on tables that it is compared with, and the most that it should cost, as a ratio.
    pub(super) fn compared_with(self) -> Option<(Self, f64)> {
        match self {
            Self::Put => Some((Self::Insert, 1.5)),
            Self::GetObject => Some((Self::GetEntity, 1.3)),
            Self::List => Some((Self::Page, 1.5)),
            _ => None,
        }
    }

    /// Whether another server of objects can do it.
    pub(super) fn is_about_objects(self) -> bool {
        matches!(self, Self::Put | Self::GetObject | Self::List | Self::Folders)
    }

    /// Clients at once.
    pub(super) fn clients(self) -> usize {
        match self {
            Self::Insert | Self::Put | Self::GetEntity | Self::GetObject => 16,
            Self::Page | Self::List | Self::Folders => 4,
        }
    }

    /// Carries out one operation and checks its answer.
    pub(super) fn carry_out(self, clients: &mut Clients, turn: &Turn, rng: &mut StdRng) -> Result<()> {
        let number = rng.random_range(0..turn.names);
        let own = format!("own-{:03}-{:09}", turn.round, turn.number);
        match self {
            Self::Insert => {
                let partition = format!("q{:03}", turn.number % 256);
                must(&mut clients.tables, insert((&partition, &own)), 204).map(drop)
            }
            Self::Put => clients.object(&put(&own), 200).map(drop),
            Self::GetEntity => {
                let (partition, row) = keys(number);
                let path = entity_path(TABLE, &partition, &row);
                let answer = must(&mut clients.tables, client::get(path), 200)?;
                ensure!(answer.body.contains(&row), "another entity than {row}: {:.300}", answer.body);
                Ok(())
            }
            Self::GetObject => {
                let target = format!("/storage/v1/b/{BUCKET}/o/{}?alt=media", encoded(&name(number)));
                let answer = clients.object(&Request::new("GET", &target, &[], b""), 200)?;
                ensure!(answer.body.len() == BYTES, "an object of {} bytes", answer.body.len());
                Ok(())
            }
            Self::Page => {
                let filter = client::percent_encode(&format!("PartitionKey eq '{}'", keys(number).0));
                let target = format!("/{ACCOUNT}/{TABLE}()?$filter={filter}");
                let answer = must(&mut clients.tables, client::get(target), 200)?;
                let wanted = PAGE.min(turn.names);
                expect_items(&answer, "value", wanted..=wanted)
            }
            Self::List => {
                let start = encoded(&name(number.min(turn.names - PAGE)));
                let target = format!("/storage/v1/b/{BUCKET}/o?startOffset={start}&prettyPrint=false");
                let answer = clients.object(&Request::new("GET", &target, &[], b""), 200)?;
                let most = if turn.is_peer { u64::MAX } else { PAGE };
                expect_items(&answer, "items", PAGE..=most)
            }
            Self::Folders => {
                let target = format!("/storage/v1/b/{BUCKET}/o?delimiter=/&prefix=f&prettyPrint=false");
                let answer = clients.object(&Request::new("GET", &target, &[], b""), 200)?;
                expect_items(&answer, "prefixes", FOLDERS..=FOLDERS)
            }
        }
    }
}

/// The answer is JSON with a list of so many members. Reading all of it costs the client, not the server.
fn expect_items(answer: &Answer, list: &str, wanted: RangeInclusive<u64>) -> Result<()> {
    let body: Value = serde_json::from_str(&answer.body)?;
    let found = body[list].as_array().map_or(0, Vec::len) as u64;
    ensure!(wanted.contains(&found), "{list} has {found} members, not {wanted:?}: {:.300}", answer.body);
    Ok(())
}

/// Makes the table with so many entities.
pub(super) fn load_tables(address: SocketAddr, names: u64) -> Result<()> {
    must(&mut Client::new(address, Credential::SharedKey), client::create_table(TABLE), 204)?;
    let batches = (0..names).step_by(100).map(|first| {
        let keys = (first..names.min(first + 100)).map(keys);
        client::batch(&keys.map(|(partition, row)| insert((&partition, &row))).collect::<Vec<_>>())
    });
    send_all(LOADERS, address, batches, 202)
}

/// Makes the bucket with so many names.
pub(super) fn load_objects(address: SocketAddr, names: u64) -> Result<()> {
    let send = |connection: &mut Connection, request: &Request| -> Result<()> {
        let answer = connection.send(request)?;
        ensure!(answer.status == 200, "{}: {} {:.300}", request.target, answer.status, answer.body);
        Ok(())
    };
    let bucket = Request::new(
        "POST",
        "/storage/v1/b?project=bench",
        &[("Content-Type", "application/json")],
        format!("{{\"name\":\"{BUCKET}\"}}").as_bytes(),
    );
    send(&mut Connection::open(address)?, &bucket)?;
    let load = |first: usize| -> Result<()> {
        let mut connection = Connection::open(address)?;
        (first as u64..names).step_by(LOADERS).try_for_each(|n| send(&mut connection, &put(&name(n))))
    };
    thread::scope(|scope| {
        let loaders: Vec<_> = (0..LOADERS).map(|first| scope.spawn(move || load(first))).collect();
        loaders.into_iter().try_for_each(|loader| loader.join().expect("loaders do not panic"))
    })
}

/// The keys of a loaded entity.
fn keys(number: u64) -> (String, String) {
    (format!("p{:06}", number / PAGE), format!("r{number:09}"))
}

/// The name of a loaded object. The folders lie one behind the other.
fn name(number: u64) -> String {
    format!("f{}/{number:09}", number % FOLDERS)
}

fn insert(keys: (&str, &str)) -> client::Request {
    let text = Map::from_iter([("text".to_owned(), "x".repeat(BYTES).into())]);
    client::change(Step::Insert, TABLE, keys, &text, "*")
}

fn put(name: &str) -> Request {
    let target = format!("/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={}", encoded(name));
    Request::new("POST", &target, &[("Content-Type", "text/plain")], &[b'x'; BYTES])
}

fn encoded(name: &str) -> String {
    name.replace('/', "%2F")
}
