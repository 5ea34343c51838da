//! Clients of every kind against a running service: some are badly written, hostile or slow, some are browsers, and
//! some use several accounts. Each is answered (or cut off) as documented, never with 500, and the service goes on
//! serving the others.

mod accounts;
mod admin;
mod bodies;
mod browsers;
mod credentials;
mod heads;
mod history;
mod neighbours;
mod object_store;
mod profiles;
mod ranges;
mod slow;
