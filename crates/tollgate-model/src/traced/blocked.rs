//! What threads slept for, and what ended their sleep.

use serde::{Deserialize, Serialize};

/// Sleeps in one call, at one place of the kernel, that one thread or interrupt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blocked {
    /// The call that the thread slept in; None outside of calls, as for a page fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The kernel's function that it slept in, as `wchan` of proc(5): the first that is none of the scheduler's. None where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// What woke it.
    pub by: WokenBy,
    /// The name of the thread that woke it (comm of proc(5)), or the function that served the interrupt; empty where it is unknown.
    pub name: String,
    /// The number of that thread in the kernel's first namespace; 0 of an interrupt.
    pub thread: u32,
    /// Sleeps that ended.
    pub count: u64,
    /// Their time, from leaving the processor until being woken.
    pub total_ns: u64,
}

/// What ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WokenBy {
    /// A thread, in a system call of its own as a rule.
    Thread,
    /// A timer's interrupt.
    Timer,
    /// A device's interrupt, or what the kernel had put off from one (softirq).
    Device,
    /// Another interrupt, as one that another processor sent.
    Interrupt,
    /// The kernel does not tell whether it was a thread or an interrupt in the middle of that thread.
    Unknown,
}
