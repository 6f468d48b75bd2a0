//! The instances of the cases of an operation.

use tollgate_engine::parallel::{self, Operation, TaskKind, Words};

use super::files;
use crate::prelude::*;

/// The instance of a case whose tasks make this operation.
pub fn instance(operation: &'static Operation, params: &Params, context: &mut Context) -> Result<Instance> {
    // Processes are forked once for all cases, and have what was open then: also for this one the directory is opened first.
    let _ = files::opened(context);
    of_tasks(operation, [0; 4], params, context)
}

/// The same of an operation on files.
pub fn instance_on_files(
    operation: &'static Operation,
    params: &Params,
    context: &mut Context,
) -> Result<Instance> {
    let directory = files::opened(context)?;
    of_tasks(operation, files::words(&directory, params), params, context)
}

fn of_tasks(
    operation: &'static Operation,
    words: Words,
    params: &Params,
    context: &mut Context,
) -> Result<Instance> {
    let kind = match word(params, "kind") {
        "threads" => TaskKind::Threads,
        "processes" => TaskKind::Processes,
        other => return Err(fail!("tasks of the kind {other} are unknown")),
    };
    let tasks = number(params, "tasks").max(1) as usize;
    parallel::instance(context, kind, parallel::Case { tasks, operation, words })
}
