use core::fmt::{self, Formatter};

use crate::{Msr, SystemKind, Width};

use crate::walk::Rule;

/// Writes "DPL 3 >= CPL 3: ...".
fn compare(
    f: &mut Formatter<'_>,
    what: (&str, u8),
    holds: bool,
    sign: [&str; 2],
    with: (&str, u8),
) -> fmt::Result {
    let sign = if holds { sign[0] } else { sign[1] };
    write!(f, "{} {} {sign} {} {}", what.0, what.1, with.0, with.1)
}

pub(super) fn say(f: &mut Formatter<'_>, rule: &Rule, holds: bool) -> fmt::Result {
    let or = |yes: &'static str, no: &'static str| if holds { yes } else { no };
    let up = [">=", "<"];
    let down = ["<=", ">"];
    match *rule {
        Rule::Exists(name, mode, vendor) => write!(f, "{mode} {} {name} on {vendor}", or("has", "has no")),
        Rule::SyscallEnabled => f.write_str(or(
            "EFER.SCE is set: SYSCALL and SYSRET may be used",
            "EFER.SCE is clear: there is no SYSCALL or SYSRET",
        )),
        Rule::WithoutFred(name) => write!(f, "CR4.FRED {}: {name}", or("is clear", "is set and takes away")),
        Rule::AllowedByFred => f.write_str(or(
            "FRED allows it",
            "CR4.FRED is set: the level may not change, nor ring 0 leave 64-bit mode",
        )),
        Rule::Ring0(cpl) => {
            write!(f, "CPL {cpl}: {}", or("the kernel may use it", "only the kernel may use it"))
        }
        Rule::SysenterCs(value) => {
            let number = Msr::SysenterCs.number();
            write!(f, "MSR {number:x}, SYSENTER_CS, {value:x}: {}", or("not null", "null"))
        }
        Rule::GateKind { s, kind, width } => gate_kind(f, s, kind, width),
        Rule::WellFormed => f.write_str(or(
            "the type of the gate's upper half is 0",
            "the type of the gate's upper half is not 0",
        )),
        Rule::Open { dpl, cpl, rpl } => open(f, dpl, cpl, rpl, holds),
        Rule::GatePresent => write!(f, "the gate is {}", or("present", "not present")),
        Rule::NotNull(role) => write!(f, "the selector for {role} is {}", or("not null", "null")),
        Rule::IsCode => write!(f, "the descriptor is {}", or("code", "not code")),
        Rule::Is64Bit => f.write_str(or(
            "the code is 64-bit code: L is set and D clear",
            "the code is not 64-bit code, to which long mode's gates must lead: L is clear or D is set",
        )),
        Rule::NotLAndD => {
            f.write_str(or("L and D are not both set", "L and D are both set, which is reserved"))
        }
        Rule::NotOutward { dpl, cpl } => {
            compare(f, ("DPL", dpl), holds, down, ("CPL", cpl))?;
            f.write_str(or("", ": a gate cannot lead to a less privileged level"))
        }
        Rule::NotInward { rpl, cpl } => {
            compare(f, ("RPL", rpl), holds, up, ("CPL", cpl))?;
            f.write_str(match (holds, rpl == cpl) {
                (true, true) => ": a return to the same level",
                (true, false) => ": a return to an outer level",
                (false, _) => ": a return cannot lead to a more privileged level",
            })
        }
        Rule::CodeLevel { dpl, level, conforming: true } => {
            write!(f, "conforming code: ")?;
            compare(f, ("DPL", dpl), holds, down, ("ring", level))
        }
        Rule::CodeLevel { dpl, level, conforming: false } => {
            write!(f, "non-conforming code: ")?;
            compare(f, ("DPL", dpl), holds, ["=", "is not"], ("ring", level))
        }
        Rule::Requested { rpl, cpl } => compare(f, ("RPL", rpl), holds, down, ("CPL", cpl)),
        Rule::Present(role) => write!(f, "the segment for {role} is {}", or("present", "not present")),
        Rule::Writable => f.write_str(or("the segment can be written", "the segment is not writable data")),
        Rule::StackLevel { rpl, dpl, level } => {
            write!(f, "RPL {rpl} and DPL {dpl} of the stack {} ring {level}", or("are of", "are not both of"))
        }
        Rule::NullStack => f.write_str(or(
            "a null SS is allowed: 64-bit code, not in ring 3",
            "SS is null: only 64-bit code in rings 0 to 2 may have that, with its ring as the RPL",
        )),
        Rule::TaskLimit { last, limit } => {
            let verb = or("is within", "is beyond");
            write!(f, "offset {last:x} {verb} the limit {limit:x} of the TSS")
        }
        Rule::Room { bytes, pointer } => {
            let verb = or("fit", "do not fit");
            write!(f, "{bytes} bytes {verb} on the stack at {pointer} within its segment")
        }
        Rule::CanonicalStack(address) => {
            write!(f, "stack address {address} is {}", or("canonical", "not canonical"))
        }
        Rule::InSegment { offset, limit } => {
            let verb = or("is within", "is beyond");
            write!(f, "target {offset} {verb} the limit {limit:08x} of the code")
        }
        Rule::CanonicalTarget(address) => {
            write!(f, "target {address} is {}", or("canonical", "not canonical"))
        }
        Rule::CanonicalMsr(msr, value) => {
            let (number, name) = (msr.number(), msr.name());
            write!(f, "{value:016x} in MSR {number:x}, {name}, is {}", or("canonical", "not canonical"))
        }
        Rule::NotNested => f.write_str(or("NT is clear", "NT is set, and long mode has no nested tasks")),
        Rule::IsTask { kind, busy } => {
            write!(f, "type {kind:x}, {}: ", SystemKind::from_type(kind).name())?;
            let wanted = if busy { "a busy TSS" } else { "an available TSS" };
            write!(f, "{}{wanted}", or("", "not "))
        }
        Rule::InGdt => f.write_str(or("the selector points into the GDT", "a TSS cannot be in the LDT")),
    }
}

fn gate_kind(f: &mut Formatter<'_>, s: bool, kind: u8, width: Width) -> fmt::Result {
    if s {
        return f.write_str("the descriptor is a segment's, not a gate's");
    }
    let place = match width {
        Width::Legacy => "here",
        Width::Long => "here in long mode",
    };
    write!(f, "type {kind:x}, {}: none that can be entered {place}", SystemKind::from_type(kind).name())
}

fn open(f: &mut Formatter<'_>, dpl: u8, cpl: u8, rpl: Option<u8>, holds: bool) -> fmt::Result {
    let with = rpl.filter(|rpl| *rpl > cpl).map_or(("CPL", cpl), |rpl| ("RPL", rpl));
    compare(f, ("DPL", dpl), holds, [">=", "<"], with)?;
    write!(f, ": an instruction {} use the gate", if holds { "may" } else { "may not" })
}
