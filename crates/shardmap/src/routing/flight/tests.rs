//! What goes over the wire, message by message. It must be the same in whatever pieces the bytes come.

use proptest::prelude::*;

use super::super::Isolation;
use super::*;

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[tag][..], &length, body].concat()
}

/// The tags of a stream of messages.
fn tags(bytes: &[u8]) -> String {
    let (mut frames, mut rest, mut tags) = (Frames::new(), bytes, String::new());
    while let Some(piece) = frames.next(&mut rest).unwrap() {
        if let Piece::Begin(header) = piece {
            tags.push(header.tag() as char);
        }
    }
    tags
}

/// Messages, one for each letter. The body of `Z` is the state of the transaction. `P`, `B`, `D` and `C` have a
/// statement without a name; `p`, `b`, `y` and `x` are the same with the statement `one`, and `q` parses `two`.
fn messages(letters: &str) -> Vec<u8> {
    let one = |letter| match letter {
        b'Z' => message(b'Z', b"T"),
        b'P' => message(b'P', b"\0select 1\0\0\0"),
        b'p' => message(b'P', b"one\0select 1\0\0\0"),
        b'q' => message(b'P', b"two\0select 2\0\0\0"),
        b'B' => message(b'B', b"\0\0values"),
        b'b' => message(b'B', b"\0one\0values"),
        b'D' => message(b'D', b"P\0"),
        b'y' => message(b'D', b"Sone\0"),
        b'x' => message(b'C', b"Sone\0"),
        other => message(other, b"body"),
    };
    letters.bytes().flat_map(one).collect()
}

/// A flight after its connection has begun.
fn connected() -> Flight {
    let mut flight = Flight::new();
    let startup = [&8_u32.to_be_bytes()[..], &196_608_u32.to_be_bytes()].concat();
    let mut socket = Vec::new();
    flight.send(&startup, &mut None, &mut socket).unwrap();
    assert_eq!(socket, startup);
    receive(&mut flight, "RSSKZ", 1000);
    flight
}

fn whole() -> Option<Envelope> {
    Some(Envelope::begin(Isolation::ReadCommitted, false, uuid::Uuid::nil(), b"key").and_commit())
}

fn begin() -> Option<Envelope> {
    Some(Envelope::begin(Isolation::Serializable, true, uuid::Uuid::nil(), b"key"))
}

fn send(flight: &mut Flight, sent: &str, envelope: &mut Option<Envelope>, chunk: usize) -> String {
    let mut socket = Vec::new();
    messages(sent).chunks(chunk).for_each(|part| flight.send(part, envelope, &mut socket).unwrap());
    assert!(!socket.windows(3).any(|bytes| bytes == b"one" || bytes == b"two"), "a name was sent");
    tags(&socket)
}

fn receive(flight: &mut Flight, received: &str, chunk: usize) -> String {
    let mut library = Vec::new();
    messages(received).chunks(chunk).for_each(|part| flight.receive(part, &mut library).unwrap());
    tags(&library)
}

#[test]
fn begin_and_enter_go_ahead_in_the_same_request() {
    let (mut flight, mut envelope) = (connected(), begin());
    assert_eq!(send(&mut flight, "PBDES", &mut envelope, 7), "PBEPBEPBDES");
    assert!(envelope.is_none());
    assert_eq!(receive(&mut flight, "12C12DC1T2DDCZ", 7), "1T2DDCZ");
    assert_eq!(flight.status(), OPEN);
    assert_eq!(send(&mut flight, "PBDES", &mut None, 7), "PBDES");
    assert_eq!(receive(&mut flight, "1n2CZ", 7), "1n2CZ");
}

#[test]
fn commit_rides_behind_a_single_statement() {
    let (mut flight, mut envelope) = (connected(), whole());
    assert_eq!(send(&mut flight, "BES", &mut envelope, 3), "PBEPBEBEPBES");
    assert_eq!(receive(&mut flight, "12C12DC2DC12CZ", 3), "2DCZ");
}

#[test]
fn an_error_is_the_answer_wherever_it_comes() {
    for (answers, seen) in [
        ("EZ", "EZ"),                         // BEGIN was refused
        ("12C12EZ", "EZ"),                    // enter was
        ("12C12DC1EZ", "1EZ"),                // the statement was
        ("12C12DC1T2DC12EZ", "1T2DCEZ"),      // COMMIT was
        ("12NC1S2DC1T2NCA12CZ", "NS1T2NCAZ"), // notices, parameters and notifications pass
    ] {
        let (mut flight, mut envelope) = (connected(), whole());
        send(&mut flight, "PBDES", &mut envelope, 100);
        assert_eq!(receive(&mut flight, answers, 5), seen, "{answers}");
        send(&mut flight, "PBDES", &mut None, 100);
        assert_eq!(receive(&mut flight, "1n2CZ", 5), "1n2CZ", "the next request after {answers}");
    }
}

