//! A large object that one client overwrites again and again, and reads after each try.
//!
//! When an overwrite is made, the blob of the object before it loses a user, and its bytes may be deleted. If a process
//! loses its database meanwhile, the overwrite may never take effect. Then the object before it must still have all its
//! bytes.

use std::sync::Arc;
use std::time::Duration;

use super::{CHANGING, LARGE_BYTES, Objects, Written};
use crate::check::register::Call;
use crate::client::Client;

/// The place of the name that is overwritten. All other clients may use it too.
const NAME: usize = CHANGING.len() - 1;

impl Objects {
    /// Overwrites and reads until `end`; it waits between `think` milliseconds before each overwrite.
    pub async fn overwrite(self: Arc<Self>, mut client: Client, end: Duration, think: (u64, u64)) {
        let size = usize::try_from(LARGE_BYTES.0).expect("an object of the simulation fits into memory");
        while client.world().now() < end {
            let Written { value, request } = self.written(NAME, None, |value| vec![(value, size)]);
            self.send_write(&mut client, NAME, Call::Upsert(value), request, false).await;
            self.read(&mut client, NAME).await;
            client.think(think.0, think.1).await;
        }
    }
}
