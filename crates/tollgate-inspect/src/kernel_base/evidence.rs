//! The evidence of the kernel's address, each piece with its source or the reason why it cannot be read.

use tollgate_kconfig::parameters;
use tollgate_model::Unknown;

use super::options::Options;
use super::symbol::{self, IMAGE, IMAGE_SIZE, START as START_OF_SYMBOLS, SYMBOLS, Symbol};
use crate::kcore::{self, Core};
use crate::machine::{Answer, Found, Machine, found};
use crate::{kernel::command_line_text, text::kernel_symbol, uname::release_text};
use crate::{running_config, sandbox};

const MEMORY: &str = "/proc/iomem";
const CORE: &str = "/proc/kcore";
const BOOT: &str = "/sys/kernel/boot_params/data";
/// Headers and notes; the largest note is the kernel's record of a task, some 10 KiB.
const START_OF_CORE: u64 = 64 << 10;

/// A piece of evidence with its source, or the reason why there is none.
pub type Known<T> = Result<Found<T>, Unknown>;

/// The start of the kernel's code in virtual memory, from its symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbols {
    /// At this address.
    At(u64),
    /// Shown as zeros: `kernel.kptr_restrict`, or without CAP_SYSLOG.
    Hidden,
}

/// The kernel's address in physical memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    /// From the beginning of its code to its end.
    At {
        /// The first byte.
        start: u64,
        /// The last byte.
        end: u64,
    },
    /// Shown as zeros: without CAP_SYS_ADMIN.
    Hidden,
}

/// The notes of the boot stub: Documentation/arch/x86/boot.rst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    /// `KASLR_FLAG` in `loadflags`: the stub chose a random address.
    pub moved: bool,
    /// Whether there is a header (`HdrS`). Without one, the kernel was entered directly, and no stub ran.
    pub has_header: bool,
}

/// The start of the direct map of all memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectMap {
    /// Its virtual address.
    pub base: u64,
    /// Whether a kernel that does not move it uses this address.
    pub is_usual: bool,
}

/// All evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// A sandbox kernel that emulates Linux and has none of this evidence.
    pub sandbox: Option<String>,
    /// Release, such as `6.1.0-13-amd64`.
    pub release: Known<String>,
    /// One symbol's address in `/proc/kallsyms` and in the image's System.map.
    pub symbol: Known<Symbol>,
    /// From `/proc/kallsyms`.
    pub symbols: Known<Symbols>,
    /// The kernel's offset, from the note in `/proc/kcore`.
    pub core_offset: Known<u64>,
    /// From the memory segments in `/proc/kcore`.
    pub direct_map: Known<DirectMap>,
    /// From `/proc/iomem`.
    pub physical: Known<Physical>,
    /// From the boot parameters.
    pub boot: Known<Boot>,
    /// The last of `nokaslr` and `kaslr`; `None` if the command line has neither.
    pub parameter: Known<Option<bool>>,
    /// How it was built.
    pub options: Known<Options>,
    /// The address to which the image was linked, from its System.map.
    pub linked: Known<u64>,
}

/// Reads all evidence.
pub fn kernel_base(machine: &Machine) -> Evidence {
    let release = release_text(machine);
    let name = release_name(machine);
    let core = core(machine);
    let map = symbol::map(machine, name.as_deref(), START_OF_SYMBOLS);
    Evidence {
        sandbox: sandbox::name(machine).ok().map(|found| found.value),
        symbol: symbol::symbol(machine, &map),
        symbols: symbols(machine),
        core_offset: core.clone().and_then(|core| {
            let missing = || Unknown::Absent(format!("{CORE} has no KERNELOFFSET in its notes"));
            let offset = core.value.offset.ok_or_else(missing)?;
            found(offset, format!("{CORE} VMCOREINFO KERNELOFFSET"))
        }),
        direct_map: core.and_then(|core| {
            let missing = || Unknown::Absent(format!("{CORE} shows no memory"));
            let base = core.value.direct_map.ok_or_else(missing)?;
            Ok(core.map(|_| DirectMap { base, is_usual: USUAL_DIRECT_MAPS.contains(&base) }))
        }),
        physical: physical(machine),
        boot: boot(machine),
        parameter: command_line_text(machine).map(|line| line.map(|text| kaslr_parameter(&text))),
        options: options(machine, name.as_deref()),
        linked: linked(&map),
        release,
    }
}

