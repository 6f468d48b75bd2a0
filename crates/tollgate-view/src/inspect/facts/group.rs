//! Facts by subject.

use tollgate_model::Fact;

/// Facts of one subject, in reading order.
pub struct Group {
    /// Such as `processor`, or `files under /home`.
    pub subject: String,
    /// By name.
    pub facts: Vec<(String, Fact)>,
}

/// The subject of facts that change from moment to moment.
pub const NOW: &str = "this moment";
/// The registry's suffix of such facts.
pub const WHEN: &str = "now";
