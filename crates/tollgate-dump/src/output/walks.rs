use serde::Serialize;
use tollgate_x86::walk::{Mode, Outcome, walk};
use tollgate_x86::{Gate, GateKind, Msr, Star, Vendor, WideGate, Width};

use super::entry::{Entry, Way};
use super::item::Item;
use super::walk_state::WalkState;
use crate::Joined;

const MOST: usize = 8;

/// Options for showing a state beyond its tables.
#[derive(Debug, Clone)]
pub struct Options {
    /// The requested walks; empty for those that the state has.
    pub walk: Vec<Entry>,
    /// The ring in which they begin.
    pub cpl: u8,
    /// The processor's vendor; `None` for both.
    pub vendor: Option<Vendor>,
    /// Whether to describe bits in sentences.
    pub explain: bool,
}

/// A walk through the tables, step by step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Walk"))]
pub struct Walked {
    /// The instruction or event.
    pub entry: String,
    /// `intel` or `amd`; null if both do the same.
    pub vendor: Option<&'static str>,
    /// The mode that it begins in.
    pub from: String,
    /// The ring that it begins in.
    pub cpl: u8,
    /// The steps, one sentence each.
    pub steps: Vec<String>,
    /// Whether the crossing was made.
    pub crosses: bool,
    /// How it ended, in a sentence.
    pub outcome: String,
}

/// Makes the requested walks, or those that the state has, through tables of this width.
pub(crate) fn walks(state: &Joined, items: &[Item], width: Width, options: &Options) -> Vec<Walked> {
    let chosen = match options.walk.as_slice() {
        [] => known_to(state, items, width, options.cpl),
        asked => asked.to_vec(),
    };
    let mut made = Vec::new();
    for entry in chosen {
        let Entry::Walk { way, narrow } = entry else { continue };
        let of = |vendor| make(state, width, way, narrow, vendor, options.cpl);
        match options.vendor {
            Some(vendor) => made.push(of(vendor)),
            None => {
                let [intel, amd] = [of(Vendor::Intel), of(Vendor::Amd)];
                match both(&intel, &amd) {
                    Some(both) => made.push(both),
                    None => made.extend([intel, amd]),
                }
            }
        }
    }
    made
}

fn both(intel: &Walked, amd: &Walked) -> Option<Walked> {
    let named = |text: &String, name: &str| text.replace(&format!(" on {name}"), " on Intel and AMD");
    let of = |walked: &Walked, name: &str| -> Vec<String> {
        walked.steps.iter().chain([&walked.outcome]).map(|step| named(step, name)).collect()
    };
    let mut steps = of(intel, "Intel");
    if steps != of(amd, "AMD") {
        return None;
    }
    let outcome = steps.pop()?;
    Some(Walked {
        entry: intel.entry.clone(),
        vendor: None,
        from: intel.from.clone(),
        cpl: intel.cpl,
        crosses: intel.crosses,
        steps,
        outcome,
    })
}

fn make(state: &Joined, width: Width, way: Way, narrow: bool, vendor: Vendor, cpl: u8) -> Walked {
    let cpl = if way.is_return() { 0 } else { cpl };
    let mode = match (width, narrow && !way.is_return()) {
        (Width::Legacy, _) => Mode::Protected,
        (Width::Long, true) => Mode::Compatibility,
        (Width::Long, false) => Mode::Long64,
    };
    let mut machine = WalkState::new(state, width, mode, vendor, cpl);
    let outcome = walk(&mut machine, way.crossing(width == Width::Long, narrow));
    Walked {
        entry: if way.is_return() && narrow { format!("{way}:32") } else { way.to_string() },
        vendor: Some(match vendor {
            Vendor::Intel => "intel",
            Vendor::Amd => "amd",
        }),
        from: mode.to_string(),
        cpl,
        steps: machine.into_steps(),
        crosses: outcome == Outcome::Done,
        outcome: outcome.to_string(),
    }
}

fn known_to(state: &Joined, items: &[Item], width: Width, cpl: u8) -> Vec<Entry> {
    let known = |msr: Msr| state.msrs.contains_key(&msr.number());
    let mut entries = Vec::new();
    let mut add = |is_known: bool, way, narrow| {
        if is_known && entries.len() < MOST {
            entries.push(Entry::Walk { way, narrow });
        }
    };
    for item in items {
        let (vector, gate) = match item {
            Item::Gate32(super::item::Position::Vector(vector), gate) => (*vector, gate),
            Item::Gate64(super::item::Position::Vector(vector), WideGate { low, .. }) => (*vector, low),
            _ => continue,
        };
        add(is_open(gate, width, cpl), Way::Int(vector), false);
    }
    let long = width == Width::Long;
    add(known(Msr::SysenterCs) || known(Msr::SysenterEip), Way::Sysenter, long);
    add(long && (known(Msr::Star) || known(Msr::Lstar)), Way::Syscall, false);
    // Outside long mode SYSCALL jumps to the low half of STAR; if that is 0, the system does not use it.
    let star = state.msrs.get(&Msr::Star.number()).map(|value| Star(value.value));
    let has_entry = star.is_some_and(|star| star.legacy_eip() != 0);
    add(if long { known(Msr::Cstar) } else { has_entry }, Way::Syscall, long);
    entries
}

fn is_open(gate: &Gate, width: Width, cpl: u8) -> bool {
    let by_int =
        matches!(gate.gate_kind(width), Some((GateKind::Interrupt | GateKind::Trap | GateKind::Task, _)));
    by_int && gate.p && gate.dpl != 0 && gate.dpl >= cpl
}
