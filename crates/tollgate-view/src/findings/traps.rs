//! The cost of an emulated instruction, as the published experiment asked (Walter Zhou, "Simulate Invalid Opcode 的性能代价分析").

use tollgate_model::{Case, Fact, FactValue, ParamValue, Unit};
use tollgate_output::figures;

use super::finding::{Finding, bounded_times, case};
use crate::summary::{Figures, Summary};

pub(super) fn findings(summary: &Summary) -> Vec<Finding> {
    [trap_against_instruction(summary), counts(summary), rings(summary)].into_iter().flatten().collect()
}

/// The opcodes of the experiment, as parameters. QEMU's translator executes the published one; then the other replaces it.
const OPCODES: [Option<&str>; 2] = [None, Some("ud1")];

fn trap(by: Option<&str>, opcode: Option<&str>) -> Case {
    let pairs = [("by", by), ("opcode", opcode)];
    let params: Vec<(&str, ParamValue)> =
        pairs.into_iter().filter_map(|(key, value)| Some((key, value?.into()))).collect();
    case("traps/invalid-opcode", &params)
}

fn trap_against_instruction(summary: &Summary) -> Option<Finding> {
    let (trap, instruction) = (trap(None, None), Case::plain("traps/imul"));
    bounded_times(summary, trap, instruction, 0.0, |how| {
        format!("An invalid opcode that a signal handler emulates is {how} than a multiplication.")
    })
}

fn counted<'a, 'b>(summary: &'b Summary<'a>, case: &Case) -> Option<&'b Figures<'a>> {
    summary.figures(case).filter(|figures| figures.measured.unit == Unit::Instructions)
}

fn counts(summary: &Summary) -> Option<Finding> {
    OPCODES.into_iter().find_map(|opcode| {
        let cases = [trap(None, opcode), trap(Some("module-ring3"), opcode), Case::plain("traps/imul")];
        let [Some(signal), Some(module), Some(instruction)] =
            cases.each_ref().map(|case| Some(counted(summary, case)?.estimate.median))
        else {
            return None;
        };
        let sentence = format!(
            "An invalid opcode takes {} where a signal handler emulates it, {} where a kernel module does, and a multiplication \
             {}, each with its operands loaded.",
            figures::estimate(signal, Unit::Instructions),
            whole(module),
            whole(instruction)
        );
        Some(Finding { sentence, from: cases.into() })
    })
}

/// Why a trap taken in ring 0 is hardly faster, which the source leaves open: from the counts of both paths, or from their times
/// if the processor executes the guest.
fn rings(summary: &Summary) -> Option<Finding> {
    OPCODES.into_iter().find_map(|opcode| {
        let cases = ["module-ring0", "module-ring3"].map(|by| trap(Some(by), opcode));
        let [Some(kernel), Some(program)] =
            cases.each_ref().map(|case| Some(counted(summary, case)?.estimate.median))
        else {
            return of_times(summary, cases);
        };
        let has_pti = summary.run.facts.get("mitigation.pti").and_then(Fact::value) == Some(&FactValue::Flag(true));
        let tables = if has_pti { " and of page tables" } else { "" };
        let sentence = if kernel < program {
            format!(
                "Emulated by a kernel module, a trap taken in ring 0 still executes {} of the {} instructions of one taken in \
                 ring 3 ({}): both save and restore all registers, call the notifiers, and read and emulate the opcode. Ring 0 avoids the change of stack{tables} and the checks around user memory and the return to it, {} instructions; delivery through the gate and IRET, one step of the processor each, remain.",
                whole(kernel),
                whole(program),
                figures::percent(kernel / program),
                whole(program - kernel)
            )
        } else {
            format!(
                "Emulated by a kernel module, a trap taken in ring 0 executes {} instructions, no fewer than one taken in ring 3 \
                 with {}.",
                whole(kernel),
                whole(program)
            )
        };
        Some(Finding { sentence, from: cases.into() })
    })
}

fn of_times(summary: &Summary, [kernel, program]: [Case; 2]) -> Option<Finding> {
    bounded_times(summary, kernel, program, 0.0, |how| {
        format!(
            "Emulated by a kernel module, a trap taken in ring 0 is {how} than one taken in ring 3: the \
             processor delivers both through the same gate, and both end with IRET."
        )
    })
}

fn whole(count: f64) -> String {
    figures::thousands(&format!("{count:.0}"))
}
