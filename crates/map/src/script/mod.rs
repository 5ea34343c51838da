//! One small command language for maps: what to do with ranges, one command a line.
//!
//! The same commands run against the map alone ([`MapScript`], without servers or storage), and against
//! a service, real or simulated, which takes each [`Command`] and carries it out; those that a real one
//! can be given are [`Live`]. So a script says what should happen, and golden files ([`golden`]) say
//! what then is. Tests, the simulator and `rangehold map script` share it.
//!
//! ```text
//! table marathon                   there is a table
//! server s2 capacity=5000          there is a server (requests/s); or it is `leaving`, or `dead`
//! map                              show the map
//! check                            list the rules of the map that are broken
//! find marathon/Half               show the range that holds this key
//!
//! split marathon/Full              cut there; `split r2 at marathon/Full`: only if r2 holds it
//! merge r2 r3                      make neighbours one; on two servers, r3 moves to that of r2 first
//! move r2 to s2                    give a range to another server
//! offline r2      online r2        let it refuse every request; let it serve again
//! begin split marathon/Full        begin a split, merge or move, and leave it so
//! done r2         undo r2          finish it; undo it
//!
//! observe r2 rate=1800 cause=split:marathon/Half    what is seen of a range from now on
//! wait 10m                         time goes by
//! plan                             show what would be changed now, as commands, and in comments why,
//!                                  and what waits; `plan cloud`: by the numbers of that profile
//! execute                          plan, and carry the changes out; `execute cloud`
//! ```
//!
//! A range is named `r2`; or `r2@3`, which is refused unless it is in generation 3; or by a key that it
//! holds. How keys are written: [`KeyName`]. Words are parted by spaces; a word may hold quoted text,
//! `marathon/"10 km"`. Lines that begin with `#` say nothing.

mod command;
pub mod golden;
mod key_name;
mod live;
mod map_script;
mod names;
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
pub use parse::{Line, parse, parse_lines};
pub use show::{show_map, show_range};
pub use words::Malformed;
