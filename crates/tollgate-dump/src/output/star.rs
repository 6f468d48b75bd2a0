//! Compares STAR with the GDT. SYSCALL and SYSRET do not read descriptors, so a wrong table shows only when an interrupt
//! returns to the program (SDM 3A, "Fast system calls in 64-bit mode"; APM 2, "SYSCALL and SYSRET").

use tollgate_x86::walk::{Crossing, Fault, Machine as _, Mode, Outcome, Piece, Register, Size, Sketch, walk};
use tollgate_x86::{Descriptor, DescriptorKind, Msr, Rflags, Selector, Star, Vendor, Width};

use super::text;
use crate::Joined;

struct Use {
    name: &'static str,
    selector: Selector,
    is_code: bool,
    ring: u8,
}

impl Use {
    fn wanted(&self) -> String {
        let kind = if self.is_code { "64-bit code" } else { "writable data" };
        format!("{kind} of ring {}", self.ring)
    }

    fn fits(&self, descriptor: &Descriptor) -> bool {
        let is_kind = match descriptor.kind() {
            DescriptorKind::Code { .. } => self.is_code && descriptor.l && !descriptor.d,
            DescriptorKind::Data { writable, .. } => !self.is_code && writable,
            DescriptorKind::System(_) => false,
        };
        is_kind && descriptor.p && descriptor.dpl == self.ring
    }
}

fn uses(star: Star) -> [Use; 4] {
    let of = |name, selector, is_code, ring| Use { name, selector, is_code, ring };
    [
        of("SYSCALL's CS", star.syscall_cs(), true, 0),
        of("SYSCALL's SS", star.syscall_ss(), false, 0),
        of("SYSRET's SS", star.sysret_ss(), false, 3),
        of("SYSRET's CS", star.sysret64_cs(), true, 3),
    ]
}

/// Compares STAR with the GDT if both are known; returns sentences, and whether they agree.
pub(crate) fn compared(state: &Joined, width: Width) -> Option<(Vec<String>, bool)> {
    let star = Star(state.msrs.get(&Msr::Star.number())?.value);
    if width != Width::Long || star.syscall().is_null() || star.sysret().is_null() {
        return None;
    }
    let table = Gdt::of(state);
    let uses = uses(star);
    let found: Vec<(&Use, Descriptor)> =
        uses.iter().filter_map(|it| Some((it, table.descriptor(it.selector)?))).collect();
    let on_amd = on_amd(star, &table);
    let wrong: Vec<&(&Use, Descriptor)> = found.iter().filter(|(it, found)| !it.fits(found)).collect();
    if wrong.is_empty() {
        let all = |it: &Use| format!("{} {} {}", it.name, it.selector, it.wanted());
        let all: Vec<String> = uses.iter().map(all).collect();
        let fits = format!("The GDT fits STAR: {}.", all.join(", "));
        let is_fit = on_amd.is_none();
        return (found.len() == uses.len()).then(|| ([fits].into_iter().chain(on_amd).collect(), is_fit));
    }
    let mut said: Vec<String> = wrong.iter().map(|(it, found)| mismatch(it, found)).collect();
    if let [_, _, data, code] = &uses
        && let (Some(at_data), Some(at_code)) =
            (table.descriptor(data.selector), table.descriptor(code.selector))
    {
        if data.fits(&at_code) && code.fits(&at_data) {
            said.push(
                "The two are swapped in the GDT: SYSRET takes data at bits 63 to 48 of STAR plus 8, and 64-bit code at \
                 plus 16, in this order."
                    .to_owned(),
            );
        }
        let fault = fault(&[(code.selector, at_code), (data.selector, at_data)]).map(|fault| {
            format!(
                "SYSRET reads no descriptor, and the program runs on. The first interrupt that returns to it does: its \
                 IRETQ to {}, with SS {}, ends in {fault}.",
                code.selector, data.selector
            )
        });
        said.extend(fault.or(on_amd));
    }
    Some((said, false))
}

/// Says why AMD's processors fault if STAR has a program privilege level other than 3.
fn on_amd(star: Star, table: &Gdt) -> Option<String> {
    let (code, data) = (star.sysret64_cs(), star.sysret_ss_of(Vendor::Amd));
    if star.sysret().rpl() == 3 {
        return None;
    }
    let program = [(code, table.descriptor(code)?), (data, table.descriptor(data)?)];
    let fault = fault(&program)?;
    Some(format!(
        "AMD's SYSRET leaves the privilege level of SS as bits 49 and 48 of STAR have it, which have to \
         be 3: the first IRETQ to {code}, with SS {data}, ends in {fault}."
    ))
}

fn mismatch(it: &Use, found: &Descriptor) -> String {
    let ring = match found.kind() {
        DescriptorKind::System(_) => String::new(),
        _ => format!(", ring {}", found.dpl),
    };
    format!(
        "{} is {}, whose descriptor is {}{ring}: it has to be {}.",
        it.name,
        it.selector,
        text::segment(found, Width::Long),
        it.wanted()
    )
}

