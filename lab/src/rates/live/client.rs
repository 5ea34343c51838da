//! Sends the requests of a story, and counts their answers. What is refused is not repeated.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rangehold_map::capacity::Usage;
use rangehold_testkit::http::{Answer, Connection, Request};

use super::failed::Failed;
use super::schedule::Schedule;
use super::seen::{Answered, Seen};
use super::story::{Lane, Story};

const BUCKET: &str = "ramp";
/// What the 429 for a bucket says.
const TOO_MANY: &str = "exceeded the rate limit for requests to a range of its objects";
/// Clients at once that write the objects which are read later.
const WRITERS: usize = 8;
/// A request that is so late is left out: its client was held up, and shall not make up for it.
const LATE_MAX: Duration = Duration::from_secs(1);

/// Makes the bucket, and writes all objects that the story reads. The server must have no limits.
pub(super) fn write_before(story: &Story, address: SocketAddr) -> Result<()> {
    let bucket = format!("{{\"name\":\"{BUCKET}\"}}");
    let json = [("Content-Type", "application/json")];
    let make = Request::new("POST", "/storage/v1/b?project=lab", &json, bucket.as_bytes());
    let made = Connection::open(address)?.send(&make)?;
    ensure!(made.status == 200, "the bucket was answered {} {:.300}", made.status, made.body);
    let reads = story.lanes.iter().filter(|lane| lane.usage == Usage::Read);
    let names: BTreeSet<String> = reads
        .flat_map(|lane| {
            let requests: Vec<(Duration, u64)> = story.schedule(lane).all().collect();
            requests.into_iter().map(|(due, number)| (lane.name)(due.as_secs(), number))
        })
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    let write = |names: &[String]| -> Result<()> {
        let mut connection = Connection::open(address)?;
        for name in names {
            let request = request(Usage::Write, name);
            let answer = connection.send(&request)?;
            ensure!(answer.status == 200, "{}: {} {:.300}", request.target, answer.status, answer.body);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let parts = names.chunks(names.len().div_ceil(WRITERS).max(1));
        let writers: Vec<_> = parts.map(|names| scope.spawn(move || write(names))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("writers do not panic"))
    })
}

/// Sends the requests of all lanes when they are due. Fails if an answer is neither a success nor a refusal by the bucket's rate, and
/// tells the clients of all stories. If a client of another story has failed, it ends before all requests were sent.
pub(super) fn play(story: &Story, address: SocketAddr, failed: &Failed) -> Result<Vec<Seen>> {
    let seen: Vec<Seen> = story.lanes.iter().map(|_| Seen::new(story.whole())).collect();
    let schedules: Vec<Schedule> = story.lanes.iter().map(|lane| story.schedule(lane)).collect();
    let next: Vec<AtomicU64> = story.lanes.iter().map(|_| AtomicU64::new(0)).collect();
    let begun = Instant::now();
    thread::scope(|scope| {
        let mut clients = Vec::new();
        for (at, lane) in story.lanes.iter().enumerate() {
            let (seen, schedule, next) = (&seen[at], &schedules[at], &next[at]);
            for _ in 0..lane.clients {
                let client = move || client(lane, schedule, next, address, begun, seen, failed);
                clients.push(scope.spawn(move || {
                    failed.note(client().with_context(|| format!("{}: {}", story.file, lane.label)))
                }));
            }
        }
        clients.into_iter().try_for_each(|client| client.join().expect("clients do not panic"))
    })?;
    Ok(seen)
}

/// Takes one request after the other, until there are no more or a client has failed.
fn client(
    lane: &Lane,
    schedule: &Schedule,
    next: &AtomicU64,
    address: SocketAddr,
    begun: Instant,
    seen: &Seen,
    failed: &Failed,
) -> Result<()> {
    let mut connection = Connection::open(address)?;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(due) = schedule.due(number) else { return Ok(()) };
        let now = begun.elapsed();
        if now.saturating_sub(due) > LATE_MAX {
            continue;
        }
        if failed.sleep(due.saturating_sub(now)) {
            return Ok(());
        }
        let request = request(lane.usage, &(lane.name)(due.as_secs(), number));
        let sent = begun.elapsed();
        let answer = connection.send(&request)?;
        seen.count(sent, answered(&request, &answer)?);
    }
}

