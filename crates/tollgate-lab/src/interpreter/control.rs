//! Control registers and model-specific registers: the values that may be written to them, and the effects. SDM 3A, "Control
//! registers", "Initializing IA-32e mode"; SDM 4, "Architectural MSRs".

use tollgate_x86::{Cr0, Cr4, Efer, Msr, Vendor, Width};

use super::effect::Effect;
use super::state::{Done, Processor};
use super::tlb::{PHYSICAL_BITS, is_canonical};

const CR0: u64 = 0xe005_003f;
/// The bits that can be set in CR4: those that CPUID offers.
pub(super) const CR4: Cr4 = Cr4::TSD
    .with(Cr4::DE)
    .with(Cr4::PSE)
    .with(Cr4::PAE)
    .with(Cr4::MCE)
    .with(Cr4::PGE)
    .with(Cr4::UMIP)
    .with(Cr4::FSGSBASE)
    .with(Cr4::PCIDE)
    .with(Cr4::SMEP)
    .with(Cr4::SMAP);
const EFER: Efer = Efer::SCE.with(Efer::LME).with(Efer::NXE);
/// IBRS, STIBP and SSBD.
const SPEC_CTRL_BITS: u64 = 0b111;

const TSC: u32 = 0x10;
/// IA32_SPEC_CTRL, and IA32_PRED_CMD, which is write-only.
const SPEC_CTRL: u32 = 0x48;
const PRED_CMD: u32 = 0x49;

impl Processor {
    pub(super) fn control(&self, number: u8) -> Done<u64> {
        self.in_ring_0()?;
        match number {
            0 => Ok(self.cr0.0),
            2 => Ok(self.cr2),
            3 => Ok(self.cr3),
            4 => Ok(self.cr4.0),
            8 => Ok(self.cr8),
            _ => Err(self.invalid_opcode()),
        }
    }

    pub(super) fn set_control(&mut self, number: u8, value: u64) -> Done {
        self.in_ring_0()?;
        match number {
            0 => self.set_cr0(Cr0(value))?,
            2 => self.cr2 = value,
            3 => self.set_cr3(value)?,
            4 => self.set_cr4(Cr4(value))?,
            8 => {
                self.demand(value < 16)?;
                self.cr8 = value;
            }
            _ => return Err(self.invalid_opcode()),
        }
        self.note(|| Effect::Control { number, value });
        Ok(())
    }

    pub(super) fn set_cr0(&mut self, value: Cr0) -> Done {
        let (paging, protected) = (value.has(Cr0::PG), value.has(Cr0::PE));
        self.demand(value.0 >> 32 == 0 && (protected || !paging))?;
        self.demand(value.has(Cr0::CD) || !value.has(Cr0::NW))?;
        if !protected {
            return Err(self.stop("real-address mode, which is not modelled"));
        }
        let was_paging = self.cr0.has(Cr0::PG);
        if paging && !was_paging {
            if !self.efer().has(Efer::LME) {
                return Err(self.stop("paging outside long mode, which is not modelled"));
            }
            let code = self.hidden(tollgate_x86::walk::SegmentRegister::Cs).descriptor;
            self.demand(self.cr4.has(Cr4::PAE) && !code.l)?;
            self.set_msr(Msr::Efer, self.efer().with(Efer::LMA).0);
        } else if was_paging && !paging {
            self.demand(!self.is_64_bit() && !self.cr4.has(Cr4::PCIDE))?;
            self.set_msr(Msr::Efer, self.efer().without(Efer::LMA).0);
        }
        self.cr0 = Cr0(value.0 & CR0).with(Cr0::ET);
        self.translations.flush();
        Ok(())
    }

    /// Bit 63 asks to keep the translations of the process-context identifier; there are none.
    fn set_cr3(&mut self, value: u64) -> Done {
        let value = if self.cr4.has(Cr4::PCIDE) { value & !(1 << 63) } else { value };
        self.demand(self.width() == Width::Legacy || value >> PHYSICAL_BITS == 0)?;
        self.cr3 = value;
        self.translations.flush();
        Ok(())
    }

    fn set_cr4(&mut self, value: Cr4) -> Done {
        let long = self.width() == Width::Long;
        let starts_pcid = value.has(Cr4::PCIDE) && !self.cr4.has(Cr4::PCIDE);
        self.demand(value.0 & !CR4.0 == 0 && (!long || value.has(Cr4::PAE)))?;
        self.demand(!starts_pcid || long && self.cr3 & 0xfff == 0)?;
        self.cr4 = value;
        self.translations.flush();
        Ok(())
    }

    /// RDMSR: #GP if there is no such register.
    pub(super) fn read_msr(&self, number: u32) -> Done<u64> {
        self.in_ring_0()?;
        match (number, Msr::by_number(number)) {
            (_, Some(msr)) => Ok(self.msr(msr)),
            (TSC, _) => Ok(self.now()),
            (SPEC_CTRL, _) => Ok(self.spec_ctrl),
            _ => Err(self.protection()),
        }
    }

    /// WRMSR: #GP if there is no such register, or the value is not allowed.
    pub(super) fn write_msr(&mut self, number: u32, value: u64) -> Done {
        self.in_ring_0()?;
        let Some(msr) = Msr::by_number(number) else {
            return match number {
                SPEC_CTRL if value & !SPEC_CTRL_BITS == 0 => {
                    self.spec_ctrl = value;
                    Ok(())
                }
                PRED_CMD if value <= 1 => Ok(()),
                _ => Err(self.protection()),
            };
        };
        let allowed = match msr {
            Msr::Efer => self.allows_efer(Efer(value)),
            Msr::Lstar | Msr::Cstar | Msr::FsBase | Msr::GsBase | Msr::KernelGsBase => is_canonical(value),
            Msr::SysenterEsp | Msr::SysenterEip => self.vendor == Vendor::Amd || is_canonical(value),
            Msr::Fmask | Msr::TscAux => value >> 32 == 0,
            Msr::SysenterCs | Msr::Star => true,
        };
        self.demand(allowed)?;
        let value = match msr {
            Msr::Efer => value & EFER.0 | self.efer().0 & Efer::LMA.0,
            // AMD's use 32 bits (APM 2, "SYSENTER and SYSEXIT MSRs").
            Msr::SysenterEsp | Msr::SysenterEip if self.vendor == Vendor::Amd => value & 0xffff_ffff,
            _ => value,
        };
        self.set_msr(msr, value);
        self.note(|| Effect::Msr { msr, value });
        if msr == Msr::Efer {
            self.translations.flush();
        }
        Ok(())
    }

    /// LME may not change while paging is on; a written LMA is ignored.
    fn allows_efer(&self, value: Efer) -> bool {
        let changes = value.has(Efer::LME) != self.efer().has(Efer::LME);
        value.0 & !EFER.with(Efer::LMA).0 == 0 && !(changes && self.cr0.has(Cr0::PG))
    }
}
