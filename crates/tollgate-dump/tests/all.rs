//! Dumps of the tools that print them.

mod corpus;
mod dumps;
mod inputs;
