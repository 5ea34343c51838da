//! What the log has of an operation: enough for any process to do it or to undo it.

use std::time::Duration;

use rangehold_map::shard::{Effect, ShardMapping};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::location::Location;
use crate::rows::{MapRow, MappingRow, ShardRow};
use crate::store::{Drain, Row, StoreError};

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationKind {
    /// A shard is added to a map.
    AddShard,
    /// A shard without mappings is removed.
    RemoveShard,
    /// A shard gets another location or status.
    UpdateShard,
    /// A shard gets another place. It is closed at the old one.
    MoveShard,
    /// A shard is closed, and taken out of the global map with its mappings.
    DetachShard,
    /// A shard that another global map had is added to this one.
    AttachShard,
    /// Mappings are added.
    AddMappings,
    /// A mapping is deleted.
    RemoveMapping,
    /// A mapping gets another status or shard.
    UpdateMapping,
    /// A mapping is split in two.
    SplitMapping,
    /// Two mappings are merged.
    MergeMappings,
    /// A shard's local map is made again; the global map stays as it is.
    RepairShard,
}

impl OperationKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::AddShard,
        Self::RemoveShard,
        Self::UpdateShard,
        Self::MoveShard,
        Self::DetachShard,
        Self::AttachShard,
        Self::AddMappings,
        Self::RemoveMapping,
        Self::UpdateMapping,
        Self::SplitMapping,
        Self::MergeMappings,
        Self::RepairShard,
    ];

    /// Its name in the log and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::AddShard => "add-shard",
            Self::RemoveShard => "remove-shard",
            Self::UpdateShard => "update-shard",
            Self::MoveShard => "move-shard",
            Self::DetachShard => "detach-shard",
            Self::AttachShard => "attach-shard",
            Self::AddMappings => "add-mappings",
            Self::RemoveMapping => "remove-mapping",
            Self::UpdateMapping => "update-mapping",
            Self::SplitMapping => "split-mapping",
            Self::MergeMappings => "merge-mappings",
            Self::RepairShard => "repair-shard",
        }
    }

    pub(crate) fn read(row: &mut Row) -> Result<Self, StoreError> {
        let name = row.text()?;
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| row.damaged(format!("the log holds an operation {name:?}")))
    }
}

/// The direction of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It is being done.
    Forward,
    /// It is being undone. It never goes forward again.
    Back,
}

impl Direction {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Back => "back",
        }
    }
}

/// What an operation changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) map: MapRow,
    /// The shards that are changed, the one that gives keys away first.
    pub(crate) sides: Vec<Side>,
    /// If keys go offline or away, what becomes of their transactions.
    #[serde(flatten, with = "drain_row")]
    pub(crate) drain: Drain,
}

/// How the log has a [`Drain`].
mod drain_row {
    use super::{Deserialize, Deserializer, Drain, Duration, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct DrainRow {
        /// It is absent if the transactions are left alone.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        grace_ms: Option<u64>,
        /// Whether the change is given up after the grace. Earlier versions always ended the transactions.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        gives_up: bool,
    }

    pub(super) fn serialize<S: Serializer>(drain: &Drain, to: S) -> Result<S::Ok, S::Error> {
        let ms = |grace: Duration| Some(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
        let (grace_ms, gives_up) = match *drain {
            Drain::End(grace) => (ms(grace), false),
            Drain::GiveUp(grace) => (ms(grace), true),
            Drain::Leave => (None, false),
        };
        DrainRow { grace_ms, gives_up }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Drain, D::Error> {
        let DrainRow { grace_ms, gives_up } = DrainRow::deserialize(from)?;
        Ok(match grace_ms.map(Duration::from_millis) {
            None => Drain::Leave,
            Some(grace) if gives_up => Drain::GiveUp(grace),
            Some(grace) => Drain::End(grace),
        })
    }
}

/// What is changed in one shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Side {
    /// Where its local map is.
    pub(crate) at: Location,
    /// The shard in the global map before; absent if it is new.
    pub(crate) before: Option<ShardRow>,
    /// The shard in the local map before, if it differs from the one in the global map.
    pub(crate) before_local: Option<ShardRow>,
    /// The shard in both maps afterwards; absent if it is removed.
    pub(crate) after: Option<ShardRow>,
    pub(crate) goes: Vec<MappingRow>,
    pub(crate) comes: Vec<MappingRow>,
    #[serde(default)]
    pub(crate) role: Role,
}

/// What happens to the local map of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// Some of its rows are changed.
    #[default]
    Changes,
    /// The shard leaves this place. Its transactions are ended, and its mappings are put away.
    Closes,
    /// The shard is here from now on, with exactly the mappings that come.
    Opens,
}

impl Side {
    /// The side of a place that a shard leaves.
    pub(crate) fn closing(before: Option<&ShardRow>, shard: &ShardRow) -> Self {
        Self {
            at: shard.location.clone(),
            before: before.cloned(),
            before_local: Some(shard.clone()),
            after: None,
            goes: Vec::new(),
            comes: Vec::new(),
            role: Role::Closes,
        }
    }

    /// The side of a shard that stays as it is, and whose mappings change.
    pub(crate) fn staying(shard: &ShardRow, effect: &Effect) -> Self {
        let on_it = |mapping: &&ShardMapping| mapping.shard.0 == shard.id;
        let of = |mappings: &[ShardMapping]| mappings.iter().filter(on_it).map(MappingRow::from).collect();
        Self {
            at: shard.location.clone(),
            before: Some(shard.clone()),
            before_local: Some(shard.clone()),
            after: Some(shard.clone()),
            goes: of(&effect.goes),
            comes: of(&effect.comes),
            role: Role::Changes,
        }
    }
}

impl Plan {
    /// The mappings that are removed, and those that are added.
    pub(crate) fn effect(&self) -> Option<Effect> {
        let goes = self.sides.iter().flat_map(|side| &side.goes);
        let comes = self.sides.iter().flat_map(|side| &side.comes);
        Some(Effect {
            goes: goes.map(MappingRow::mapping).collect::<Option<_>>()?,
            comes: comes.map(MappingRow::mapping).collect::<Option<_>>()?,
        })
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a plan has text keys alone")
    }

    /// Reads a plan. Its keys are checked too, so that [`Plan::effect`] always has them.
    pub(crate) fn read(row: &mut Row) -> Result<Self, StoreError> {
        let json = row.text()?;
        let plan: Option<Self> = serde_json::from_str(&json).ok();
        let whole = plan.filter(|plan| plan.effect().is_some());
        whole.ok_or_else(|| row.damaged("the log holds a plan that cannot be read"))
    }
}
