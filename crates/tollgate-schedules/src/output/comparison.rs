use tollgate_output::table::{Look, Table, heading, paragraph};

use super::outcome::Outcome;
use super::text;
use crate::methods;

/// Instructions of the paper's kernel from the vector to `eret`, without the C function of the system call:
/// `except_vec3_generic`, `handle_sys` and `o32_return` in arch/mips/kernel/head.S and scall_o32.S with the macros of
/// include/asm-mips/stackframe.h, Linux 2.2.1 for PS2. Macro instructions count once, and delay slots that the assembler
/// fills do not count, so this is a lower bound.
const KERNEL_INSTRUCTIONS: usize = 102;

/// Shows the methods, one per line, and what the paper says about their times.
pub fn comparison(outcomes: &[Outcome], width: usize) -> String {
    let mut table = Table::new(&["method", "verdict", "alone", "entries", "preempted", "entries"])
        .with_words(&["verdict"]);
    let mut accesses = Vec::new();
    for outcome in outcomes {
        let name = outcome.subject.name();
        let method = methods().find(|(_, subject)| subject.name() == name).map_or(name, |(method, _)| method);
        let Some(cost) = outcome.subject.cost() else { continue };
        let none = || "not played".to_owned();
        let instructions = text::range(cost.preempted.iter().map(|work| work.instructions));
        // A subject that is not played is pseudocode. Its work is not counted in instructions, so it is listed apart.
        if instructions.is_none() {
            accesses.push(format!("{method} takes {} loads and stores", cost.alone.instructions));
        }
        let entries = instructions.is_some().then(|| text::share_of_entries(&cost));
        let cells = [
            method.to_owned(),
            text::verdict(outcome.checked.verdict).to_owned(),
            instructions.as_ref().map_or_else(|| "-".to_owned(), |_| cost.alone.instructions.to_string()),
            cost.alone.entries.to_string(),
            instructions.unwrap_or_else(none),
            entries.unwrap_or_default(),
        ];
        table.row(Look::Plain, &cells, &[]);
    }
    let mut text = heading("figures 12 and 13: the methods", width);
    text.push_str(&table.render(width));
    text.push('\n');
    let said = [
        format!(
            "alone: instructions in user mode until the lock is taken, without a rival. {}, and is not a MIPS program. preempted: \
             the same if another process takes the lock and gives it back before one of them, for each in turn.",
            accesses.join(", ")
        ),
        "entries: into the kernel, by a system call or a fault, once per acquisition or in that many of the preemptions. On the model \
         the kernel does its work in one step."
            .to_owned(),
        format!(
            "The paper's kernel executes at least {KERNEL_INSTRUCTIONS} instructions for a system call, without its C function \
             (Linux 2.2.1 for PS2: except_vec3_generic, handle_sys, o32_return)."
        ),
        "The paper shows times as bars without figures. It states: without a rival k1/magic is more than 7 × faster than the system \
         call and as fast as di/ei (figure 12); with producers and consumers at least 1.9 × (figure 13)."
            .to_owned(),
        "Times here: `tollgate run locks`, and `tollgate claims ps2-user-level-test-and-set-2000` to compare them with the paper."
            .to_owned(),
    ];
    for sentence in said {
        text.push_str(&paragraph(&sentence, width, ""));
    }
    text
}
