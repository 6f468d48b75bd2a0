//! All schedules of programs.

mod mips;
mod own;
mod printed;
mod spin_figure_11;
mod spin_lamport;
