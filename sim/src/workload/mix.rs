//! All workloads of a run, and their clients: which there are, how many, and how long they think between two requests.
//!
//! The order in which clients are made and started is part of a seed: another order is another run.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::bank::Bank;
use super::ledger::Ledger;
use super::objects::tokens::Tokens;
use super::objects::{self, Folders, Objects, lives, versions};
use super::register::Registers;
use super::tables::Tables;
use super::{large, listing};
use crate::client::Client;
use crate::faults::Fault;
use crate::world::World;

/// Clients that watch each process, in runs in which processes may stand still.
const WATCHERS: usize = 3;
const REGISTER_CLIENTS: usize = 4;
const BANK_CLIENTS: usize = 2;
const OBJECT_CLIENTS: usize = 3;
/// Clients that put objects into a bucket which another one deletes.
const FILLERS: u64 = 2;
/// Clients that write batches into the ledger.
const LEDGER_WRITERS: usize = 4;
/// Clients that come at the same time in a flash crowd.
const CROWD: usize = 12;
/// When processes may stand still, some clients soon go on at another process, so that something happens that a
/// zombie does not know. This is how long they wait for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
const WATCHERS_PATIENCE: Duration = Duration::from_secs(1);
/// The least number of requests of a run. If faults left fewer, the run goes on in the calm for `GOES_ON_FOR`, as
/// often as needed.
const REQUESTS_MIN: u64 = 200;
const GOES_ON_FOR: Duration = Duration::from_secs(5);

/// The workloads of one run.
pub(crate) struct Mix<'a> {
    world: &'a World,
    registers: Arc<Registers>,
    ledger: Arc<Ledger>,
    bank: Arc<Bank>,
    objects: Option<Arc<Objects>>,
    tokens: Arc<Tokens>,
    folders: Option<Arc<Folders>>,
}

impl<'a> Mix<'a> {
    /// Makes the tables and the rows that the workloads need, however long it takes.
    pub(crate) async fn set_up(world: &'a World, client: &mut Client) -> Self {
        let objects = if world.size().objects { Some(Objects::set_up(world).await) } else { None };
        let folders = if world.size().objects { Some(Folders::set_up(world).await) } else { None };
        let registers = Registers::new(4, 2);
        let (ledger, bank, tokens) = Default::default();
        let mix = Self { world, registers, ledger, bank, objects, tokens, folders };
        mix.registers.set_up(client).await;
        mix.bank.set_up(client).await;
        listing::set_up(client).await;
        mix.ledger.set_up(client).await;
        if world.size().large {
            large::set_up(client).await;
        }
        mix
    }

