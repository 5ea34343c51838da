//! The client: at a real service, and over a model of one with faults between them.

mod bulk;
mod claims;
mod folders;
mod model;
mod moving;
mod object;
mod objects_in_bulk;
mod pattern;
mod retry;
mod sequence;
mod support;
mod table;
