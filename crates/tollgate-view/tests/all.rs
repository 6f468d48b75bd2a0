//! All that is shown of documents.

mod bill;
mod columns;
mod commands;
mod counted;
mod everywhere;
mod exports;
mod limits;
mod machines;
mod more;
mod registry;
mod rules;
mod session;
mod session_elsewhere;
mod sessions;
mod versus;
mod versus_counted;