/// Returns the fault of an IRETQ to these selectors, CS and SS. Processors of both vendors do the same.
fn fault(program: &[(Selector, Descriptor); 2]) -> Option<Fault> {
    const STACK: u64 = 0x1000;
    let [(cs, _), (ss, _)] = program;
    let frame = [0, u64::from(cs.0), Rflags::FIXED.0, STACK, u64::from(ss.0)];
    let mut bytes: Vec<u8> = frame.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut pieces = [Piece { address: STACK, bytes: &mut bytes }];
    let mut kernel = Sketch::new(Vendor::Intel, Width::Long, |_| {});
    kernel.set_program(0, Mode::Long64);
    kernel.set_register(Register::Rflags, Some(Rflags::FIXED.0));
    kernel.set_register(Register::Rsp, Some(STACK));
    kernel.descriptors = program;
    kernel.pieces = &mut pieces;
    match walk(&mut kernel, Crossing::InterruptReturn { size: Size::Quad }) {
        Outcome::Fault(fault) => Some(fault),
        _ => None,
    }
}

/// The GDT of a state: the known one, or bytes without an address that begin with a null descriptor.
struct Gdt<'a> {
    state: &'a Joined,
    loose: &'a [u8],
}

impl<'a> Gdt<'a> {
    fn of(state: &'a Joined) -> Self {
        let is_segment = |entry: &[u8; 8]| {
            let descriptor = Descriptor::decode(*entry);
            descriptor.p && descriptor.s
        };
        let is_table = |entries: &[[u8; 8]]| matches!(entries, [null, first, second, ..] if *null == [0; 8] && is_segment(first) && is_segment(second));
        // Bytes from elsewhere do not continue a table.
        let tables = state.loose.iter().filter_map(|group| {
            let (entries, _) = group.value.as_chunks::<8>();
            (0..entries.len()).map(|at| &entries[at..]).find(|entries| is_table(entries))
        });
        let loose = tables.map(|entries| entries.as_flattened()).next().unwrap_or_default();
        Self { state, loose }
    }

    fn descriptor(&self, selector: Selector) -> Option<Descriptor> {
        if let Some(known) = self.state.descriptor(selector, Width::Long) {
            return Some(known.value);
        }
        let entry = self.loose.get(usize::from(selector.offset())..)?.first_chunk()?;
        let has_table = self.state.gdtr.base.is_some() || !self.state.printed_descriptors.is_empty();
        (!has_table).then(|| Descriptor::decode(*entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{join, read};

    /// A small kernel's table and STAR: null, kernel code and data, then `user`.
    fn said(user: [u64; 2], star: u64) -> Option<(String, bool)> {
        let rows = [0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff, user[0], user[1]];
        let rows: String = rows.iter().map(|row| format!(".quad {row:#018x}\n")).collect();
        told(&format!("{rows}\n{}", msr(star)))
    }

    fn msr(star: u64) -> String {
        format!("msr[c0000081] = {:08x}`{:08x}\n", star >> 32, star as u32)
    }

    fn told(text: &str) -> Option<(String, bool)> {
        let state = join(&read(text.as_bytes(), None), None).states.remove(0);
        compared(&state, Width::Long).map(|(said, fits)| (said.join(" "), fits))
    }

    const DATA: u64 = 0x00cf_f300_0000_ffff;
    const CODE: u64 = 0x00af_fb00_0000_ffff;
    const STAR: u64 = 0x0013_0008_0000_0000;

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(said([DATA, CODE], 0x0063_0008_0000_0000), None, "selectors beyond the table");
        assert_eq!(said([DATA, CODE], 0), None);
    }

    #[test]
    fn a_table_does_not_go_on_in_unrelated_bytes() {
        let rows = |rows: &[u64]| rows.iter().map(|row| format!(".quad {row:#018x}\n")).collect::<String>();
        let kernel = rows(&[0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff]);
        assert!(told(&format!("{kernel}{}{}", rows(&[CODE, DATA]), msr(STAR))).is_some());
        assert_eq!(told(&format!("{kernel}{}{}", msr(STAR), rows(&[CODE, DATA]))), None);
        let table = rows(&[0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff, DATA, CODE]);
        let (said, fits) = told(&format!("{}{}{table}", rows(&[7, 9]), msr(STAR))).unwrap();
        assert!(fits, "the table is the second group: {said}");
    }

    #[test]
    fn a_processor_of_amd_does_not_force_the_level_of_ss() {
        let (said, fits) = self::said([DATA, CODE], 0x0010_0008_0000_0000).unwrap();
        assert!(!fits);
        for part in ["AMD", "SS 0018", "IRETQ to 0023", "ends in #GP(0018)"] {
            assert!(said.contains(part), "{part} in {said}");
        }
        let (said, fits) = self::said([DATA, CODE], STAR).unwrap();
        assert!(fits && !said.contains("AMD"), "{said}");
    }

    #[test]
    fn the_fault_is_that_of_the_lab_s_experiment() {
        let program =
            [(Selector(0x2b), Descriptor::flat_data(3)), (Selector(0x23), Descriptor::flat_code(3, true))];
        let fault = fault(&program).unwrap();
        assert_eq!((fault.exception.0, fault.code, fault.level), (13, Some(0x28), Some(0)));
    }
}
