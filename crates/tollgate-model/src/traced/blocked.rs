use serde::{Deserialize, Serialize};

/// Sleeps in one call, at one place of the kernel, that one thread or interrupt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blocked {
    /// The call that the thread slept in; None outside of calls, as for a page fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The kernel function that it slept in, as `wchan` of proc(5): the first that does not belong to the scheduler. None if
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The kind of its waker.
    pub by: WokenBy,
    /// The name of the thread that woke it (comm of proc(5)), or the function that served the interrupt; empty if unknown.
    pub name: String,
    /// The number of that thread in the kernel's first namespace; 0 for an interrupt.
    pub thread: u32,
    /// Sleeps that ended.
    pub count: u64,
    /// Their time, from leaving the processor until being woken.
    pub total_ns: u64,
}

/// The cause of the end of a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WokenBy {
    /// A thread, usually in a system call.
    Thread,
    /// A timer's interrupt.
    Timer,
    /// A device's interrupt, or work that the kernel deferred from one (softirq).
    Device,
    /// Another interrupt, such as one that another processor sent.
    Interrupt,
    /// The kernel does not report whether it was a thread or an interrupt during that thread.
    Unknown,
}
