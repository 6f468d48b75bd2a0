//! Whole walks, their faults, and what no machine can break.

mod calls;
mod fast;
mod interrupts;
mod makers;
mod model;
mod properties;
mod returns;
mod rounds;
mod windows;
