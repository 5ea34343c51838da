//! Front end, admin, and what binds them to the partition server.
