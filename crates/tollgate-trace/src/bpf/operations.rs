//! Operations of calls on files, in the form that the programs read.

use super::programs::files::aim;
use crate::calls;
use crate::direct;
use crate::operations::{Names, Operation};

/// Paths are read when calls return. These calls change the path, or the directory where it starts, so it would be wrong.
const CHANGED_BY_THEN: [&str; 4] = ["chdir", "execve", "execveat", "fchdir"];

/// Returns the operation on a file by the call with this name; `None` if the call is not about a file or its path is unknown.
pub(super) fn operation_of(call: &'static str) -> Option<&'static str> {
    Operation::by_call(call).filter(|_| !CHANGED_BY_THEN.contains(&call)).map(|operation| operation.name)
}

pub(super) fn aims() -> impl Iterator<Item = (calls::Numbers, u8)> {
    Operation::all().filter(|(call, _)| !CHANGED_BY_THEN.contains(call)).filter_map(|(call, operation)| {
        let names = match operation.names {
            Names::Opened { at: true } => aim::OPENS | aim::PATH_AT,
            Names::Opened { at: false } => aim::OPENS | aim::PATH,
            Names::Descriptor => aim::DESCRIPTOR,
            Names::Path => aim::PATH,
            Names::PathAt => aim::PATH_AT,
        };
        let moves = if operation.moves { aim::MOVES } else { 0 };
        let vector =
            if direct::shape(call).is_some_and(|(_, is_vector)| is_vector) { aim::VECTOR } else { 0 };
        Some((calls::number(call)?, names | moves | vector))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_all_but_those_whose_path_has_changed() {
        let here = Operation::all().filter(|(call, _)| calls::number(call).is_some());
        assert_eq!(aims().count(), here.count() - CHANGED_BY_THEN.len());
        assert_eq!(operation_of("pread64"), Some("read"));
        assert_eq!(operation_of("chdir"), None);
        assert_eq!(operation_of("getpid"), None);
    }
}
