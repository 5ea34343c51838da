//! The planner: stories, and what holds for every plan.

mod fleet;
mod properties;
mod stories;