/// With four levels of page tables, with four before Linux 4.20, and with five: Documentation/arch/x86/x86_64/mm.rst.
const USUAL_DIRECT_MAPS: [u64; 3] = [0xffff_8880_0000_0000, 0xffff_8800_0000_0000, 0xff11_0000_0000_0000];

pub(super) fn release_name(machine: &Machine) -> Option<String> {
    release_text(machine).ok().map(|found| found.value).filter(|name| is_file_name(name))
}

fn is_file_name(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+-~".contains(&byte))
}

fn symbols(machine: &Machine) -> Answer<Symbols> {
    let bytes = machine.start_of(SYMBOLS, START_OF_SYMBOLS)?;
    match start_of_code(&String::from_utf8_lossy(&bytes.value)) {
        Some(0) => found(Symbols::Hidden, SYMBOLS.to_owned()),
        Some(address) if (IMAGE..IMAGE + IMAGE_SIZE).contains(&address) => {
            found(Symbols::At(address), format!("{SYMBOLS} _text"))
        }
        Some(address) => {
            Err(Unknown::Unreadable(format!("{SYMBOLS}: {address:#x} is not where a kernel's code can be")))
        }
        None => Err(Unknown::Absent(format!("{SYMBOLS} does not begin with the kernel's first symbols"))),
    }
}

/// The value of `_text`, which `startup_64` shares; without either, of `_stext`, which is in the same 2 MiB.
fn start_of_code(symbols: &str) -> Option<u64> {
    let value = |name: &str| {
        let mut found = symbols.lines().filter_map(kernel_symbol);
        found.find(|(_, kind, symbol)| *symbol == name && kind.eq_ignore_ascii_case("t")).map(|found| found.0)
    };
    value("_text").or_else(|| value("startup_64")).or_else(|| Some(value("_stext")? & !0x1f_ffff))
}

fn linked(map: &Answer<String>) -> Answer<u64> {
    let map = map.as_ref().map_err(Clone::clone)?;
    let missing = || Unknown::Absent(format!("{} does not have _text", map.source));
    let address = start_of_code(&map.value).filter(|at| (IMAGE..IMAGE + IMAGE_SIZE).contains(at));
    found(address.ok_or_else(missing)?, format!("{} _text", map.source))
}

fn physical(machine: &Machine) -> Answer<Physical> {
    let text = machine.text(MEMORY)?;
    let pieces: Vec<(u64, u64)> = text.value.lines().filter_map(kernel_piece).collect();
    let start = text.value.lines().find(|line| line.ends_with(": Kernel code")).and_then(kernel_piece);
    let source = format!("{MEMORY} Kernel code");
    match start {
        None => Err(Unknown::Absent(format!("{MEMORY} has no \"Kernel code\""))),
        Some((0, 0)) => found(Physical::Hidden, source),
        Some((start, end)) => {
            let near = |at: u64| at >= start && at - start < IMAGE_SIZE;
            let end = pieces.iter().map(|piece| piece.1).filter(|&end| near(end)).max().unwrap_or(end);
            found(Physical::At { start, end }, source)
        }
    }
}

/// The range in `  01000000-02206447 : Kernel code`.
fn kernel_piece(line: &str) -> Option<(u64, u64)> {
    let (range, name) = line.split_once(" : ")?;
    let (start, end) = range.trim().split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    name.starts_with("Kernel ").then_some((number(start)?, number(end)?)).filter(|(start, end)| start <= end)
}

