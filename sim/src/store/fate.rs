//! What happens to one call of the store: how long it takes, and what goes wrong.

use std::time::Duration;

use object_store::{Error, path::Path};

use crate::chance::Dice;
use crate::faults::{Fault, Weather};

/// What a call wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To read an object.
    Get,
    /// To list names.
    List,
    /// To write an object.
    Put {
        /// Only if no object, or a certain one, is there.
        conditional: bool,
    },
    /// To write a part of an object.
    Part,
    /// To delete an object.
    Delete,
}

/// How a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    /// The time from the call to its effect.
    pub(crate) before: Duration,
    /// The time from its effect to the return.
    pub(crate) after: Duration,
    /// What goes wrong.
    pub(crate) fault: Option<Fault>,
}

/// Whether a call with this fault has its effect.
pub(crate) fn has_effect(fault: Option<Fault>) -> bool {
    !matches!(
        fault,
        Some(
            Fault::StoreBusy
                | Fault::ThrottledPrefix
                | Fault::AccessLost
                | Fault::WriteDenied
                | Fault::StoreFull
                | Fault::TimeoutBefore
                | Fault::TornUpload
        )
    )
}

/// What a call of one process meets, and those of others do not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Standing {
    pub(crate) is_slow: bool,
    pub(crate) refused: Refused,
}

/// Which calls of a process the store refuses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Refused {
    /// None.
    #[default]
    Nothing,
    /// Those of the map, the leases and the changes, but not those of the databases. A process can open its ranges again
    /// before it can learn that they were given to others.
    AllButRanges,
    /// All.
    All,
}

impl Refused {
    fn covers(self, path: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::AllButRanges => !path.starts_with(RANGES),
            Self::All => true,
        }
    }
}

/// All databases of ranges are below this prefix.
const RANGES: &str = "ranges/";

/// Chooses the fate of a call on `path`.
pub(crate) fn choose(wish: Wish, path: &str, standing: Standing, weather: &Weather, dice: &mut Dice) -> Fate {
    let (low, high) = match wish {
        Wish::Get | Wish::Delete => (1, 4),
        Wish::Put { .. } | Wish::Part => (2, 8),
        Wish::List => (2, 10),
    };
    let mut ms = dice.between(low, high);
    if dice.happens(0.01) {
        ms *= 10;
    }
    if standing.is_slow || weather.rages(Fault::SlowStore) {
        ms *= 10;
    }
    let fault = if standing.refused.covers(path) {
        Some(Fault::AccessLost)
    } else {
        fault(wish, path, weather, dice)
    };
    let (mut before, mut after) = (Duration::from_millis(ms), Duration::ZERO);
    match fault {
        Some(Fault::TimeoutBefore) => before += late(dice),
        Some(Fault::TimeoutAfter) => after = late(dice),
        // Sometimes other things happen between an effect and its return.
        _ if dice.happens(0.2) => after = Duration::from_millis(dice.between(1, low + 1)),
        _ => {}
    }
    Fate { before, after, fault }
}

fn late(dice: &mut Dice) -> Duration {
    Duration::from_millis(dice.between(200, 8_000))
}

fn fault(wish: Wish, path: &str, weather: &Weather, dice: &mut Dice) -> Option<Fault> {
    let writes = matches!(wish, Wish::Put { .. } | Wish::Part);
    if weather.throttles(path) {
        return Some(Fault::ThrottledPrefix);
    }
    if writes && weather.rages(Fault::StoreFull) {
        return Some(Fault::StoreFull);
    }
    let table = path.ends_with(".sst");
    let possible = [
        (Fault::WriteDenied, writes),
        (Fault::StoreBusy, true),
        (Fault::TimeoutBefore, true),
        (Fault::TimeoutAfter, wish != Wish::List),
        (Fault::LostResponse, wish != Wish::List && wish != Wish::Get),
        (Fault::OwnConflict, wish == Wish::Put { conditional: true }),
        // The engine below a range panics if a listing of its manifests goes back in time. It is made for stores that
        // list all that was written, as the large clouds do.
        (Fault::StaleList, wish == Wish::List && !path.ends_with("manifest")),
        (Fault::TornUpload, wish == Wish::Part || (writes && table)),
        // Only sorted files have checksums of their own. The rest is protected by the checksums of the transport if
        // the store is in the cloud, and by the seals of the files if it is a directory.
        (Fault::FlippedBit, wish == Wish::Get && table),
        (Fault::MisdirectedRead, wish == Wish::Get && table),
        // The length of an answer shows that it was cut short, for files of every kind.
        (Fault::TruncatedRead, wish == Wish::Get),
    ];
    possible.into_iter().find(|(fault, can)| *can && weather.strikes(*fault, dice)).map(|(fault, _)| fault)
}

/// The error that a caller gets; `None` if the caller does not notice the fault.
pub(crate) fn error(fault: Option<Fault>, wish: Wish, path: &Path) -> Option<Error> {
    let text = match fault? {
        Fault::StoreBusy | Fault::ThrottledPrefix => "503: slow down",
        Fault::AccessLost | Fault::WriteDenied => {
            // The engine below a range tries again after every other error.
            return Some(Error::NotSupported {
                source: format!("403: access denied ({wish:?} {path})").into(),
            });
        }
        Fault::StoreFull => "no space left",
        Fault::TimeoutBefore | Fault::TimeoutAfter => "timed out",
        Fault::LostResponse => "connection reset",
        Fault::TornUpload => "connection reset in the middle of an upload",
        Fault::OwnConflict => {
            let path = path.to_string();
            let source = "somebody was faster".into();
            return Some(Error::AlreadyExists { path, source });
        }
        _ => return None,
    };
    Some(Error::Generic { store: "bucket", source: format!("{text} ({wish:?} {path})").into() })
}
