//! Attempts that wait too long, and what the servers and the poolers say meanwhile.
//!
//! The process of a writer prints a line when an attempt is stuck, and lets the attempt wait a little longer. The first
//! process reads the line, and asks every server and every pooler for its sessions. Each such attempt is wrong.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;
use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

use super::world::{World, plain};
use crate::support::roles::MANAGER;

/// An attempt that takes longer is stuck. Each wait for which there is a reason is far shorter: an outage lasts 1.5 s and a
/// recovery, a drain 250 ms, and the session of a manager that stands still is ended after 2 s.
pub const ATTEMPT_MAX: Duration = Duration::from_secs(60);
/// How long a stuck attempt goes on waiting while the servers are asked.
pub const ASKED_WITHIN: Duration = Duration::from_secs(10);
/// How long one server or pooler may take to answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
/// How a line begins that tells of a stuck attempt.
const LINE: &str = "stuck\t";
/// The superuser of the servers, who sees what other roles do.
const SUPERUSER: &str = "postgres";

const ACTIVITY: &str = "SELECT pid, datname, usename, application_name, client_port, state, wait_event_type, wait_event,
        now() - xact_start AS in_transaction, now() - state_change AS in_state, pg_blocking_pids(pid) AS blocked_by,
        left(query, 120) AS query
    FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY pid";
const OF_POOLER: [&str; 3] = ["SHOW CLIENTS", "SHOW SERVERS", "SHOW POOLS"];

/// What an attempt waits for, in a few words.
#[derive(Debug, Clone, Default)]
pub struct Stage(Arc<Mutex<&'static str>>);

impl Stage {
    pub fn is(&self, what: &'static str) {
        *self.0.lock().expect("no panic while it is held") = what;
    }

    fn now(&self) -> &'static str {
        *self.0.lock().expect("no panic while it is held")
    }
}

/// Waits for an attempt. If it is stuck, prints so, and waits until the servers were asked. `None` if it then has not ended.
pub async fn within_limit<T>(
    attempt: impl Future<Output = T>,
    name: impl FnOnce() -> String,
    stage: &Stage,
) -> Option<T> {
    let mut attempt = pin!(attempt);
    if let Ok(done) = timeout(ATTEMPT_MAX, attempt.as_mut()).await {
        return Some(done);
    }
    println!("{}", line(&name(), stage.now()));
    timeout(ASKED_WITHIN, attempt).await.ok()
}

fn line(name: &str, stage: &str) -> String {
    format!("{LINE}{name} waits for {stage}")
}

/// What a line says about a stuck attempt. `None` for another line.
pub fn read(line: &str) -> Option<String> {
    Some(line.split_once(LINE)?.1.to_owned())
}

/// Asks the servers when attempts are stuck, prints what they say, and returns it in the end.
pub async fn ask(world: Arc<World>, mut stuck: UnboundedReceiver<String>) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(first) = stuck.recv().await {
        let mut attempts = vec![first];
        while let Ok(one) = stuck.try_recv() {
            attempts.push(one);
        }
        let text = format!("stuck: {}\n{}", attempts.join("; "), answers(&world).await);
        eprintln!("{text}");
        all.push(text);
    }
    all
}

async fn answers(world: &World) -> String {
    let (servers, poolers) = world.ports();
    let mut text = String::new();
    for port in servers {
        text += &answer(port, "postgres", SUPERUSER, ACTIVITY).await;
    }
    for port in poolers {
        for question in OF_POOLER {
            text += &answer(port, "pgbouncer", MANAGER, question).await;
        }
    }
    text
}

async fn answer(port: u16, database: &str, role: &str, question: &str) -> String {
    let asking = async {
        let (client, _) = plain(port, database, role).await?;
        client.simple_query(question).await
    };
    let answer = match timeout(ANSWERED_WITHIN, asking).await {
        Ok(Ok(rows)) => rows.iter().filter_map(words).collect(),
        Ok(Err(error)) => format!("    {error}\n"),
        Err(_) => "    no answer\n".to_owned(),
    };
    let what = question.lines().next().unwrap_or_default();
    format!("  port {port}, {what}:\n{answer}")
}

fn words(message: &SimpleQueryMessage) -> Option<String> {
    let SimpleQueryMessage::Row(row) = message else { return None };
    let word = |index: usize| Some(format!("{}={}", row.columns()[index].name(), filled(row, index)?));
    let words: Vec<String> = (0..row.len()).filter_map(word).collect();
    Some(format!("    {}\n", words.join(" ")))
}

fn filled(row: &SimpleQueryRow, index: usize) -> Option<String> {
    let text = row.get(index)?;
    (!text.is_empty()).then(|| text.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let written = line("Guard of tenant 3 at postgres://127.0.0.1:5432/shard", "COMMIT");
        let read = read(&format!("test a ... {written}")).unwrap();
        assert_eq!(read, "Guard of tenant 3 at postgres://127.0.0.1:5432/shard waits for COMMIT");
        assert!(super::read("attempt\t1").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_never_ends_is_given_up() {
        let stage = Stage::default();
        assert_eq!(within_limit(async { 7 }, String::new, &stage).await, Some(7));
        let began = tokio::time::Instant::now();
        let given_up = within_limit(std::future::pending::<()>(), String::new, &stage).await;
        assert_eq!((given_up, began.elapsed()), (None, ATTEMPT_MAX + ASKED_WITHIN));
    }
}
