//! The planner: stories, and what holds for every plan.

#[path = "plan/fleet.rs"]
mod fleet;
#[path = "plan/properties.rs"]
mod properties;
#[path = "plan/stories.rs"]
mod stories;
