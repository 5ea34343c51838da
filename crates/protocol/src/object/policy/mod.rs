//! Policies that are documents: what a form may upload, and when a binding of an IAM policy counts.

pub mod expression;
mod form;

pub use self::form::{CONDITIONS_MAX, POLICY_BYTES_MAX, Policy, PolicyError};
