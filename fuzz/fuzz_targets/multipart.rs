//! Bodies of several parts: any body is read or refused, and the sizes of its pieces make no difference.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rangehold_protocol::object::multipart::{Boundary, Event, MultipartError, Parser, PartHead};

fuzz_target!(|data: &[u8]| {
    let Some((piece, body)) = data.split_first() else { return };
    assert_eq!(
        parts(body, usize::from(*piece).max(1)),
        parts(body, usize::MAX),
        "the pieces make a difference"
    );
    let text = String::from_utf8_lossy(body);
    let _ = Boundary::from_content_type(&text, "related");
});

fn parts(body: &[u8], piece: usize) -> Result<Vec<(PartHead, Vec<u8>)>, MultipartError> {
    let mut parser = Parser::new(Boundary::new("B").expect("a boundary"));
    let mut parts: Vec<(PartHead, Vec<u8>)> = Vec::new();
    for piece in body.chunks(piece) {
        parser.push(Bytes::copy_from_slice(piece));
        while let Some(event) = parser.event()? {
            match event {
                Event::Part(head) => {
                    head.field_name();
                    head.file_name();
                    parts.push((head, Vec::new()));
                }
                Event::Data(data) => parts.last_mut().expect("a part began").1.extend_from_slice(&data),
                Event::End => {}
            }
        }
    }
    parser.finish().map(|()| parts)
}
