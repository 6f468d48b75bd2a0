//! Captured trees of other machines: their facts, and which of the three reasons a missing one has.

#![allow(clippy::unwrap_used)] // A tree that cannot be built is a failed test.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;
use tollgate_arch::architecture::Architecture::Arm64;
use tollgate_inspect::{Machine, environment, read_facts, strain};
use tollgate_model::{Environment, Fact, FactValue, Facts, Unknown};

/// A machine's tree under construction.
pub struct Tree(TempDir);

impl Tree {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn with(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub fn with_link(self, path: &str, target: &str) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn machine(&self) -> Machine {
        Machine::captured(self.0.path())
    }

    pub fn facts(&self) -> Facts {
        read_facts(&self.machine())
    }
}

/// A kernel on hardware or in a virtual machine: all namespaces are the initial ones.
fn linux() -> Tree {
    Tree::new()
        .with("/proc/sys/kernel/osrelease", "6.12.9\n")
        .with("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Thu Jan 9 2025\n")
        .with("/proc/cmdline", "root=/dev/vda1 quiet\n")
        .with("/proc/cpuinfo", cpuinfo("fpu syscall pcid smep"))
        .with_link("/proc/self/ns/pid", "pid:[4026531836]")
        .with_link("/proc/self/ns/uts", "uts:[4026531838]")
        .with_link("/proc/self/ns/ipc", "ipc:[4026531839]")
}

fn cpuinfo(flags: &str) -> String {
    let paragraph = |n: u8| {
        format!(
            "processor\t: {n}\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: A \
             Processor\nstepping\t: 1\nmicrocode\t: 0xa001173\nflags\t\t: {flags}\n"
        )
    };
    [paragraph(0), paragraph(1)].join("\n")
}

pub fn text(value: &str) -> FactValue {
    FactValue::from(value)
}

pub fn list(values: &[&str]) -> FactValue {
    FactValue::List(values.iter().map(|&value| value.to_owned()).collect())
}

pub fn is_absent(fact: &Fact) -> bool {
    matches!(fact, Fact::Unknown { why: Unknown::Absent(_) })
}

pub fn is_unreadable(fact: &Fact) -> bool {
    matches!(fact, Fact::Unknown { why: Unknown::Unreadable(_) })
}

#[test]
fn what_is_there_is_known_with_its_source() {
    let facts = linux().facts();
    assert_eq!(facts["kernel.release"], Fact::known("6.12.9", "/proc/sys/kernel/osrelease"));
    assert_eq!(facts["cpu.model"], Fact::known("A Processor", "/proc/cpuinfo"));
    assert_eq!(facts["cpu.model_number"], Fact::known(1, "/proc/cpuinfo"));
    assert_eq!(facts["kernel.preempt_dynamic"].value(), Some(&FactValue::Flag(true)));
    assert_eq!(facts["kernel.entry_features"].value(), Some(&list(&["pcid", "smep", "syscall"])));
    assert_eq!(environment(&facts), Environment::Host);
}

#[test]
fn an_empty_tree_knows_nothing() {
    let facts = Tree::new().facts();
    for (name, fact) in &facts {
        // A tree without marker files does show that there are none.
        if name != "container.files" {
            assert!(is_absent(fact), "{name}: {fact:?}");
        }
    }
    assert!(facts.contains_key("mitigation") && facts.contains_key("cache"), "families say why as well");
}

#[test]
fn permission_that_is_refused_is_no_absence() {
    let tree = linux().with("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
    let path = tree.path("/sys/devices/system/cpu/vulnerabilities/meltdown");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        println!("skipped: nothing is refused to this user");
        return;
    }
    let fact = &tree.facts()["mitigation.meltdown"];
    assert!(matches!(fact, Fact::Unknown { why: Unknown::Refused(_) }), "{fact:?}");
}

#[test]
fn nonsense_is_unreadable() {
    let cpu = "/sys/devices/system/cpu";
    let tree = linux()
        .with(&format!("{cpu}/online"), "0-99999999999\n")
        .with(&format!("{cpu}/smt/active"), "perhaps\n")
        .with("/proc/sys/kernel/perf_event_paranoid", "")
        .with("/proc/meminfo", "MemTotal: 9223372036854775807 kB\n")
        .with("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise never\n")
        .with("/proc/self/status", "Seccomp:\t7\nNoNewPrivs:\tno\nUid:\t0\nCapEff:\tnone\nTracerPid:\t\n")
        .with("/proc/self/auxv", [0xff; 24])
        .with("/proc/uptime", "nan\n");
    let facts = tree.facts();
    for name in [
        "cpu.online",
        "cpu.online_list",
        "cpu.packages",
        "cpu.smt_active",
        "kernel.perf_event_paranoid",
        "memory.total",
        "memory.thp",
        "seccomp.mode",
        "process.no_new_privileges",
        "process.user",
        "process.capabilities",
        "process.tracer",
        "vdso.present",
        "uptime",
    ] {
        assert!(is_unreadable(&facts[name]), "{name}: {:?}", facts[name]);
    }
}

#[test]
fn files_of_any_kind_are_survived() {
    let tree = linux().with("/proc/sys/vm/unprivileged_userfaultfd", vec![b'1'; 2 << 20]);
    fs::create_dir_all(tree.path("/proc/loadavg")).unwrap();
    fs::remove_file(tree.path("/proc/cmdline")).unwrap();
    let tree = tree.with_link("/proc/cmdline", "cmdline");
    let pipe =
        std::ffi::CString::new(tree.path("/proc/uptime").into_os_string().into_encoded_bytes()).unwrap();
    // SAFETY: the path ends in NUL; nothing else is passed.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    let facts = tree.facts();
    assert!(is_unreadable(&facts["kernel.unprivileged_userfaultfd"]), "too large");
    assert!(is_unreadable(&facts["kernel.command_line"]), "a link to itself");
    assert!(is_unreadable(&facts["uptime"]), "a pipe without a writer");
    let (name, load) = &strain(&tree.machine(), "after")[0];
    assert_eq!(name, "load.after");
    assert!(is_unreadable(load), "a directory");
}

#[test]
fn a_plain_virtual_machine() {
    let tree = linux()
        .with("/proc/cpuinfo", cpuinfo("fpu syscall hypervisor"))
        .with("/sys/class/dmi/id/sys_vendor", "QEMU\n")
        .with("/sys/class/dmi/id/product_name", "Standard PC (Q35 + ICH9, 2009)\n");
    let facts = tree.facts();
    assert_eq!(facts["hypervisor.present"], Fact::known(true, "/proc/cpuinfo"));
    assert_eq!(facts["hypervisor.layers"].value(), Some(&list(&["QEMU"])));
    assert_eq!(facts["container.layers"].value(), Some(&list(&[])));
    assert_eq!(environment(&facts), Environment::Vm);
}

#[test]
fn docker_in_a_virtual_machine() {
    let tree = linux()
        .with("/proc/cpuinfo", cpuinfo("fpu syscall hypervisor"))
        .with("/.dockerenv", "")
        .with("/proc/self/cgroup", "0::/\n")
        .with("/proc/self/mountinfo", "600 500 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/l\n");
    fs::remove_file(tree.path("/proc/self/ns/pid")).unwrap();
    let tree = tree.with_link("/proc/self/ns/pid", "pid:[4026532621]");
    let facts = tree.facts();
    assert_eq!(facts["container.files"].value(), Some(&list(&["/.dockerenv"])));
    assert_eq!(facts["container.namespaces"].value(), Some(&list(&["pid"])));
    assert_eq!(facts["container.layers"].value(), Some(&list(&["docker"])));
    assert_eq!(facts["container.root"].value(), Some(&text("overlay")));
    assert_eq!(facts["hypervisor.layers"].value(), Some(&list(&["unnamed"])), "both layers are listed");
    assert_eq!(environment(&facts), Environment::Container);
}

/// An image that was started as a virtual machine keeps its `/.dockerenv`.
#[test]
fn a_stale_marker_is_no_container() {
    let facts = linux().with("/.dockerenv", "").facts();
    assert_eq!(facts["container.files"].value(), Some(&list(&["/.dockerenv"])));
    assert_eq!(facts["container.layers"].value(), Some(&list(&[])));
    assert_eq!(environment(&facts), Environment::Host);
}

#[test]
fn a_container_that_says_so() {
    let tree = linux()
        .with("/proc/1/environ", "PATH=/bin\0container=lxc\0")
        .with("/proc/self/cgroup", "5:memory:/kubepods/burstable/pod1/2\n");
    let facts = tree.facts();
    assert_eq!(facts["container.init"].value(), Some(&text("lxc")));
    assert_eq!(facts["container.groups"].value(), Some(&list(&["kubernetes"])));
    assert_eq!(facts["container.layers"].value(), Some(&list(&["kubernetes", "lxc"])));
}

#[test]
fn gvisor_of_both_ages() {
    let version = "#1 SMP Sun Jan 10 15:06:54 PST 2016";
    for release in ["4.19.0-gvisor", "4.4.0"] {
        let facts = Tree::new().with("/proc/version", format!("Linux version {release} {version}\n")).facts();
        assert_eq!(facts["kernel.release"].value(), Some(&text(release)));
        assert_eq!(facts["kernel.version"].value(), Some(&text(version)));
        assert_eq!(facts["sandbox.kernel"].value(), Some(&text("gVisor")), "{release}");
        assert!(is_absent(&facts["kernel.preemption"]), "its version means nothing");
        assert_eq!(environment(&facts), Environment::Sandbox);
    }
}

#[test]
fn windows_subsystems() {
    let first = Tree::new().with("/proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft\n").facts();
    assert_eq!(first["sandbox.kernel"].value(), Some(&text("WSL 1")));
    let second = linux().with("/proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n").facts();
    assert!(is_absent(&second["sandbox.kernel"]));
    assert_eq!(second["hypervisor.layers"].value(), Some(&list(&["WSL 2"])));
}

/// Cgroup, mounts and limit files of the unified hierarchy.
fn unified() -> Tree {
    let group = "/sys/fs/cgroup/user.slice/app";
    linux()
        .with("/proc/self/cgroup", "0::/user.slice/app\n")
        .with("/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n")
        .with(&format!("{group}/cpu.max"), "150000 100000\n")
        .with(&format!("{group}/memory.max"), "max\n")
        .with(&format!("{group}/cpu.stat"), "usage_usec 1\nnr_periods 9\nnr_throttled 4\n")
        .with("/sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n")
        .with("/sys/fs/cgroup/user.slice/memory.max", "max\n")
}

#[test]
fn limits_of_the_second_version() {
    let tree = unified();
    let facts = tree.facts();
    let tightest = Fact::known(0.5, "/sys/fs/cgroup/user.slice/cpu.max");
    assert_eq!(facts["cgroup.cpu_max"], tightest, "the parent allows less");
    assert_eq!(
        facts["cgroup.memory_max"],
        Fact::known("no limit", "/sys/fs/cgroup/user.slice/app/memory.max")
    );
    assert!(is_absent(&facts["cgroup.pids_max"]), "no controller is not no limit");
    let strain: Facts = strain(&tree.machine(), "before").into_iter().collect();
    assert_eq!(strain["throttled.before"].value(), Some(&FactValue::Integer(4)));
    let broken = tree.with("/sys/fs/cgroup/user.slice/cpu.max", "much\n").facts();
    assert!(is_unreadable(&broken["cgroup.cpu_max"]), "what a parent allows must be known");
}

#[test]
fn limits_of_the_first_version() {
    let mounts = "40 30 0:33 /docker/8e /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
                  41 30 0:34 /docker/8e /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
                  42 30 0:35 / /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
    let tree = linux()
        .with("/proc/self/cgroup", "9:pids:/../host\n4:memory:/docker/8e\n3:cpu,cpuacct:/docker/8e/inner\n")
        .with("/proc/self/mountinfo", mounts)
        .with("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n")
        .with("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
        .with("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_quota_us", "-1\n")
        .with("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_period_us", "100000\n")
        .with("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
        .with("/sys/fs/cgroup/pids/pids.max", "1\n");
    let facts = tree.facts();
    assert_eq!(facts["cgroup.cpu_max"], Fact::known(2.0, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us"));
    assert_eq!(facts["cgroup.memory_max"].value(), Some(&text("no limit")));
    assert!(is_absent(&facts["cgroup.pids_max"]), "its group is outside of what is mounted");
    assert_eq!(facts["container.layers"].value(), Some(&list(&["docker"])));
}

#[test]
fn mitigations_with_and_without_an_entry_of_their_own() {
    let directory = "/sys/devices/system/cpu/vulnerabilities";
    let facts = linux()
        .with(&format!("{directory}/meltdown"), "Mitigation: PTI\n")
        .with(&format!("{directory}/brand_new"), "Vulnerable\n")
        .with(&format!("{directory}/Not A Name"), "Vulnerable\n")
        .facts();
    assert_eq!(facts["mitigation.meltdown"].value(), Some(&text("Mitigation: PTI")));
    assert_eq!(facts["mitigation.brand_new"].value(), Some(&text("Vulnerable")));
    assert!(is_absent(&facts["mitigation.mds"]));
    assert!(!facts.keys().any(|name| name.contains("Not") || name == "mitigation"));
}

#[test]
fn topology_of_two_packages() {
    let cpu = "/sys/devices/system/cpu";
    let mut tree = linux().with(&format!("{cpu}/online"), "0-3\n").with(&format!("{cpu}/smt/active"), "1\n");
    for (processor, core, package) in
        [(0, "0,2", "0,2"), (1, "1,3", "1,3"), (2, "0,2", "0,2"), (3, "1,3", "1,3")]
    {
        tree = tree
            .with(&format!("{cpu}/cpu{processor}/topology/thread_siblings_list"), core)
            .with(&format!("{cpu}/cpu{processor}/topology/package_cpus_list"), package);
    }
    for (index, level, kind, size) in
        [(0, 1, "Data", "48K"), (1, 1, "Instruction", "32K"), (2, 3, "Unified", "32M")]
    {
        let cache = format!("{cpu}/cpu0/cache/index{index}");
        tree = tree
            .with(&format!("{cache}/level"), level.to_string())
            .with(&format!("{cache}/type"), kind)
            .with(&format!("{cache}/size"), size)
            .with(&format!("{cache}/shared_cpu_list"), "0,2");
    }
    let facts =
        tree.with(&format!("{cpu}/isolated"), "\n").with(&format!("{cpu}/nohz_full"), "  (null)\n").facts();
    let value = |name: &str| facts[name].value().cloned();
    assert_eq!(value("cpu.online"), Some(FactValue::Integer(4)));
    assert_eq!(value("cpu.packages"), Some(FactValue::Integer(2)));
    assert_eq!(value("cpu.cores"), Some(FactValue::Integer(2)), "by the attribute's older name");
    assert_eq!(value("cpu.siblings"), Some(list(&["0,2", "1,3"])));
    assert_eq!(value("cpu.smt_active"), Some(FactValue::Flag(true)));
    assert_eq!(value("cpu.isolated"), Some(text("none")));
    assert_eq!(value("cpu.nohz_full"), Some(text("none")));
    assert_eq!(value("cache.l1d"), Some(FactValue::Integer(48 << 10)));
    assert_eq!(value("cache.l1i"), Some(FactValue::Integer(32 << 10)));
    assert_eq!(value("cache.l3"), Some(FactValue::Integer(32 << 20)));
    assert_eq!(value("cache.l3.shared"), Some(text("0,2")));
}

#[test]
fn the_preemption_model_is_known_or_left_open() {
    let model = |tree: Tree| tree.facts()["kernel.preemption"].clone();
    assert!(is_absent(&model(linux())), "dynamic, and no source says which");
    let readable = linux().with("/sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n");
    assert_eq!(model(readable), Fact::known("full", "/sys/kernel/debug/sched/preempt"));
    let asked = linux().with("/proc/cmdline", "quiet preempt=none\n");
    assert_eq!(model(asked), Fact::known("none", "/proc/cmdline preempt="));
    let built = |flag: &str| linux().with("/proc/sys/kernel/version", format!("#1 SMP {flag} Thu Jan 9\n"));
    assert_eq!(model(built("PREEMPT_RT")).value(), Some(&text("rt")));
    assert_eq!(model(built("PREEMPT")).value(), Some(&text("full or lazy")));
    assert_eq!(model(built("")).value(), Some(&text("none or voluntary")));
}

#[test]
fn thirty_two_bit_calls() {
    let fact = |tree: Tree| tree.facts()["abi.ia32"].clone();
    assert!(is_absent(&fact(linux())));
    let built = || linux().with("/proc/sys/abi/vsyscall32", "1\n");
    assert_eq!(fact(built()).value(), Some(&text("built in")));
    let off = built().with("/proc/cmdline", "quiet ia32_emulation=false\n");
    assert_eq!(fact(off), Fact::known("disabled", "/proc/cmdline ia32_emulation="));
    let nonsense = built().with("/proc/cmdline", "quiet ia32_emulation=perhaps\n");
    assert!(is_unreadable(&fact(nonsense)));
}

#[test]
fn moments() {
    let tree = Tree::new()
        .with("/proc/loadavg", "0.25 0.50 0.75 2/90 1234\n")
        .with(
            "/proc/stat",
            "cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 0 0 0 0 0 0 0 8 0 0\nctxt 77\nprocs_running 2\n",
        )
        .with(
            "/proc/pressure/io",
            "some avg10=1.50 avg60=0.00 avg300=0.00 total=900\nfull avg10=0.00 total=1\n",
        );
    let facts: Facts = strain(&tree.machine(), "after").into_iter().collect();
    let value = |name: &str| facts[name].value().cloned();
    assert_eq!(value("load.after"), Some(FactValue::Real(0.25)));
    assert_eq!(value("running.after"), Some(FactValue::Integer(2)));
    assert_eq!(value("steal.after"), Some(FactValue::Integer(80)));
    assert_eq!(value("switches.after"), Some(FactValue::Integer(77)));
    assert_eq!(value("pressure.io.after"), Some(FactValue::Real(1.5)));
    assert_eq!(value("stalled.io.after"), Some(FactValue::Integer(900)));
    assert!(is_absent(&facts["pressure.cpu.after"]));
}

/// gVisor's files, old and new, which do not depend on the load.
#[test]
fn what_a_sandbox_does_not_count_is_absent() {
    let old = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\nctxt 0\nprocesses 0\nprocs_running 0\n";
    let new =
        "cpu  3 0 6 127 0 0 0 0 0 0\ncpu0 3 0 6 127 0 0 0 0 0 0\nctxt 0\nprocesses 0\nprocs_running 1\n";
    for (stat, running) in [(old, None), (new, Some(FactValue::Integer(1)))] {
        let tree = Tree::new().with("/proc/loadavg", "0.00 0.00 0.00 0/0 0\n").with("/proc/stat", stat);
        let facts: Facts = strain(&tree.machine(), "after").into_iter().collect();
        for name in ["load.after", "steal.after", "switches.after"] {
            assert!(is_absent(&facts[name]), "{name}: {:?}", facts[name]);
        }
        assert_eq!(facts["running.after"].value().cloned(), running);
    }
    // Linux without load: its reader is a task, and it has switched contexts.
    let idle = Tree::new()
        .with("/proc/loadavg", "0.00 0.00 0.00 1/90 1234\n")
        .with("/proc/stat", "cpu  1 2 3 4 5 6 7 0 0 0\nctxt 77\nprocs_running 1\n");
    let facts: Facts = strain(&idle.machine(), "after").into_iter().collect();
    assert_eq!(facts["load.after"].value(), Some(&FactValue::Real(0.0)));
    assert_eq!(facts["steal.after"].value(), Some(&FactValue::Integer(0)));
}

/// The files that facts are read from, each with arbitrary content.
const FILES: [&str; 32] = [
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/pressure/cpu",
    "/proc/self/auxv",
    "/proc/self/cgroup",
    "/proc/self/environ",
    "/proc/self/limits",
    "/proc/self/loginuid",
    "/proc/self/mountinfo",
    "/proc/self/sessionid",
    "/proc/self/status",
    "/proc/self/timens_offsets",
    "/proc/self/uid_map",
    "/proc/stat",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/version",
    "/proc/timer_list",
    "/proc/uptime",
    "/run/systemd/container",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/devices/system/cpu/cpu0/cache/index0/size",
    "/sys/devices/system/cpu/cpu0/topology/core_cpus_list",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/vulnerabilities/meltdown",
    "/sys/firmware/acpi/tables/FACP",
    "/sys/kernel/debug/kprobes/list",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/tracing/events/raw_syscalls/enable",
    "/sys/kernel/tracing/events/syscalls/enable",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// With bytes that are not text, and with misplaced words of the formats, every fact still has an answer.
    #[test]
    fn any_content_is_survived(contents in prop::collection::vec(
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..64),
            "([a-zA-Z_]{1,12}[:= \t][0-9kB,-]{0,8}\n){0,6}".prop_map(String::into_bytes),
            "0::/[a-z./]{0,12}\n|1 2 0:3 / /[a-z]{0,4} rw - cgroup2 none rw\n".prop_map(String::into_bytes),
        ],
        FILES.len(),
    )) {
        let files = FILES.into_iter().zip(contents);
        let tree = files.fold(Tree::new(), |tree, (file, content)| tree.with(file, content));
        let facts = tree.facts();
        for spec in tollgate_inspect::facts().filter(|spec| !spec.name.ends_with(".*") && spec.only() != Some(Arm64)) {
            prop_assert!(facts.contains_key(spec.name), "{} has no answer", spec.name);
        }
        for (name, fact) in facts.iter().map(|(name, fact)| (name.clone(), fact.clone()))
            .chain(strain(&tree.machine(), "before"))
        {
            let shown = format!("{name} {}", fact.value().map(ToString::to_string).unwrap_or_default());
            prop_assert!(!shown.contains(char::is_control), "{}", shown.escape_debug());
        }
    }
}

#[test]
fn what_a_user_and_a_session_hint_at() {
    let hints = |tree: Tree| tree.facts()["audit.hints"].clone();
    assert!(is_absent(&hints(linux())), "a kernel without auditing has no such file");
    let with =
        |login: &str| linux().with("/proc/self/loginuid", login).with("/proc/self/sessionid", "4294967295");
    assert_eq!(hints(with("4294967295")).value(), Some(&list(&[])));
    assert_eq!(hints(with("1000")).value(), Some(&list(&["a login user is set, as pam_loginuid does"])));
    assert!(is_unreadable(&hints(with("-1"))));
    let off = with("1000").with("/proc/cmdline", "audit=0\n");
    assert_eq!(hints(off), Fact::known(Vec::new(), "/proc/cmdline audit="));
    let on = with("4294967295").with("/proc/cmdline", "audit=1\n");
    assert_eq!(hints(on).value(), Some(&list(&["audit=1 on the kernel command line"])));
}

#[test]
fn a_clock_is_read_in_user_mode_where_the_vdso_knows_its_source() {
    let auxv: Vec<u8> = [33_u64, 0x7fff_0000, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    let current = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let fact = |source: &str, auxv: &[u8]| {
        linux().with(current, source).with("/proc/self/auxv", auxv).facts()["clocksource.in_user_mode"]
            .clone()
    };
    assert_eq!(fact("tsc\n", &auxv).value(), Some(&FactValue::Flag(true)));
    assert_eq!(fact("hpet\n", &auxv).value(), Some(&FactValue::Flag(false)));
    assert_eq!(fact("tsc\n", &[0; 16]).value(), Some(&FactValue::Flag(false)), "no vDSO is mapped");
    assert!(is_absent(&fact("kvm-clock\n", &auxv)), "whether its page is stable was not captured");
    assert!(is_absent(&fact("of its own\n", &auxv)));
}

#[test]
fn traced_system_calls_are_known_where_the_files_may_be_read() {
    let tracing = "/sys/kernel/debug/tracing/events";
    let in_mounts = |mounts: &str, raw: &str, named: &str| {
        let tree =
            linux().with("/proc/self/mountinfo", mounts).with(&format!("{tracing}/raw_syscalls/enable"), raw);
        tree.with(&format!("{tracing}/syscalls/enable"), named).facts()["kernel.traced_system_calls"].clone()
    };
    let debug = "24 1 0:7 / /sys/kernel/debug rw - debugfs debugfs rw\n";
    let both = format!("{debug}25 24 0:12 / /sys/kernel/debug/tracing rw - tracefs tracefs rw\n");
    let fact = |raw: &str, named: &str| in_mounts(&both, raw, named);
    assert_eq!(fact("0\n", "0\n").value(), Some(&FactValue::Flag(false)));
    assert_eq!(fact("0\n", "X\n").value(), Some(&FactValue::Flag(true)));
    assert!(is_unreadable(&fact("0\n", "?\n")));
    assert!(is_absent(&linux().facts()["kernel.traced_system_calls"]));
    // Looking up a file below an empty mount point would mount the file system.
    assert!(is_absent(&in_mounts(debug, "0\n", "0\n")));
}

/// An image cannot keep the mount of a manager's file.
#[test]
fn managers_are_known_by_what_they_mount() {
    let mounts = "1 2 0:50 / / rw - overlay overlay rw\n\
                  3 1 8:1 /var/lib/docker/containers/8e/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n\
                  4 1 8:1 /var/lib/kubelet/pods/1/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n";
    let facts =
        linux().with("/proc/self/mountinfo", mounts).with("/proc/self/uid_map", "0 100000 65536\n").facts();
    assert_eq!(facts["container.mounts"].value(), Some(&list(&["docker", "kubernetes"])));
    assert_eq!(facts["container.layers"].value(), Some(&list(&["docker", "kubernetes"])));
    assert_eq!(facts["container.users"].value(), Some(&text("0 100000 65536")));
}