fn request(usage: Usage, name: &str) -> Request {
    let name = name.replace('/', "%2F");
    match usage {
        Usage::Write => {
            let target = format!("/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}");
            Request::new("POST", &target, &[("Content-Type", "text/plain")], b"x")
        }
        Usage::Read => Request::new("GET", &format!("/storage/v1/b/{BUCKET}/o/{name}?alt=media"), &[], b""),
    }
}

/// The refusals are known by their messages: bodies of downloads have nothing else, all others are JSON with the message in it.
fn answered(request: &Request, answer: &Answer) -> Result<Answered> {
    match answer.status {
        200 => Ok(Answered::LetIn),
        429 if answer.body.contains(TOO_MANY) => Ok(Answered::TooMany),
        503 if answer.body.contains("Backend Error") => Ok(Answered::Backend),
        other => bail!("{} {} was answered {other} {:.300}", request.method, request.target, answer.body),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Two requests, the second of which is due half a minute after the first.
    static SLOW: Story = Story {
        file: "slow",
        title: "",
        stretches: 1,
        lanes: &[Lane {
            label: "names",
            usage: Usage::Write,
            name: |_, number| number.to_string(),
            asked: |_| 0.003,
            borne: |_| 1.0,
            clients: 2,
        }],
    };

    /// Answers each request with 404 until the client closes the connection. Returns how many there were.
    fn answer_404(mut stream: TcpStream) -> usize {
        let (mut requests, mut bytes) = (String::new(), [0; 1_024]);
        loop {
            let length = stream.read(&mut bytes).expect("the client sends or closes");
            if length == 0 {
                return requests.matches("POST ").count();
            }
            requests += &String::from_utf8_lossy(&bytes[..length]);
            if requests.ends_with("\r\n\r\nx") {
                stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").expect("it is read");
            }
        }
    }

    #[test]
    fn a_client_that_fails_ends_all_others_before_their_requests_are_due() {
        assert_eq!(SLOW.schedule(&SLOW.lanes[0]).all().count(), 2);
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        let server = thread::spawn(move || {
            let streams = listener.incoming().take(2).map(|stream| stream.expect("a client connects"));
            let answering: Vec<_> = streams.map(|stream| thread::spawn(|| answer_404(stream))).collect();
            answering.into_iter().map(|requests| requests.join().expect("it counts")).sum::<usize>()
        });
        let failed = Failed::default();
        let error = play(&SLOW, address, &failed).err().expect("a bucket does not answer 404");
        assert!(format!("{error:#}").starts_with("slow: names: POST "), "{error:#}");
        assert_eq!(server.join().expect("it answers"), 1);
        assert!(failed.sleep(Duration::MAX), "clients of other stories are told");
    }

    #[test]
    fn an_answer_that_is_neither_a_success_nor_a_refusal_by_the_rate_is_an_error() {
        let request = request(Usage::Read, "a/1");
        let answered = |status, body: &str| {
            answered(&request, &Answer { status, headers: Vec::new(), body: body.to_owned() })
        };
        assert_eq!(answered(200, "x").ok(), Some(Answered::LetIn));
        let too_many = format!("The bucket ramp {TOO_MANY}.");
        assert_eq!(answered(429, &too_many).ok(), Some(Answered::TooMany));
        assert_eq!(answered(429, &format!("{{\"message\":\"{too_many}\"}}")).ok(), Some(Answered::TooMany));
        assert_eq!(answered(503, "Backend Error").ok(), Some(Answered::Backend));
        assert_eq!(answered(503, r#"{"message":"Backend Error"}"#).ok(), Some(Answered::Backend));
        for (status, body) in [(404, "x"), (429, "x"), (503, "x"), (206, "x")] {
            let error = answered(status, body).expect_err("it is unknown").to_string();
            assert_eq!(error, format!("GET /storage/v1/b/ramp/o/a%2F1?alt=media was answered {status} x"));
        }
    }
}
