//! A small command language for maps, with one command per line.
//!
//! The same commands run on a map in memory ([`MapScript`], without servers or storage) and on a service,
//! real or simulated, which carries out each [`Command`]. Those that a real service accepts are [`Live`]. A
//! golden file ([`golden`]) holds a script with its expected output. Tests, the simulator and `rangehold map
//! script` share the language.
//!
//! ```text
//! table marathon                   make a table
//! server s2 capacity=5000          make a server (capacity in requests/s); or it is `leaving`, or `dead`
//! map                              show the map
//! check                            list the rules of the map that are broken
//! find marathon/Half               show the range that holds this key
//!
//! split marathon/Full              split the range that holds this key; `split r2 at marathon/Full`: only r2
//! merge r2 r3                      merge neighbours; if they are on two servers, r3 moves first
//! move r2 to s2                    move a range to another server
//! offline r2      online r2        make it refuse every request; make it serve again
//! begin split marathon/Full        begin a split, merge or move, and do not finish it
//! done r2         undo r2          finish it; undo it
//!
//! observe r2 rate=1800 cause=split:marathon/Half    set what is observed of a range from now on
//! wait 10m                         let time pass
//! plan                             show the changes of a plan as commands, and its report as comments;
//!                                  `plan cloud`: with the numbers of that profile
//! execute                          make a plan and carry its changes out; `execute cloud`
//! ```
//!
//! A range is written `r2`; or `r2@3`, which is refused unless the range is in generation 3; or as a key that
//! it holds. [`KeyName`] says how keys are written. Spaces divide words. A word may hold quoted text, such as
//! `marathon/"10 km"`. Lines that begin with `#` are comments.

mod command;
pub mod golden;
mod key_name;
mod live;
mod map_script;
mod names;
mod object_name;
mod parse;
mod seen;
mod show;
mod words;
mod written;

pub use command::{Asked, CauseName, Command, CommandRefused, Observed, Profile, Step, Target};
pub use key_name::{KeyName, TableName, TableRef};
pub use live::{Live, OnlyInMemory};
pub use map_script::MapScript;
pub use names::{Names, UnknownTable};
pub use object_name::{BucketRef, ObjectName};
pub use parse::{Line, parse, parse_lines};
pub use show::{show_map, show_range};
pub use words::Malformed;
