//! The table of operations, and the instances of their cases.

use std::rc::Rc;

use tollgate_engine::users::{self, Kind as UserKind, Operation};

use super::{descriptors, memory, messages, tasks};
use crate::files::data_dir::DataDir;
use crate::prelude::*;

/// The operations, in the order of their numbers in the suite's list. Every bench process has the same table.
static TABLE: [Operation; 19] = [
    tasks::DOES_GETPPID,
    descriptors::DOES_OPEN,
    descriptors::DOES_STAT,
    descriptors::DOES_READ,
    descriptors::DOES_DUP,
    descriptors::DOES_PIPE,
    memory::DOES_FAULT,
    memory::DOES_MMAP,
    memory::DOES_BRK,
    tasks::DOES_FUTEX,
    tasks::DOES_SIGNAL,
    tasks::DOES_FORK,
    messages::DOES_EVENTFD,
    messages::DOES_UNIX,
    messages::DOES_POLL,
    tasks::DOES_YIELD,
    messages::DOES_FILE_LOCK,
    descriptors::DOES_WRITE,
    descriptors::DOES_CREATE,
];

/// The instance of a case of operation number `operation`.
pub fn instance(operation: usize, params: &Params, context: &mut Context) -> Result<Instance> {
    let kind = match word(params, "kind") {
        "threads" => UserKind::Threads,
        "processes" => UserKind::Processes,
        other => return Err(fail!("users of the kind {other} are unknown")),
    };
    let users = number(params, "users").max(1) as usize;
    let directory = directory(context);
    tasks::install_handler()?;
    let needs_files = descriptors::NEED_FILES.contains(&operation);
    let directory = match directory {
        Err(why) if needs_files => return Err(why),
        directory => directory.map_or(0, |directory| directory.descriptor() as u64),
    };
    let case = users::Case { users, operation, words: [directory, descriptors::variant(params), 0, 0] };
    users::instance(context, kind, &TABLE, case)
}

/// The directory of the files. It is opened before any user is forked, so that all have its descriptor.
fn directory(context: &mut Context) -> Result<Rc<DataDir>> {
    context.shared("scaling directory", |context| {
        let directory = DataDir::of(context)?;
        descriptors::make_shared_file(&directory)?;
        Ok(directory)
    })
}
