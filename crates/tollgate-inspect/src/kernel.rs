use tollgate_kconfig::parameter;
use tollgate_model::Unknown;

use crate::machine::{Answer, Machine, found};
use crate::text::{kernel_bool, marked};
use crate::{sandbox, uname::version_text};

const COMMAND_LINE: &str = "/proc/cmdline";
const PREEMPT: &str = "/sys/kernel/debug/sched/preempt";

/// Reads the command line, which may be empty, without the arguments for init after ` -- `, which may be private.
pub(crate) fn command_line_text(machine: &Machine) -> Answer<String> {
    Ok(machine
        .text(COMMAND_LINE)?
        .map(|text| text.split(" -- ").next().unwrap_or_default().trim_end().to_owned()))
}

/// The version of a kernel that was built with `PREEMPT_DYNAMIC` says so (init/Makefile).
pub(crate) fn preempt_dynamic(machine: &Machine) -> Answer<bool> {
    Ok(linux_version(machine)?.map(|text| has_word(&text, "PREEMPT_DYNAMIC")))
}

/// The scheduler's own setting if debugfs is readable; else as far as the version and the command line decide.
pub(crate) fn preemption(machine: &Machine) -> Answer<String> {
    let model = machine.line(PREEMPT).and_then(|line| {
        line.parse("a line of models with one in brackets", |text| marked(text, '(', ')').map(str::to_owned))
    });
    let Err(why) = model else { return model };
    let version = linux_version(machine)?;
    let built = |model: &str| found(model.to_owned(), version.source.clone());
    if has_word(&version.value, "PREEMPT_RT") {
        built("rt")
    } else if has_word(&version.value, "PREEMPT_DYNAMIC") {
        preemption_parameter(machine).ok_or(why)
    } else if has_word(&version.value, "PREEMPT") {
        built("full or lazy")
    } else {
        built("none or voluntary")
    }
}

/// `preempt=` on the command line, which a `PREEMPT_DYNAMIC` kernel follows (`sched_dynamic_mode`).
fn preemption_parameter(machine: &Machine) -> Option<crate::machine::Found<String>> {
    let line = command_line_text(machine).ok()?;
    let model = parameter(&line.value, "preempt")?;
    let known = ["none", "voluntary", "full", "lazy"].contains(&model);
    known.then(|| found(model.to_owned(), format!("{COMMAND_LINE} preempt=")).ok())?
}

/// The version of a kernel that is Linux. A sandbox kernel has a fixed text.
fn linux_version(machine: &Machine) -> Answer<String> {
    match sandbox::name(machine) {
        Ok(sandbox) => Err(Unknown::Absent(format!("{} is not Linux", sandbox.value))),
        Err(_) => version_text(machine),
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|given| given == word)
}

/// The command line decides (since Linux 6.7, Documentation/admin-guide/kernel-parameters.txt). Without the parameter, only the
/// build is visible: `abi.vsyscall32` exists if the 32-bit vDSO was built in (arch/x86/entry/vdso/vdso32-setup.c), which a
/// configuration may still have disabled by default.
pub(crate) fn ia32(machine: &Machine) -> Answer<&'static str> {
    const BUILT: &str = "/proc/sys/abi/vsyscall32";
    if let Ok(line) = command_line_text(machine)
        && let Some(value) = parameter(&line.value, "ia32_emulation")
    {
        let value = found(value.to_owned(), format!("{COMMAND_LINE} ia32_emulation="));
        return value?
            .parse("yes or no", |text| Some(if kernel_bool(text)? { "enabled" } else { "disabled" }));
    }
    Ok(machine.there(BUILT)?.map(|()| "built in"))
}

pub(crate) fn mitigation_parameters(machine: &Machine) -> Answer<Vec<String>> {
    /// Documentation/admin-guide/kernel-parameters.txt, `mitigations=` and the parameters that it implies.
    const NAMES: &str = "mitigations pti nopti kpti nospectre_v1 nospectre_v2 spectre_v2 spectre_v2_user spectre_bhi \
        spec_store_bypass_disable nospec_store_bypass_disable retbleed spec_rstack_overflow l1tf \
        l1d_flush mds tsx_async_abort tsx mmio_stale_data reg_file_data_sampling gather_data_sampling \
        srbds indirect_target_selection tsa vmscape attack_vector kvm.nx_huge_pages nosmt spec_ctrl";
    let shown = |(name, value): (&str, Option<&str>)| match value {
        Some(value) => format!("{name}={value}"),
        None => name.to_owned(),
    };
    let is_known = |name: &str| NAMES.split(' ').any(|known| known == name);
    Ok(command_line_text(machine)?.map(|text| {
        tollgate_kconfig::parameters(&text).filter(|(name, _)| is_known(name)).map(shown).collect()
    }))
}

/// The value of a parameter; absent if the command line leaves it to the configuration.
pub(crate) fn parameter_of(machine: &Machine, name: &str) -> Answer<String> {
    command_line_text(machine).and_then(|line| match parameter(&line.value, name) {
        Some("") => found("given".to_owned(), format!("{COMMAND_LINE} {name}")),
        Some(value) => found(value.to_owned(), format!("{COMMAND_LINE} {name}=")),
        None => Err(Unknown::Absent(format!("not on {COMMAND_LINE}: the kernel's default stands"))),
    })
}

pub(crate) fn idle_tick(machine: &Machine) -> Answer<bool> {
    const TIMERS: &str = "/proc/timer_list";
    /// The list of timers precedes the first processor's fields.
    const FIRST_PROCESSOR: u64 = 1 << 18;
    machine.start_of(TIMERS, FIRST_PROCESSOR).and_then(|bytes| {
        let text = String::from_utf8_lossy(&bytes.value).into_owned();
        let value = text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            matches!(key.trim(), ".nohz" | ".nohz_mode").then(|| value.trim().to_owned())
        });
        match value {
            Some(value) => found(value, format!("{TIMERS} .nohz"))?.parse("0, 1 or 2", |mode| match mode {
                "0" => Some(false),
                "1" | "2" => Some(true),
                _ => None,
            }),
            None => Err(Unknown::Absent(format!("{TIMERS} has no .nohz"))),
        }
    })
}

pub(crate) fn security_modules(machine: &Machine) -> Answer<Vec<String>> {
    Ok(machine
        .line("/sys/kernel/security/lsm")?
        .map(|text| text.split(',').map(str::to_owned).collect::<Vec<_>>()))
}
