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

/// Messages, one for each letter. The body of `Z` is the state of the transaction, and that of the others does not
/// matter.
fn messages(tags: &str) -> Vec<u8> {
    let body = |tag| if tag == b'Z' { b"T".as_slice() } else { b"body".as_slice() };
    tags.bytes().flat_map(|tag| message(tag, body(tag))).collect()
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

fn whole() -> Option<Escort> {
    Some(Escort::begin(Isolation::ReadCommitted, false, uuid::Uuid::nil(), b"key").and_commit())
}

fn begin() -> Option<Escort> {
    Some(Escort::begin(Isolation::Serializable, true, uuid::Uuid::nil(), b"key"))
}

fn send(flight: &mut Flight, sent: &str, escort: &mut Option<Escort>, chunk: usize) -> String {
    let mut socket = Vec::new();
    messages(sent).chunks(chunk).for_each(|part| flight.send(part, escort, &mut socket).unwrap());
    tags(&socket)
}

fn receive(flight: &mut Flight, received: &str, chunk: usize) -> String {
    let mut library = Vec::new();
    messages(received).chunks(chunk).for_each(|part| flight.receive(part, &mut library).unwrap());
    tags(&library)
}

#[test]
fn begin_and_enter_go_ahead_in_the_same_request() {
    let (mut flight, mut escort) = (connected(), begin());
    assert_eq!(send(&mut flight, "PBDES", &mut escort, 7), "PBEPBEPBDES");
    assert!(escort.is_none());
    assert_eq!(receive(&mut flight, "12C12DC1T2DDCZ", 7), "1T2DDCZ");
    assert_eq!(flight.status(), OPEN);
    assert_eq!(send(&mut flight, "PBDES", &mut None, 7), "PBDES");
    assert_eq!(receive(&mut flight, "1n2CZ", 7), "1n2CZ");
}

#[test]
fn commit_rides_behind_a_single_statement() {
    let (mut flight, mut escort) = (connected(), whole());
    assert_eq!(send(&mut flight, "BES", &mut escort, 3), "PBEPBEBEPBES");
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
        let (mut flight, mut escort) = (connected(), whole());
        send(&mut flight, "PBDES", &mut escort, 100);
        assert_eq!(receive(&mut flight, answers, 5), seen, "{answers}");
        send(&mut flight, "PBDES", &mut None, 100);
        assert_eq!(receive(&mut flight, "1n2CZ", 5), "1n2CZ", "the next request after {answers}");
    }
}

#[test]
fn an_escort_waits_for_a_statement_and_its_own_answers() {
    let (mut flight, mut escort) = (connected(), begin());
    // The library first closes a statement that was dropped, and the server answers that first.
    assert_eq!(send(&mut flight, "CSPDS", &mut escort, 9), "CSPBEPBEPDS");
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
fn nonsense_is_refused() {
    let mut flight = connected();
    assert!(flight.receive(&[b'Z', 0, 0, 0, 3], &mut Vec::new()).is_err());
    assert!(connected().receive(&messages("Z"), &mut Vec::new()).is_err(), "nothing was asked");
}

proptest! {
    /// Bytes from the network come in any pieces. There is never a panic, and the pieces make no difference.
    #[test]
    fn pieces_do_not_matter(requests in "(PBDES|CS|BES|PDS){0,5}", answers in "[12CDETnsNAZ]{0,40}", chunk in 1_usize..40) {
        let run = |chunk: usize| {
            let (mut flight, mut escort) = (connected(), whole());
            let sent = send(&mut flight, &requests, &mut escort, chunk);
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
