use serde::{Deserialize, Serialize};

use crate::bounded;

/// The traced processes, and the reason for the end of the trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attached {
    /// The numbers of the initial processes, as the tracer saw them.
    #[serde(deserialize_with = "bounded::entries")]
    pub processes: Vec<u32>,
    /// The control group that they were found in. None if they were given by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// The reason for the end of the trace; absent in a part of it that was shown while it went on.
    pub until: Option<Until>,
}

/// The reason for the end of the trace of processes that ran before. They go on, except in the first case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// All of them ended.
    Exited,
    /// The requested time ended.
    Time,
    /// A signal asked the tracer to end, as by Ctrl-C.
    Signal,
}
