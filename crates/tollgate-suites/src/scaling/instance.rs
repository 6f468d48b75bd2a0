use tollgate_engine::parallel::{self, Operation, TaskKind, Words};

use super::files;
use crate::prelude::*;

pub fn instance(operation: &'static Operation, params: &Params, context: &mut Context) -> Result<Instance> {
    // Processes are forked once for all cases, and inherit what is open then: the directory must be open.
    let _ = files::opened(context);
    of_tasks(operation, [0; 4], params, context)
}

pub fn instance_on_files(
    operation: &'static Operation,
    params: &Params,
    context: &mut Context,
) -> Result<Instance> {
    let directory = files::opened(context)?;
    of_tasks(operation, files::words(&directory, params)?, params, context)
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
