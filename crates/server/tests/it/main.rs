//! The service over HTTP, in the process of the test.

mod replay;
mod support;

mod clients;
mod concurrency;
mod objects;
mod recorded;
