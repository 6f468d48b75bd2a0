//! Facts that change from moment to moment: the load of the machine during a run. Source: proc_loadavg(5), proc_stat(5),
//! Documentation/accounting/psi.rst.

use tollgate_model::Unknown;

use crate::calls;
use crate::machine::{Answer, Machine, found};
use crate::text::{amount, digits};

const STAT: &str = "/proc/stat";
const LOADAVG: &str = "/proc/loadavg";

pub(crate) fn uptime(machine: &Machine) -> Answer<f64> {
    let listed = first_of(machine, "/proc/uptime", "seconds");
    machine.or_call(listed, "sysinfo(2) uptime", || calls::sysinfo().map(|info| info.uptime as f64))
}

pub(crate) fn load(machine: &Machine) -> Answer<f64> {
    if let Ok(line) = machine.line(LOADAVG)
        && has_no_task(&line.value)
    {
        return Err(Unknown::Absent(format!(
            "{LOADAVG} counts no task, so its averages are not measurements"
        )));
    }
    let listed = first_of(machine, LOADAVG, "load averages");
    machine.or_call(listed, "sysinfo(2) loads", || calls::sysinfo().map(|info| info.load))
}

/// gVisor always writes `0.00 0.00 0.00 0/0 0` (pkg/sentry/fsimpl/proc/tasks_files.go), while Linux counts the reader. Returns
/// whether a line of load averages counts no task at all.
fn has_no_task(line: &str) -> bool {
    line.split_whitespace().nth(3).and_then(|tasks| tasks.split_once('/')).is_some_and(|(_, all)| all == "0")
}

fn first_of(machine: &Machine, path: &str, what: &str) -> Answer<f64> {
    machine.line(path)?.parse(what, |text| amount(text.split_whitespace().next()?))
}

/// Percent of the last ten seconds in which some task waited.
pub(crate) fn pressure(machine: &Machine, resource: &str) -> Answer<f64> {
    Ok(read(machine, resource)?.map(|some| some.percent))
}

/// Microseconds since boot in which some task waited.
pub(crate) fn stalled(machine: &Machine, resource: &str) -> Answer<i64> {
    Ok(read(machine, resource)?.map(|some| some.total))
}

fn read(machine: &Machine, resource: &str) -> Answer<Pressure> {
    machine.line(&format!("/proc/pressure/{resource}"))?.parse("pressure", Pressure::parse)
}

#[derive(Debug, PartialEq)]
struct Pressure {
    percent: f64,
    total: i64,
}

impl Pressure {
    /// Parses `some avg10=4.29 avg60=32.67 avg300=18.49 total=124063650`.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
        let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name));
        Some(Self { percent: amount(field("avg10=")?)?, total: digits(field("total=")?)? })
    }
}

/// A field of the line that begins with `key`; the first after it is 1. Linux has switched contexts before anything can read
/// this, so a kernel without any (gVisor) writes zeros for what it does not count.
pub(crate) fn stat(machine: &Machine, key: &str, field: usize) -> Answer<i64> {
    let text = machine.text(STAT)?;
    match stat_field(&text.value, key, field) {
        Some("0") if stat_field(&text.value, "ctxt", 1) == Some("0") => {
            Err(Unknown::Absent(format!("{STAT} {key}: this kernel does not count it (ctxt is 0 there too)")))
        }
        Some(value) => found(value.to_owned(), format!("{STAT} {key}"))?.parse("a whole number", digits),
        None => Err(Unknown::Absent(format!("{STAT} has no field {field} of {key:?}"))),
    }
}

fn stat_field<'a>(text: &'a str, key: &str, field: usize) -> Option<&'a str> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == key).then_some(words))?.nth(field.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_lines() {
        let text = "full avg10=1.00 total=1\nsome avg10=4.29 avg60=32.67 avg300=18.49 total=124063650\n";
        assert_eq!(Pressure::parse(text), Some(Pressure { percent: 4.29, total: 124_063_650 }));
        for text in ["", "some", "some avg10=inf total=1", "some avg10=1.0", "some avg10=-1 total=1"] {
            assert_eq!(Pressure::parse(text), None, "{text}");
        }
    }

    #[test]
    fn stat_fields() {
        let text = "cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 0 0 0 0 0 0 0 0\nctxt 77\n";
        assert_eq!(stat_field(text, "cpu", 8), Some("80"));
        assert_eq!(stat_field(text, "ctxt", 1), Some("77"));
        assert_eq!(stat_field(text, "ctxt", 2), None);
        assert_eq!(stat_field(text, "intr", 1), None);
    }

    takes_any! {
        text in "\\PC{0,100}|[a-z0-9=. \n]{0,200}", key in "[a-z]{0,5}", field in any::<usize>() =>
        Pressure::parse(&text), stat_field(&text, &key, field)
    }
}
