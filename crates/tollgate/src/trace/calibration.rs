//! What following costs here, by each way of doing it.

use serde::Serialize;
use tollgate_model::Unit;
use tollgate_trace::Calibration;

use crate::args::Format;
use crate::failure::Failure;
use crate::table::{Look, Table, paragraph};
use crate::{figures, out};

/// What `--format json` prints.
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    untraced_ns: f64,
    bpf: Added<'a>,
    bpf_others: Added<'a>,
    ptrace: Added<'a>,
}

#[derive(Debug, Serialize)]
struct Added<'a> {
    added_ns: Option<f64>,
    why: Option<&'a str>,
}

impl<'a> Record<'a> {
    /// The record of a calibration.
    pub fn of(calibration: &'a Calibration) -> Self {
        let added = |told: &'a Result<f64, String>| Added {
            added_ns: told.as_ref().ok().copied().filter(|ns| ns.is_finite()),
            why: told.as_ref().err().map(String::as_str),
        };
        Self {
            untraced_ns: calibration.untraced,
            bpf: added(&calibration.bpf),
            bpf_others: added(&calibration.bpf_others),
            ptrace: added(&calibration.ptrace),
        }
    }
}

/// Prints a calibration on standard output.
///
/// # Errors
/// When standard output is closed or full.
pub fn print(calibration: &Calibration, format: Format) -> Result<(), Failure> {
    match format {
        Format::Table => out::print(&text(calibration, out::width())),
        Format::Json => out::print_json_line(&Record::of(calibration)),
    }
}

/// The table.
pub fn text(calibration: &Calibration, width: usize) -> String {
    let ns = |ns: f64| figures::estimate(ns, Unit::Nanoseconds);
    let mut table = Table::new(&["one call, getppid(2)", "takes", "times"]);
    let untraced = calibration.untraced;
    table.row(Look::Plain, &["followed by nobody".to_owned(), ns(untraced)], &[]);
    let rows = [
        ("followed by BPF", &calibration.bpf),
        ("not followed, while BPF follows others", &calibration.bpf_others),
        ("followed by ptrace(2)", &calibration.ptrace),
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
    let legend = "A real call takes longer by itself, and the same longer when it is followed; a command that makes few calls \
        does not notice.";
    format!("{}{}", table.render(width), paragraph(legend, width, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_told_has_its_reason() {
        let calibration = Calibration {
            bpf: Err("bpf(2) is not permitted".to_owned()),
            ptrace: Ok(9_800.0),
            bpf_others: Err("bpf(2) is not permitted".to_owned()),
            untraced: 187.0,
        };
        let told = anstream::adapter::strip_str(&text(&calibration, 100)).to_string();
        assert!(told.contains("+9.80 µs") && told.contains("×53.4"), "{told}");
        assert!(told.contains("unknown") && told.contains("bpf(2) is not permitted"), "{told}");
        let record = serde_json::to_value(Record::of(&calibration)).expect("JSON");
        assert_eq!(record["bpf"]["added_ns"], serde_json::Value::Null);
        assert_eq!(record["ptrace"]["added_ns"], 9_800.0);
    }
}
