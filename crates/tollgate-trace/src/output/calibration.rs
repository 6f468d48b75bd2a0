//! The overhead of tracing on this machine, by backend.

use crate::Calibration;
use serde::Serialize;
use tollgate_model::Unit;
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};

/// The output of `--format json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Calibration"))]
pub struct CalibrationRecord<'a> {
    /// The time of an untraced call, getppid(2).
    untraced_ns: f64,
    /// The time that tracing with BPF adds to the call.
    bpf: Added<'a>,
    /// The time that BPF adds to a call of a process that is not traced, while it traces others.
    bpf_others: Added<'a>,
    /// The time that tracing with ptrace(2) adds to the call.
    ptrace: Added<'a>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Added<'a> {
    /// The added time; null if it is not known.
    added_ns: Option<f64>,
    /// Why it is not known, or null.
    why: Option<&'a str>,
}

impl<'a> CalibrationRecord<'a> {
    /// Builds the record of a calibration.
    pub fn of(calibration: &'a Calibration) -> Self {
        let added = |overhead: &'a Result<f64, String>| Added {
            added_ns: overhead.as_ref().ok().copied().filter(|ns| ns.is_finite()),
            why: overhead.as_ref().err().map(String::as_str),
        };
        Self {
            untraced_ns: calibration.untraced,
            bpf: added(&calibration.bpf),
            bpf_others: added(&calibration.bpf_others),
            ptrace: added(&calibration.ptrace),
        }
    }
}

/// Renders the calibration as a table.
pub fn text(calibration: &Calibration, width: usize) -> String {
    let ns = |ns: f64| figures::estimate(ns, Unit::Nanoseconds);
    let mut table = Table::new(&["one call, getppid(2)", "takes", "times"]);
    let untraced = calibration.untraced;
    table.row(Look::Plain, &["not traced".to_owned(), ns(untraced)], &[]);
    let rows = [
        ("traced with BPF", &calibration.bpf),
        ("not traced, while BPF traces others", &calibration.bpf_others),
        ("traced with ptrace(2)", &calibration.ptrace),
    ];
    for (name, added) in rows {
        match added {
            Ok(added) => {
                let cells = [
                    name.to_owned(),
                    figures::difference(*added, Unit::Nanoseconds),
                    figures::multiple((untraced + added) / untraced.max(f64::MIN_POSITIVE)),
                ];
                table.row(Look::Plain, &cells, &[]);
            }
            Err(why) => {
                table.row(Look::Faint, &[name.to_owned(), "unknown".to_owned()], std::slice::from_ref(why))
            }
        }
    }
    let legend =
        "Tracing adds the same time to longer calls; a command that makes few calls is hardly affected.";
    format!("{}{}", table.render(width), paragraph(legend, width, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_overhead_has_its_reason() {
        let calibration = Calibration {
            bpf: Err("bpf(2) is not permitted".to_owned()),
            ptrace: Ok(9_800.0),
            bpf_others: Err("bpf(2) is not permitted".to_owned()),
            untraced: 187.0,
        };
        let shown = anstream::adapter::strip_str(&text(&calibration, 100)).to_string();
        assert!(shown.contains("+9.80 µs") && shown.contains("×53.4"), "{shown}");
        assert!(shown.contains("unknown") && shown.contains("bpf(2) is not permitted"), "{shown}");
        let record = serde_json::to_value(CalibrationRecord::of(&calibration)).expect("JSON");
        assert_eq!(record["bpf"]["added_ns"], serde_json::Value::Null);
        assert_eq!(record["ptrace"]["added_ns"], 9_800.0);
    }
}
