//! Symbols that a user names: their addresses in the running kernel and in its image, and their names in other releases.

use tollgate_model::Unknown;

use super::evidence::release_name;
use super::image;
use super::symbol::{IMAGE, IMAGE_SIZE, STEP, SYMBOLS, WHOLE, map};
use crate::machine::{Answer, Found, Machine, found};
use crate::text::kernel_symbol;

const SIMILAR: usize = 4;
/// A list with fewer symbols is incomplete: a kernel has some ten thousand.
const FEW: usize = 1000;

/// A symbol that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// The name that was asked for.
    pub name: String,
    /// Addresses in `/proc/kallsyms`: several if functions in several files have the name.
    pub now: Result<Found<Vec<Address>>, Unknown>,
    /// Addresses in the image's System.map, or in the image itself.
    pub linked: Result<Found<Vec<u64>>, Unknown>,
    /// This kernel's name for it, if it has no symbol of that name.
    pub renamed: Option<Renamed>,
    /// If the running kernel lacks the name, its symbols that contain it, the shortest first.
    pub similar: Vec<String>,
}

/// The current address of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Virtual address.
    pub at: u64,
    /// The module that it belongs to; `None` for the kernel itself.
    pub module: Option<String>,
}

/// The name of a symbol in another release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// The name in this kernel.
    pub name: String,
    /// The first release that has the newer of both names, such as `5.8`.
    pub since: &'static str,
    /// Whether this kernel has the newer one.
    pub is_newer: bool,
    /// Its addresses, zeros if they are hidden.
    pub at: Vec<u64>,
}

impl Named {
    /// Its address in the kernel's image, if it is there.
    pub fn address(&self) -> Option<u64> {
        let own = |address: &&Address| (IMAGE..IMAGE + IMAGE_SIZE).contains(&address.at);
        only(self.now.as_ref().ok()?.value.iter().filter(own)).map(|address| address.at)
    }

    /// Distance from the address to which it was linked, in bytes modulo 2^64.
    pub fn distance(&self) -> Option<u64> {
        let linked = only(self.linked.as_ref().ok()?.value.iter())?;
        Some(self.address()?.wrapping_sub(*linked))
    }
}

/// Returns whether a kernel can be moved by this distance. Symbols at another distance belong to two builds.
pub fn is_a_move(distance: u64) -> bool {
    distance.is_multiple_of(STEP)
}

fn only<T>(mut values: impl Iterator<Item = T>) -> Option<T> {
    values.next().filter(|_| values.next().is_none())
}

