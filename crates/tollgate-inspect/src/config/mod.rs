//! Kernel configurations: what a kernel was built with, counted, by area, and held side by side.
//!
//! A configuration is read from its text, from that text compressed, or out of a kernel image that carries its
//! own ([`read()`], [`open`], [`running()`]). Its options are known by name alone; what is known of them, their
//! [`Area`], the names that they had before and which boundaries they affect, stands in one table, [`AREAS`].
//! [`compare()`] holds several configurations side by side under the names that the options have now.
//!
//! A configuration says what was built, not what is in force: parameters of the kernel's command line and
//! settings made later change much of it ([`Overridden`]).

mod areas;
mod compare;
mod compression;
mod embedded;
mod error;
mod image;
mod lz4;
mod read;
mod running;
mod text;
mod value;

pub use areas::{AREAS, Affects, Area, Entry, Identity, identity};
pub use compare::{Counts, Difference, Kind, Tally, compare, tally};
pub use compression::Compression;
pub use error::ConfigError;
pub use read::{Reading, Source, open, read};
pub use running::{Overridden, Running, Tried, overridden, running};
pub use text::{Configuration, Foreign, Repeated, parse};
pub use value::Value;
