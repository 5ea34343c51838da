//! Request ids: random GUIDs from one seeded generator.

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

/// Draws request ids. The same seed gives the same ids in the same order.
pub(crate) struct RequestIds(Mutex<StdRng>);

impl RequestIds {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// The next id, in the form `xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx`.
    pub(crate) fn next(&self) -> String {
        let mut bytes = [0; 16];
        self.0.lock().fill_bytes(&mut bytes);
        uuid::Builder::from_random_bytes(bytes)
            .into_uuid()
            .as_hyphenated()
            .encode_lower(&mut Uuid::encode_buffer())
            .to_owned()
    }
}