/// Looks for these symbols.
pub fn named(machine: &Machine, names: &[String]) -> Vec<Named> {
    let release = release_name(machine);
    let running = machine.start_of(SYMBOLS, WHOLE).map(|list| list.map(text));
    let linked = match map(machine, release.as_deref(), WHOLE) {
        Ok(list) => Ok(list),
        // A missing System.map is reported rather than a missing image.
        Err(why) => image::symbols(machine, release.as_deref()).map_err(|_| why),
    };
    let looked_up = |name: &String| {
        let list = running.as_ref().map(|list| list.value.as_str()).unwrap_or_default();
        let is_there = lines(list).any(|(_, other, _)| other == name);
        Named {
            name: name.clone(),
            now: running.as_ref().map_err(Clone::clone).and_then(|_| now(machine, list, name)),
            linked: linked.as_ref().map_err(Clone::clone).and_then(|list| {
                let at: Vec<u64> =
                    lines(&list.value).filter(|(_, other, _)| other == name).map(|(at, ..)| at).collect();
                let none = || Unknown::Absent(format!("{} has no symbol of this name", list.source));
                if at.is_empty() { Err(none()) } else { found(at, list.source.clone()) }
            }),
            renamed: if is_there { None } else { renamed(list, name) },
            similar: if is_there { Vec::new() } else { similar(list, name) },
        }
    };
    names.iter().map(looked_up).collect()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

fn lines(list: &str) -> impl Iterator<Item = (u64, &str, Option<&str>)> {
    list.lines().filter_map(|line| {
        let (own, module) = match line.split_once('\t') {
            Some((own, module)) => (own, Some(module.trim_matches(['[', ']']))),
            None => (line, None),
        };
        let (address, _, name) = kernel_symbol(own)?;
        Some((address, name, module))
    })
}

fn now(machine: &Machine, list: &str, name: &str) -> Answer<Vec<Address>> {
    let of = |(at, _, module): (u64, &str, Option<&str>)| Address { at, module: module.map(str::to_owned) };
    let all: Vec<Address> = lines(list).filter(|(_, other, _)| *other == name).map(of).collect();
    if all.is_empty() {
        let why = match lines(list).count() {
            count @ ..FEW => {
                format!("is not among the {count} symbols of {SYMBOLS}: a capture keeps only the first")
            }
            count => format!(
                "is not among the {count} symbols of {SYMBOLS}: inlined functions are not listed, data only with CONFIG_KALLSYMS_ALL"
            ),
        };
        return Err(Unknown::Absent(why));
    }
    if all.iter().all(|address| address.at == 0) {
        return Err(Unknown::Refused(why_hidden(machine)));
    }
    found(all, SYMBOLS)
}

/// Why `/proc/kallsyms` shows zeros: `kallsyms_show_value` in kernel/ksyms_common.c.
fn why_hidden(machine: &Machine) -> String {
    let setting =
        |name: &str| machine.number(&format!("/proc/sys/kernel/{name}")).ok().map(|found| found.value);
    let because = match (setting("kptr_restrict"), setting("perf_event_paranoid")) {
        (Some(0), Some(level)) => format!(
            "kernel.kptr_restrict is 0, which shows them to readers with CAP_SYSLOG, and to all if kernel.perf_event_paranoid is at most 1; it is {level}"
        ),
        (Some(1), _) => {
            "kernel.kptr_restrict is 1, which shows them only to readers with CAP_SYSLOG".to_owned()
        }
        (Some(level), _) => format!("kernel.kptr_restrict is {level}, which hides them from all"),
        (None, _) => "kernel.kptr_restrict and CAP_SYSLOG decide who sees them".to_owned(),
    };
    format!("{SYMBOLS} shows zeros: {because}")
}

/// Names in the x86 kernel: the older, the newer, and the first release that has the newer one.
const RENAMED: [(&str, &str, &str); 19] = [
    // arch/x86/entry/entry_64.S, commits b2502b418e63 and 2cd23553b488.
    ("system_call", "entry_SYSCALL_64", "4.2"),
    ("ia32_sysenter_target", "entry_SYSENTER_compat", "4.2"),
    ("ia32_syscall", "entry_INT80_compat", "4.2"),
    // kernel/fork.c, commits 3033f14ab78c and cad6967ac108.
    ("do_fork", "_do_fork", "4.2"),
    ("_do_fork", "kernel_clone", "5.10"),
    ("do_fork", "kernel_clone", "5.10"),
    // arch/x86/kernel/head_64.S, commit 65ade2f872b4.
    ("init_level4_pgt", "init_top_pgt", "4.13"),
    // arch/x86/include/asm/idtentry.h, with DEFINE_IDTENTRY.
    ("page_fault", "asm_exc_page_fault", "5.8"),
    ("do_page_fault", "exc_page_fault", "5.8"),
    ("invalid_op", "asm_exc_invalid_op", "5.8"),
    ("do_invalid_op", "exc_invalid_op", "5.8"),
    ("do_general_protection", "exc_general_protection", "5.8"),
    ("do_divide_error", "exc_divide_error", "5.8"),
    ("do_double_fault", "exc_double_fault", "5.8"),
    ("do_debug", "exc_debug", "5.8"),
    ("do_int3", "exc_int3", "5.8"),
    ("do_nmi", "exc_nmi", "5.8"),
    ("do_IRQ", "common_interrupt", "5.8"),
    // arch/x86/entry/common.c, commit be5341eb0d43.
    ("entry_INT80_compat", "asm_int80_emulation", "6.7"),
];

/// Since then, entries of system calls take arguments from the saved registers and have other names (commit d5a00528b58c).
const WRAPPED: (&str, &str, &str) = ("sys_", "__x64_sys_", "4.17");

fn renamed(list: &str, name: &str) -> Option<Renamed> {
    let (older, newer, wrapped_since) = WRAPPED;
    let table = RENAMED.iter().flat_map(|&(older, newer, since)| {
        let other = move |is_newer: bool| if is_newer { newer } else { older };
        [(older, true), (newer, false)]
            .into_iter()
            .filter(move |(asked, _)| *asked == name)
            .map(move |(_, is_newer)| (other(is_newer).to_owned(), since, is_newer))
    });
    let calls = [
        name.strip_prefix(older).map(|call| (format!("{newer}{call}"), wrapped_since, true)),
        name.strip_prefix(newer).map(|call| (format!("{older}{call}"), wrapped_since, false)),
    ];
    table.chain(calls.into_iter().flatten()).find_map(|(name, since, is_newer)| {
        let at: Vec<u64> = lines(list).filter(|(_, other, _)| *other == name).map(|(at, ..)| at).collect();
        (!at.is_empty()).then_some(Renamed { name, since, is_newer, at })
    })
}

fn similar(list: &str, name: &str) -> Vec<String> {
    let mut names: Vec<&str> =
        lines(list).map(|(_, other, _)| other).filter(|other| other.contains(name)).collect();
    names.sort_unstable_by_key(|name| (name.len(), *name));
    names.dedup();
    names.into_iter().take(SIMILAR).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "ffffffff81e00000 T entry_SYSCALL_64\nffffffff81e3c4b0 t exc_page_fault\nffffffff81001000 t cleanup\n\
                        ffffffff81002000 t cleanup\nffffffff81100000 T __x64_sys_getpid\nffffffffc0a01000 t handle_exit\t[kvm_intel]\n";

    #[test]
    fn a_name_of_another_release_is_this_kernel_s() {
        let other = |name| renamed(LIST, name).map(|it| (it.name, it.since, it.is_newer));
        assert_eq!(other("do_page_fault"), Some(("exc_page_fault".to_owned(), "5.8", true)));
        assert_eq!(other("sys_getpid"), Some(("__x64_sys_getpid".to_owned(), "4.17", true)));
        assert_eq!(other("do_fork"), None);
        let old = "ffffffff81000000 T do_fork\nffffffff81000100 T sys_getpid\n";
        assert_eq!(
            renamed(old, "kernel_clone").map(|it| (it.name, it.is_newer)),
            Some(("do_fork".to_owned(), false))
        );
        assert_eq!(renamed(old, "__x64_sys_getpid").map(|it| it.name), Some("sys_getpid".to_owned()));
    }

    #[test]
    fn modules_and_doubles_are_told_apart() {
        let machine = Machine::captured("/nonexistent");
        let all = now(&machine, LIST, "cleanup").unwrap().value;
        assert_eq!(
            all.iter().map(|address| address.at).collect::<Vec<_>>(),
            [0xffff_ffff_8100_1000, 0xffff_ffff_8100_2000]
        );
        let of_module = now(&machine, LIST, "handle_exit").unwrap().value;
        assert_eq!(of_module[0].module.as_deref(), Some("kvm_intel"));
        assert!(now(&machine, LIST, "nothing").unwrap_err().to_string().contains("the 6 symbols"));
        assert_eq!(similar(LIST, "page_fault"), ["exc_page_fault"]);
    }

    takes_any! { list in "\\PC{0,80}|[0-9a-fT _textd\t\\[\\]\n]{0,120}", name in "[a-z_]{0,8}" => (renamed(&list, &name), similar(&list, &name)) }
}
