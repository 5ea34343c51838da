//! Addresses of resources, as replies show them.
//!
//! A link begins with the address under which the client reached the server, taken from the `Host` of its request. A
//! name is one segment of a path: everything in it but letters, digits and `-._~` is percent-encoded, `/` too.

/// The address of the JSON API of the server at `base`, for example `http://127.0.0.1:4443`.
const API: &str = "/storage/v1/b/";

/// Appends a name as one segment of a path.
pub fn put_segment(out: &mut Vec<u8>, name: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let is_itself = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let mut rest = name.as_bytes();
    loop {
        // A page of a listing has two thousand links, so what stands for itself is copied in one piece.
        let same = rest.iter().position(|byte| !is_itself(byte)).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..same]);
        let Some((byte, after)) = rest[same..].split_first() else { return };
        out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xF)]]);
        rest = after;
    }
}

/// A name as one segment of a path.
pub fn segment(name: &str) -> String {
    let mut out = Vec::with_capacity(name.len() + 8);
    put_segment(&mut out, name);
    String::from_utf8(out).expect("only ASCII was written")
}

/// The link of a bucket.
pub fn bucket_link(base: &str, bucket: &str) -> String {
    format!("{base}{API}{}", segment(bucket))
}

/// The link of an object.
pub fn object_link(base: &str, bucket: &str, name: &str) -> String {
    format!("{base}{API}{}/o/{}", segment(bucket), segment(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_segment() {
        let link = object_link("http://localhost:4443", "b", "a/b c+ü~.txt");
        assert_eq!(link, "http://localhost:4443/storage/v1/b/b/o/a%2Fb%20c%2B%C3%BC~.txt");
    }
}