    /// Starts all clients. Those that only faults make interesting end when it becomes calm, the others at the end.
    pub(crate) fn begin(&self, calm_at: Duration, end_at: Duration) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        // In these runs an old owner may go on answering.
        let pauses =
            [Fault::Pause, Fault::TwoLives].into_iter().any(|fault| self.world.weather().is_on(fault));
        if pauses {
            self.watch_processes(&mut clients, calm_at);
        }
        for number in 0..REGISTER_CLIENTS {
            let client = self.impatient(&format!("reg{number}"), pauses && number % 2 == 0);
            clients.spawn(Arc::clone(&self.registers).run(client, end_at, (100, 1_200)));
        }
        for number in 0..BANK_CLIENTS {
            let client = self.client(&format!("bank{number}"));
            clients.spawn(Arc::clone(&self.bank).transfer(client, end_at, (200, 2_500)));
        }
        for number in 0..LEDGER_WRITERS {
            let client = self.impatient(&format!("ledger{number}"), pauses && number % 2 == 0);
            clients.spawn(Arc::clone(&self.ledger).run(client, end_at, (20, 1_500)));
        }
        clients.spawn(Arc::clone(&self.ledger).watch(self.client("reader"), end_at, (50, 800)));
        clients.spawn(Arc::clone(&self.bank).audit(self.client("audit"), end_at, (300, 3_000)));
        if self.world.size().large {
            clients.spawn(large::walk(self.client("large"), end_at, (200, 5_000)));
        }
        clients.spawn(listing::churn(self.client("churn"), end_at, (300, 2_000)));
        clients.spawn(listing::walk(self.client("walk"), end_at, (20, 2_500)));
        let tables = Arc::<Tables>::default();
        clients.spawn(Arc::clone(&tables).own(self.client("owner"), end_at, (200, 3_000)));
        clients.spawn(tables.meddle(self.client("meddler"), end_at, (200, 2_000)));
        if let Some(objects) = &self.objects {
            self.begin_objects(&mut clients, objects, end_at);
        }
        if let Some(folders) = &self.folders {
            self.begin_folders(&mut clients, folders, end_at);
        }
        if self.world.weather().is_on(Fault::FlashCrowd) {
            for number in 0..CROWD {
                let client = self.client(&format!("crowd{number}"));
                clients.spawn(Arc::clone(&self.registers).crowd(client, calm_at));
            }
        }
        clients
    }

    /// Starts the clients of the objects.
    fn begin_objects(&self, clients: &mut JoinSet<()>, objects: &Arc<Objects>, end_at: Duration) {
        let client = |name: &str| Client::of_objects(self.world, name);
        for number in 0..OBJECT_CLIENTS {
            let client = client(&format!("object{number}"));
            clients.spawn(Arc::clone(objects).run(client, end_at, (100, 1_500)));
        }
        clients.spawn(Arc::clone(objects).overwrite(client("overwriter"), end_at, (1, 100)));
        clients.spawn(Arc::clone(objects).walk(client("lister"), end_at, (50, 1_500)));
        let client = |name: &str| client(name).only_once();
        let tokens = || Arc::clone(&self.tokens);
        clients.spawn(tokens().make_and_move(client("mover"), end_at, (1, 100)));
        clients.spawn(tokens().move_on(client("mover2"), end_at, (1, 200)));
        clients.spawn(tokens().watch(client("tokens"), end_at, (20, 300)));
        for number in 1..=FILLERS {
            clients.spawn(lives::fill(client(&format!("filler{number}")), number, end_at, (50, 1_200)));
        }
        clients.spawn(lives::end_bucket(client("ender"), end_at, (50, 2_000)));
        clients.spawn(versions::keep_versions(client("versions"), end_at, (50, 1_500)));
        clients.spawn(versions::bring_back(client("restorer"), end_at, (50, 1_500)));
        // An audit does not know the requests that are under way in another process, or in an older life of its own.
        if self.world.processes() == 1 && !self.world.weather().is_on(Fault::TwoLives) {
            clients.spawn(objects::again_and_again(client("tidy"), end_at, (100, 2_500)));
        }
    }

    /// Starts the clients of the folders. Their requests arrive once: a rename that arrives again would be another one.
    fn begin_folders(&self, clients: &mut JoinSet<()>, folders: &Arc<Folders>, end_at: Duration) {
        let client = |name: &str| Client::of_objects(self.world, name).only_once();
        for number in 0..OBJECT_CLIENTS {
            let client = client(&format!("filer{number}"));
            clients.spawn(Arc::clone(folders).write(client, end_at, (100, 1_200)));
        }
        clients.spawn(Arc::clone(folders).take_away(client("renamer"), end_at, (200, 2_000)));
        clients.spawn(Arc::clone(folders).watch(client("watcher"), end_at, (200, 2_500)));
    }

    /// Starts clients that stay with one process each, and so ask it even after it stood still.
    fn watch_processes(&self, clients: &mut JoinSet<()>, calm_at: Duration) {
        let processes = self.world.processes();
        let at_home =
            |name: &str, home| Client::new(self.world, name, Some(home)).patient_for(WATCHERS_PATIENCE);
        for number in 0..WATCHERS * processes {
            let client = at_home(&format!("watch{number}"), number % processes);
            clients.spawn(Arc::clone(&self.registers).watch(client, calm_at, (500, 2_500)));
        }
        for home in 0..processes {
            let client = at_home(&format!("reader{home}"), home);
            clients.spawn(Arc::clone(&self.ledger).watch(client, calm_at, (20, 300)));
        }
    }

    /// Goes on until there were enough requests.
    pub(crate) async fn go_on(&self) {
        for number in 0.. {
            if self.world.requests() >= REQUESTS_MIN {
                return;
            }
            let client = self.client(&format!("late{number}"));
            Arc::clone(&self.registers).run(client, self.world.now() + GOES_ON_FOR, (100, 400)).await;
        }
    }

    /// Reads everything once more and judges it. Returns how many histories could not be decided.
    pub(crate) async fn read_all(&self) -> usize {
        let mut client = self.client("last").only_once();
        self.registers.read_all(&mut client).await;
        self.bank.audit_at_last(&mut client).await;
        listing::walk_at_last(&mut client).await;
        self.ledger.read_all(&mut client).await;
        if self.world.size().large {
            large::walk_at_last(&mut client).await;
        }
        let mut undecided = self.registers.check(self.world);
        if let Some(objects) = &self.objects {
            objects.read_all(&mut Client::of_objects(self.world, "last of objects").only_once()).await;
            self.tokens.look_at_last(self.world).await;
            objects::at_last(self.world).await;
            undecided += objects.check(self.world);
        }
        if let Some(folders) = &self.folders {
            folders.check(&mut Client::of_objects(self.world, "last of folders").only_once()).await;
        }
        undecided
    }

    /// A client that may ask any process.
    fn client(&self, name: &str) -> Client {
        Client::new(self.world, name, None)
    }

    fn impatient(&self, name: &str, is_impatient: bool) -> Client {
        let client = self.client(name);
        if is_impatient { client.patient_for(PATIENCE) } else { client }
    }
}
