//! A short Python program against real shards: it knows nothing but SQL functions, follows a tenant that
//! moves, and waits for one that is offline.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rangehold_shardmap::MappingChange;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::world::{DATABASE, World};
use crate::support::roles::{APPLICATION, OWNER};

/// The role of the program, which may write its own table and nothing else.
const ROLE: &str = APPLICATION;

struct Shop {
    child: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Shop {
    fn start(python: &Path, world: &World) -> Shop {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python-shards/shop.py");
        let mut command = Command::new(python);
        command.arg(program).arg(world.global_address(ROLE)).arg(ROLE).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Shop { child, answers }
    }

    async fn ask(&mut self, tenant: i64) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        stdin.write_all(format!("{tenant}\n").as_bytes()).await.expect("the program reads");
    }

    async fn answer(&mut self) -> String {
        self.answers.next_line().await.expect("the program answers").expect("the program has ended")
    }
}

/// Runs the program; panics if it writes anywhere else than it should.
pub async fn run(python: &Path) {
    let world = World::start("", false).await;
    let map = world.open("the trial").await;
    for shard in &world.shards {
        shard.server.sql_as(OWNER, DATABASE, "CREATE TABLE orders (tenant bigint, at timestamptz)");
    }
    let mut shop = Shop::start(python, &world);
    let orders = |shard: usize| {
        world.shards[shard].server.sql_as(OWNER, DATABASE, "SELECT count(*) FROM orders WHERE tenant = 1")
    };

    shop.ask(1).await;
    assert_eq!(shop.answer().await, format!("1 1 {DATABASE}"));
    assert_eq!((orders(0).as_str(), orders(1).as_str()), ("1", "0"));

    // It says which tenant has no shard, and goes on.
    shop.ask(-1).await;
    assert_eq!(shop.answer().await, "tenant -1 has no shard");

    // Offline it waits, and on the other shard it goes on, with old knowledge to begin with.
    let mapping = map.offline(&map.get(&1).await.expect("a mapping")).await.expect("offline");
    shop.ask(1).await;
    tokio::time::timeout(Duration::from_millis(500), shop.answer())
        .await
        .expect_err("it wrote on an offline key");
    let target = map.shard(&world.shards[1].location()).await.expect("a shard");
    let change = MappingChange { online: Some(true), shard: Some(&target) };
    map.update(&mapping, change).await.expect("a move");
    assert_eq!(shop.answer().await, format!("1 1 {DATABASE}"));
    assert_eq!((orders(0).as_str(), orders(1).as_str()), ("1", "1"));
    drop(shop.child.stdin.take());
    assert!(shop.child.wait().await.expect("it ends").success());
    println!("the Python program was routed and fenced");
}