#[test]
fn an_envelope_waits_for_a_statement_and_its_own_answers() {
    let (mut flight, mut envelope) = (connected(), begin());
    // The library first closes a statement that was dropped, and the server answers that first.
    assert_eq!(send(&mut flight, "CSPDS", &mut envelope, 9), "CSPBEPBEPDS");
    assert_eq!(receive(&mut flight, "3Z12C12DC1tTZ", 9), "3Z1tTZ");
}

#[test]
fn a_copy_has_an_end_that_is_not_answered() {
    let mut flight = connected();
    assert_eq!(send(&mut flight, "BESdddcS", &mut None, 9), "BESdddcS");
    assert_eq!(receive(&mut flight, "2GCZ", 9), "2GCZ");
    send(&mut flight, "PBDES", &mut begin(), 9);
    assert_eq!(receive(&mut flight, "12C12DC1T2CZ", 9), "1T2CZ");
}

#[test]
fn statements_go_without_their_names() {
    let mut flight = connected();
    receive_open(&mut flight);
    assert_eq!(send(&mut flight, "pyS", &mut None, 5), "PDS");
    assert_eq!(receive(&mut flight, "1tTZ", 5), "1tTZ");
    // The server has it still.
    assert_eq!(send(&mut flight, "bES", &mut None, 5), "BES");
    assert_eq!(receive(&mut flight, "2CZ", 5), "2CZ");
    assert_eq!(send(&mut flight, "bES", &mut None, 5), "BES");
    assert_eq!(receive(&mut flight, "2CZ", 5), "2CZ");
    // Each of these replaces it: another statement, one without a name, a simple query, an error.
    for (request, answer) in [("qS", "1Z"), ("PBDES", "12TCZ"), ("Q", "CZ"), ("bES", "EZ")] {
        send(&mut flight, request, &mut None, 5);
        receive(&mut flight, answer, 5);
        assert_eq!(send(&mut flight, "bES", &mut None, 5), "PBES", "after {request}");
        assert_eq!(receive(&mut flight, "12CZ", 5), "2CZ", "after {request}");
    }
    // In the next transaction the session may be another one.
    assert_eq!(send(&mut flight, "bES", &mut whole(), 5), "PBEPBEPBEPBES");
    assert_eq!(receive(&mut flight, "12C12DC12DC12CZ", 5), "2DCZ");
    assert_eq!(send(&mut flight, "bES", &mut begin(), 5), "PBEPBEPBES");
    assert_eq!(receive(&mut flight, "12C12DCEZ", 5), "EZ", "it no longer parses");
}

#[test]
fn a_statement_that_was_closed_is_not_parsed_again() {
    let mut flight = connected();
    send(&mut flight, "pyS", &mut None, 9);
    assert_eq!(send(&mut flight, "xS", &mut None, 9), "CS");
    let late = flight.send(&messages("bES"), &mut None, &mut Vec::new());
    assert_eq!(late, Err(Broken("the library sent a statement that it has not prepared")));
}

/// While an answer is awaited it is not known whether the session is still the same.
#[test]
fn a_statement_is_parsed_again_while_answers_are_awaited() {
    let mut flight = connected();
    receive_open(&mut flight);
    send(&mut flight, "pyS", &mut None, 9);
    assert_eq!(send(&mut flight, "bES", &mut None, 9), "PBES");
    assert_eq!(receive(&mut flight, "1tTZ12CZ", 9), "1tTZ2CZ");
}

/// A transaction is open afterwards.
fn receive_open(flight: &mut Flight) {
    send(flight, "Q", &mut None, 9);
    receive(flight, "CZ", 9);
    assert_eq!(flight.status(), OPEN);
}

#[test]
fn nonsense_is_refused() {
    let mut flight = connected();
    assert!(flight.receive(&[b'Z', 0, 0, 0, 3], &mut Vec::new()).is_err());
    assert!(connected().receive(&messages("Z"), &mut Vec::new()).is_err(), "nothing was asked");
}

proptest! {
    /// Bytes from the network come in any pieces. There is never a panic, and the pieces make no difference.
    #[test]
    fn pieces_do_not_matter(requests in "(PBDES|CS|BES|PDS|pyS|bES|qS|Q){0,5}", answers in "[12CDETnsNAZ]{0,40}", chunk in 1_usize..40) {
        let run = |chunk: usize| {
            let (mut flight, mut envelope) = (connected(), whole());
            let sent = send(&mut flight, &format!("pyS{requests}"), &mut envelope, chunk);
            let mut library = Vec::new();
            let received: Result<Vec<()>, _> =
                messages(&answers).chunks(chunk).map(|part| flight.receive(part, &mut library)).collect();
            (sent, received.is_ok(), tags(&library), flight.status())
        };
        let (whole, pieces) = (run(1000), run(chunk));
        prop_assert_eq!(&whole.0, &pieces.0);
        prop_assert_eq!(&whole.1, &pieces.1);
        prop_assert_eq!(&whole.2, &pieces.2);
    }
}