fn boot(machine: &Machine) -> Answer<Boot> {
    /// Offsets in `struct boot_params`: arch/x86/include/uapi/asm/bootparam.h.
    const MAGIC: usize = 0x202;
    const LOADFLAGS: usize = 0x211;
    const KASLR_FLAG: u8 = 1 << 1;
    let bytes = machine.start_of(BOOT, 4096)?;
    let flags = bytes.value.get(LOADFLAGS).copied();
    let flags =
        flags.ok_or_else(|| Unknown::Unreadable(format!("{BOOT}: shorter than {LOADFLAGS:#x} bytes")))?;
    let has_header = bytes.value.get(MAGIC..).is_some_and(|rest| rest.starts_with(b"HdrS"));
    let value = Boot { moved: flags & KASLR_FLAG != 0, has_header };
    Ok(Found { value, source: format!("{BOOT} loadflags") })
}

/// `cmdline_find_option_bool` of the boot stub looks for whole words.
fn kaslr_parameter(line: &str) -> Option<bool> {
    let words = parameters(line).filter_map(|word| match word {
        ("nokaslr", None) => Some(false),
        ("kaslr", None) => Some(true),
        _ => None,
    });
    // `nokaslr` wins; `kaslr` alone matters only to old kernels.
    words.min()
}

fn options(machine: &Machine, release: Option<&str>) -> Answer<Options> {
    let mut paths = vec!["/proc/config.gz".to_owned()];
    for (before, after) in
        [("/boot/config-", ""), ("/usr/lib/modules/", "/config"), ("/lib/modules/", "/config")]
    {
        paths.extend(release.map(|release| format!("{before}{release}{after}")));
    }
    let mut why = Unknown::Absent(format!("none of {} exists", paths.join(", ")));
    for path in paths {
        match running_config::at(machine, &path) {
            Ok(reading) => return found(Options::of(&reading.configuration), path),
            Err(Unknown::Absent(_)) => {}
            Err(other) => why = other,
        }
    }
    Err(why)
}

fn core(machine: &Machine) -> Answer<Core> {
    let bytes = machine.start_of(CORE, START_OF_CORE)?;
    match kcore::parse(&bytes.value) {
        Some(core) => Ok(bytes.map(|_| core)),
        None => Err(Unknown::Unreadable(format!("{CORE}: it is not a 64-bit core file"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_symbols() {
        let old = "0000000000000000 A irq_stack_union\n0000000000004000 D gdt_page\nffffffff9e000000 T startup_64\n";
        assert_eq!(start_of_code(old), Some(0xffff_ffff_9e00_0000));
        let new = "ffffffff81000000 T srso_alias_untrain_ret\nffffffff81000000 T _stext\nffffffff81000000 T _text\n";
        assert_eq!(start_of_code(new), Some(0xffff_ffff_8100_0000));
        assert_eq!(start_of_code("ffffffff81001000 T _stext\n"), Some(0xffff_ffff_8100_0000));
        assert_eq!(start_of_code("0000000000000000 T _text\n"), Some(0));
        assert_eq!(start_of_code("ffffffffffffffff B The real System.map is in the -dbg package\n"), None);
        assert_eq!(start_of_code("ffffffffc0400000 t _text\t[a_module]\n"), None);
    }

    #[test]
    fn pieces_of_memory() {
        assert_eq!(kernel_piece("  01000000-02206447 : Kernel code"), Some((0x100_0000, 0x220_6447)));
        assert_eq!(kernel_piece("  00000000-00000000 : Kernel code"), Some((0, 0)));
        for line in ["2-1 : Kernel code", "1-2 : System RAM", "x-2 : Kernel bss", ""] {
            assert_eq!(kernel_piece(line), None, "{line}");
        }
    }

    #[test]
    fn words_of_the_command_line() {
        assert_eq!(kaslr_parameter("quiet nokaslr"), Some(false));
        assert_eq!(kaslr_parameter("kaslr"), Some(true));
        assert_eq!(kaslr_parameter("kaslr nokaslr"), Some(false));
        assert_eq!(kaslr_parameter("nokaslrx nokaslr=1 -- nokaslr"), None);
    }

    takes_any! {
        text in "\\PC{0,120}|[0-9a-f:_tT Kernel code-]{0,120}" =>
        start_of_code(&text), kernel_piece(&text), kaslr_parameter(&text)
    }
}
