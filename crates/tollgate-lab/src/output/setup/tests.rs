use tollgate_x86::Vendor;

use super::*;
use crate::EngineChoice;
use crate::guest::Group;
use crate::setup::setup;

fn document(vendor: Option<Vendor>) -> Boot {
    let setup = setup(vendor).expect("a kernel");
    let results = crate::run(&shown_by(&setup), EngineChoice::Interpreter, vendor, &|| None);
    Boot::new(&setup, &results.expect("the interpreter"))
}

#[test]
fn every_write_has_its_reason() {
    for vendor in [Vendor::Intel, Vendor::Amd] {
        for write in document(Some(vendor)).writes {
            assert!(write.reason.is_some_and(|why| why.ends_with('.')), "{}", write.place);
            assert!(
                write.manual.is_some_and(|it| ["SDM", "APM", "Intel"].iter().any(|by| it.starts_with(by)))
            );
        }
    }
}

#[test]
fn what_goes_wrong_otherwise_is_the_outcome_of_an_experiment() {
    for vendor in [Vendor::Intel, Vendor::Amd] {
        let document = document(Some(vendor));
        let shown: Vec<&Otherwise> = document.writes.iter().flat_map(|write| &write.otherwise).collect();
        assert!(shown.iter().all(|it| it.as_expected), "{vendor}");
        for it in &shown {
            let experiment = Experiment::by_name(it.experiment).expect(it.experiment);
            // All but one are refused: the one with IOPL 3 shows its effect by being done.
            let is_refused = it.outcome.starts_with('#') && it.outcome.contains(" in ring ");
            assert_eq!(is_refused, experiment.group == Group::Wrong, "{}: {}", it.experiment, it.outcome);
        }
        let wrong = crate::guest::EXPERIMENTS.iter().filter(|it| it.group == Group::Wrong);
        // Those of SYSENTER show nothing if it always raises #UD.
        let is_shown = |name: &str| vendor == Vendor::Intel || !name.starts_with("wrong-sysenter-");
        for experiment in wrong.filter(|it| is_shown(it.name)) {
            assert!(shown.iter().any(|it| it.experiment == experiment.name), "{}", experiment.name);
        }
        let reads = document.writes.iter().filter(|write| !write.again && write.otherwise.is_empty()).count();
        assert!(2 * reads < document.writes.iter().filter(|write| !write.again).count(), "{reads}");
    }
}

#[test]
fn sysenter_is_intel_s() {
    for (vendor, is_shown) in [(Vendor::Intel, true), (Vendor::Amd, false)] {
        let document = document(Some(vendor));
        let writes: Vec<_> = document
            .writes
            .iter()
            .filter(|write| write.place.contains("SYSENTER_") && !write.again)
            .collect();
        assert_eq!(writes.len(), 3);
        for write in writes {
            assert_eq!(!write.otherwise.is_empty(), is_shown, "{}", write.place);
            let why = write.reason.as_deref().expect("a reason");
            assert_eq!(why.contains("#UD"), !is_shown, "{why}");
        }
    }
}

#[test]
fn segments_are_told_by_what_loads_them() {
    let document = document(None);
    let reason = |place: &str| {
        let write = document.writes.iter().find(|write| write.place == place).expect(place);
        write.reason.clone().expect("a reason")
    };
    assert_eq!(reason("GDT 08"), "It is CS of SYSCALL, CS of SYSENTER and CS of the handlers in the IDT.");
    assert_eq!(reason("GDT 30"), "It is SS of SYSEXIT to 64-bit code.");
}
