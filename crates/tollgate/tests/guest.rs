//! Guests: `--in vm`. Each test needs QEMU and a kernel with its modules, such as Debian's package linux-image-cloud-amd64 unpacked into the
//! directory that TOLLGATE_KERNELS names.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use common::{Home, program, wait_for};
use serde_json::Value;

/// A benchmark and the name of its figure in tests/vm/counts.c.
const COUNTED: [(&str, &str); 3] =
    [("entry/syscall", "syscall"), ("entry/syscall-getpid", "getpid"), ("entry/int80", "int80")];
/// A variable that all processes of a session inherit.
const MARK: &str = "TOLLGATE_TEST_GUEST";

fn obstacle() -> Option<&'static str> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| Home::new().no_guest());
    found.as_deref()
}

/// One guest at a time: two processors translate no more. If none can be started the test is skipped.
macro_rules! alone_or_skip {
    () => {
        match obstacle() {
            Some(why) => return println!("skipped: {why}"),
            None => alone(),
        }
    };
}

fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(home: &Home, words: &[&str]) -> Value {
    let out = home.path().join("run.json");
    let out_of = out.display().to_string();
    let all = [&["run", "--quiet", "--format=json", "--out", &out_of], words].concat();
    home.output(all);
    serde_json::from_slice(&fs::read(out).expect("a run")).expect("JSON")
}

fn samples(run: &Value, benchmark: &str) -> Vec<f64> {
    let row = common::row(run, benchmark);
    assert_eq!((&row["unit"], &row["provenance"]), (&"instructions".into(), &"qemu-icount".into()), "{row}");
    row["samples"].as_array().expect("samples").iter().filter_map(Value::as_f64).collect()
}

/// The one figure of a case whose samples agree.
fn figure(run: &Value, benchmark: &str) -> f64 {
    let samples = samples(run, benchmark);
    let first = *samples.first().expect("a sample");
    assert!(first > 0.0 && samples.iter().all(|sample| *sample == first), "{benchmark}: {samples:?}");
    first
}

fn fact<'a>(run: &'a Value, name: &str) -> &'a Value {
    let fact = &run["facts"][name];
    assert_eq!(fact["status"], "known", "{name}: {fact}");
    &fact["value"]
}

