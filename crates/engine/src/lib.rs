//! Ranges on SlateDB.
