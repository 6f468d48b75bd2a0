//! The instances of the cases of an operation.

use tollgate_engine::users::{self, Kind as UserKind, Operation, Words};

use super::files;
use crate::prelude::*;

/// The instance of a case whose users make this operation.
pub fn instance(operation: &'static Operation, params: &Params, context: &mut Context) -> Result<Instance> {
    // Users are forked once for all cases, and have what was open then: also for this one the directory is opened first.
    let _ = files::opened(context);
    of_users(operation, [0; 4], params, context)
}

/// The same of an operation on files.
pub fn instance_on_files(
    operation: &'static Operation,
    params: &Params,
    context: &mut Context,
) -> Result<Instance> {
    let directory = files::opened(context)?;
    of_users(operation, files::words(&directory, params), params, context)
}

fn of_users(
    operation: &'static Operation,
    words: Words,
    params: &Params,
    context: &mut Context,
) -> Result<Instance> {
    let kind = match word(params, "kind") {
        "threads" => UserKind::Threads,
        "processes" => UserKind::Processes,
        other => return Err(fail!("users of the kind {other} are unknown")),
    };
    let users = number(params, "users").max(1) as usize;
    users::instance(context, kind, users::Case { users, operation, words })
}