/// A program that shares no code with tollgate, as the first process of the same kernel on the same machine.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn an_independent_program_counts_the_same() {
    let _alone = alone_or_skip!();
    let home = Home::new();
    let Some(init) = common::guest::compiled("cc", home.path(), "counts.c") else { return };
    let benchmarks = COUNTED.map(|(benchmark, _)| benchmark);
    let out = home.path().join("run.json").display().to_string();
    let words = [&["run", "--verbose", "--out", &out], &benchmarks[..], &["--in", "vm:exact"]].concat();
    let said = home.tollgate(words).assert().success().get_output().stderr.clone();
    let ours: Value = serde_json::from_slice(&fs::read(&out).expect("a run")).expect("JSON");
    let said = String::from_utf8_lossy(&said);
    let [theirs] = common::guest::says(home.path(), &said, &[("init", &init)], ["counts: "]);
    for (benchmark, name) in COUNTED {
        let of_program =
            theirs.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let of_program: f64 = of_program.and_then(|number| number.parse().ok()).expect("a number");
        println!("{benchmark}: {of_program} by the independent program");
        assert_eq!(figure(&ours, benchmark), of_program, "{benchmark}: {theirs}");
    }
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn files_are_on_a_device_in_the_guest_s_memory() {
    let _alone = alone_or_skip!();
    if let Some(missing) = ["mkfs.ext4", "modprobe", "depmod"].into_iter().find(|name| !is_there(name)) {
        return println!("skipped: there is no {missing}");
    }
    let run = run(&Home::new(), &["files/open", "--on", "ram", "--in", "vm:accel=tcg"]);
    assert_eq!(fact(&run, "ram.device"), "brd");
    assert_eq!((fact(&run, "ram.fs"), fact(&run, "files.fs")), (&"ext4".into(), &"ext4".into()));
    assert_eq!(fact(&run, "files.source"), "/dev/ram0");
    assert!(fact(&run, "ram.mkfs").as_str().is_some_and(|line| line.starts_with("mke2fs ")));
    // It was unmounted in the guest, and the module was unloaded.
    assert_eq!(fact(&run, "ram.left"), "nothing");
    // The count is exact although there is no time.
    assert!(figure(&run, "files/open") > 1_000.0);
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn files_are_on_a_loop_device_in_the_guest_s_memory() {
    let _alone = alone_or_skip!();
    if let Some(missing) = ["mkfs.ext4", "modprobe", "depmod"].into_iter().find(|name| !is_there(name)) {
        return println!("skipped: there is no {missing}");
    }
    let run = run(&Home::new(), &["files/open", "--in", "vm:exact,on=loop"]);
    let starts =
        |name: &str, with: &str| fact(&run, name).as_str().is_some_and(|text| text.starts_with(with));
    assert!(starts("ram.device", "loop over tmpfs, ") && starts("files.source", "/dev/loop"), "{run}");
    assert_eq!((fact(&run, "files.fs"), fact(&run, "ram.left")), (&"ext4".into(), &"nothing".into()));
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn files_are_on_a_disk_of_the_guest() {
    let _alone = alone_or_skip!();
    if !is_there("mkfs.ext4") {
        return println!("skipped: there is no mkfs.ext4");
    }
    let home = Home::new();
    let run = run(&home, &["entry/syscall", "files/open", "--in", "vm:accel=tcg,cache=writeback"]);
    let why = common::row(&run, "files/open")["why"].to_string();
    assert!(why.contains("the guest's disk is a file on the host"), "{why}");
    let disk = fact(&run, "run.vm.disk").as_str().expect("text");
    assert!(disk.starts_with("virtio-blk, ") && disk.ends_with(", cache=writeback"), "{disk}");
    assert_eq!((fact(&run, "files.fs"), fact(&run, "files.device")), (&"ext4".into(), &"vda".into()));
    // The host's programs if the kernel has 9p, otherwise the reason.
    let programs = &run["facts"]["run.vm.programs"];
    match programs["status"].as_str() {
        Some("known") => assert!(fact(&run, "guest.cc").as_str().is_some_and(|line| !line.is_empty())),
        _ => assert!(programs["why"].as_str().is_some_and(|why| why.contains("no 9p")), "{programs}"),
    }
    assert_eq!(home.files(), ["run.json"]);
}

/// Workloads have their programs in a guest whose kernel has 9p: Debian's generic one, not that for clouds.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn programs_of_the_host_run_in_a_guest() {
    let _alone = alone_or_skip!();
    let home = Home::new();
    let Some(kernel) = with_9p(&kernel(&home)) else {
        return println!("skipped: no kernel with 9p is beside the other");
    };
    let run = run(
        &home,
        &["entry/syscall", "--in", &format!("vm:accel=tcg,cache=none,kernel={}", kernel.display())],
    );
    let shared = fact(&run, "run.vm.programs").as_str().expect("text");
    assert!(shared.contains("/usr") && shared.contains("9p, read-only"), "{shared}");
    for program in ["git", "make", "cc"].into_iter().filter(|name| is_there(name)) {
        let said = Command::new(program).arg("--version").output().expect("it runs on the host").stdout;
        let said = String::from_utf8_lossy(&said);
        assert_eq!(fact(&run, &format!("guest.{program}")).as_str(), said.lines().next(), "{program}");
    }
}

/// A kernel in the same directory of packages that has 9p as a module.
fn with_9p(kernel: &Path) -> Option<PathBuf> {
    let packages = kernel.ancestors().nth(3)?;
    let boots = common::entries(packages).into_iter().flat_map(|package| {
        if package.join("boot").is_dir() { common::entries(&package.join("boot")) } else { Vec::new() }
    });
    let has_9p = |file: &PathBuf| {
        let release = file.file_name()?.to_str()?.strip_prefix("vmlinuz-")?;
        let modules = file.ancestors().nth(2)?.join("lib/modules").join(release);
        modules.join("kernel/fs/9p/9p.ko").is_file().then_some(())
    };
    boots.into_iter().find(|file| has_9p(file).is_some())
}

fn is_there(program: &str) -> bool {
    let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let named: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    named.iter().chain(&usual).any(|directory| directory.join(program).is_file())
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn kvm_is_taken_where_it_executes_ring_0_or_a_line_says_why_not() {
    let _alone = alone_or_skip!();
    let home = Home::new();
    let asked = home
        .tollgate(["run", "entry/syscall", "--processes", "1", "--in", "vm:accel=kvm"])
        .output()
        .expect("ended");
    let out = home.path().join("run.json").display().to_string();
    let words = ["run", "entry/syscall", "--processes", "1", "--in", "vm", "--out", &out];
    let said = home.tollgate(words).assert().success().get_output().stderr.clone();
    let said = String::from_utf8_lossy(&said);
    let why = said.lines().find(|line| line.contains("using QEMU's translator"));
    let run: Value = serde_json::from_slice(&fs::read(&out).expect("a run")).expect("JSON");
    match why {
        Some(why) => {
            assert!(why.starts_with("tollgate: vm: ") && why.contains("KVM"), "{why}");
            assert_eq!(fact(&run, "run.vm.accel"), "tcg");
            let refusal = common::one_line(&asked.stderr);
            assert!(!asked.status.success() && refusal.contains("omit accel=kvm"), "{refusal}");
        }
        None => {
            assert_eq!(fact(&run, "run.vm.accel"), "kvm");
            assert_eq!(common::row(&run, "entry/syscall")["unit"], "ns");
            assert!(asked.status.success());
        }
    }
}

#[test]
fn a_kernel_that_is_none_is_refused() {
    let home = Home::new();
    let text = home.file("text", "no kernel at all");
    for (file, why) in
        [("/nowhere/vmlinuz", "No such file or directory"), (&text, "it is not a kernel for x86")]
    {
        let refusal = home.refusal(["run", "entry/syscall", "--in", &format!("vm:kernel={file}")]);
        if refusal.contains("qemu-system-x86_64 is not installed") {
            return println!("skipped: qemu-system-x86_64 is not installed");
        }
        assert!(refusal.contains(&format!("kernel={file}: {why}")), "{refusal}");
    }
    let refusal = home.refusal(["run", "entry/syscall", "--in", "vm:kernel"]);
    assert!(refusal.contains("kernel=VALUE"), "{refusal}");
}

fn kernel(home: &Home) -> PathBuf {
    let known = home.json(["environments", "--format=json"]);
    let all = known["environments"].as_array().expect("environments");
    let vm = all.iter().find(|one| one["environment"] == "vm").expect("kind vm");
    let detail = vm["detail"].as_str().expect("text");
    let (_, file) = detail.rsplit_once(" (").expect("the kernel's file");
    file.trim_end_matches(')').into()
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_kernel_without_its_modules_has_a_serial_line_or_a_reason() {
    let _alone = alone_or_skip!();
    let home = Home::new();
    let copy = home.path().join("vmlinuz");
    fs::copy(kernel(&home), &copy).expect("a copy");
    let alone = format!("vm:exact,kernel={}", copy.display());
    let refusal = home.refusal(["run", "entry/syscall", "--in", &format!("{alone},vmm=microvm")]);
    assert!(refusal.contains("virtio_console and virtio_mmio"), "{refusal}");
    let refusal = home.refusal(["run", "files/open", "--on", "ram", "--in", &alone]);
    assert!(refusal.contains("has no module brd"), "{refusal}");
    assert!(figure(&run(&home, &["entry/syscall", "--in", &alone]), "entry/syscall") > 0.0);
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_guest_that_does_not_come_up_says_why() {
    let _alone = alone_or_skip!();
    let home = Home::new();
    // Without the first process the kernel looks for a device with a root file system.
    let why = home.refusal(["run", "entry/syscall", "--quiet", "--in", "vm:exact,append=rdinit=/nowhere"]);
    assert!(why.contains("vm:exact,append=rdinit=/nowhere: its agent ended: Kernel panic"), "{why}");
    assert_eq!(home.files(), [""; 0]);
}

fn processes(mark: &str) -> Vec<i32> {
    let marked = format!("{MARK}={mark}");
    let all = fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == marked.as_bytes())
    })
    .collect()
}

/// Kills a session with a guest at many moments of its life.
fn kill(number: usize) {
    for at in 0..number {
        let home = Home::new();
        let temporary = home.path().join("tmp");
        fs::create_dir(&temporary).expect("made");
        let mark = format!("{}-{at}", std::process::id());
        let mut command = Command::new(program());
        command.args(["run", "entry", "--quiet", "--in", "vm:exact,cache=writeback"]);
        command
            .env("XDG_DATA_HOME", home.path())
            .env("TMPDIR", &temporary)
            .env(MARK, &mark)
            .current_dir(home.path());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        // From the first millisecond to the counting; most of them early, when files are made.
        let until = Duration::from_millis((at as u64 * 7919 % 97).pow(2) * 2);
        let began = Instant::now();
        while began.elapsed() < until && child.try_wait().expect("our own child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = child.kill();
        let status = child.wait().expect("waited");
        assert!(status.signal() == Some(9) || status.success(), "{at}: {status}");
        wait_for(&format!("{at}: the end of its processes"), || processes(&mark).is_empty().then_some(()));
        wait_for(&format!("{at}: an empty directory"), || {
            let left = home.files().into_iter().filter(|file| !file.starts_with("tollgate/"));
            let empty = common::entries(&temporary).is_empty();
            (left.count() == 0 && empty).then_some(())
        });
        let hidden = common::entries(home.path())
            .into_iter()
            .filter(|path| path.to_string_lossy().contains("/.tollgate-"));
        assert_eq!(hidden.count(), 0, "{at}: a directory of the guest's disk is left");
    }
    println!("{number} times");
    let _ = std::io::stdout().flush();
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn ten_killed_sessions_leave_no_guest() {
    let _alone = alone_or_skip!();
    kill(10);
}
