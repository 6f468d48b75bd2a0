//! Instructions that a guest counts: the same in each boot, also beside environments that are timed.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::Home;
use common::text::refusals;
use serde_json::{Value, json};

fn run(home: &Home, words: &[&str]) -> Value {
    let kept = home.path().join("run.json");
    let path = kept.to_str().expect("a path");
    home.output([&["run"], words, &["--in", "vm:exact", "--quiet", "--out", path]].concat());
    let document = serde_json::from_slice(&std::fs::read(&kept).expect("a run")).expect("JSON");
    std::fs::remove_file(&kept).expect("it is there");
    document
}

fn rows(document: &Value) -> impl Iterator<Item = &Value> {
    document["measurements"].as_array().expect("rows").iter()
}

/// The name of a case, and its samples without repetition.
fn counts(row: &Value) -> (String, Vec<f64>) {
    let mut samples: Vec<f64> =
        row["samples"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    samples.sort_unstable_by(f64::total_cmp);
    samples.dedup();
    (format!("{} {}", row["benchmark"], row["params"]), samples)
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn each_boot_counts_the_same_to_the_instruction() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let documents = [(); 3].map(|()| run(&home, &["entry"]));
    for row in rows(&documents[0]).filter(|row| row["status"] == "measured") {
        assert_eq!(
            (&row["unit"], &row["provenance"]),
            (&json!("instructions"), &json!("qemu-icount")),
            "{row}"
        );
        assert_eq!(row["processes"].as_array().map(Vec::len), Some(1), "{row}");
    }
    let [one, others @ ..]: [Vec<_>; 3] =
        documents.each_ref().map(|document| rows(document).map(counts).collect());
    assert!(others.iter().all(|other| one.len() == other.len()));
    // A call that reads the clock takes another path in a part of each second.
    let is_exact = |(_, samples): &&(String, Vec<f64>)| samples.len() == 1;
    for (one, other) in others.iter().flat_map(|other| one.iter().zip(other)) {
        let are_exact = is_exact(&one) && is_exact(&other);
        assert!(!are_exact || one == other, "{one:?} {other:?}");
    }
    let exact = one.iter().filter(is_exact).count();
    let measured = one.iter().filter(|(_, samples)| !samples.is_empty()).count();
    assert!(exact >= 10 && exact * 4 >= measured * 3, "{exact} of {measured} are exact: {one:?}");
    let count = |benchmark: &str| {
        let row = rows(&documents[0]).find(|row| row["benchmark"] == benchmark).expect("a row");
        match counts(row).1.as_slice() {
            &[count] => count,
            samples => panic!("{benchmark}: {samples:?}"),
        }
    };
    // Both cases are user code only: RDTSC is one instruction, and CALL and RET are two.
    assert_eq!((count("entry/rdtsc"), count("entry/call")), (1.0, 2.0));
    assert!(count("entry/syscall") < count("entry/syscall-getpid"));
    assert!(count("entry/int80") < count("entry/int80-getpid"));
}

/// Benchmarks that an arm64 guest counts exactly.
const EXACT: &str = "entry traps/imul traps/branch traps/breakpoint traps/id-register traps/segv traps/alignment traps/signal-install \
    traps/signal-self traps/sigreturn processes/population-memory files/read files/write files/fsync files/fdatasync files/open \
    files/stat files/rename files/unlink files/close-after-write files/small-file ipc/connect ipc/wait ipc/epoll-ctl ipc/file-lock";

/// Those that differ from boot to boot by a few instructions. The kernel makes random numbers of the instants at which the host's
/// messages arrive, and orders the free objects of its caches by them (CONFIG_SLAB_FREELIST_RANDOM). An epoll instance is a tree of
/// addresses of files, and how memset() clears a lock or a file depends on its alignment. Boots without a host have equal counts; with
/// other random numbers, by `rng-seed` of the device tree, these counts change alone.
const BY_ADDRESS: [&str; 6] =
    ["ipc/epoll-ctl", "ipc/file-lock", "files/open", "files/unlink", "files/rename", "files/small-file"];

#[test]
#[ignore = "slow: .ci/run runs it"]
fn each_boot_of_an_arm64_guest_counts_the_same_beside_one_of_x86() {
    let home = Home::new();
    let run = |patterns: &str, environments: &[&str]| {
        let kept = home.path().join("kept");
        let path = kept.to_str().expect("a path");
        let places = environments.iter().flat_map(|name| ["--in", name]);
        let words = ["run"].into_iter().chain(patterns.split_whitespace()).chain(places);
        let output = home.tollgate(words.chain(["--quiet", "--out", path])).assert().get_output().clone();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if common::guest::lacks_arm64(&said) {
            return Err(said);
        }
        assert!(output.status.success(), "{said}");
        let read = |file: &_| serde_json::from_slice(&std::fs::read(file).expect("a run")).expect("JSON");
        if kept.is_file() {
            let one = read(&kept);
            std::fs::remove_file(&kept).expect("it is there");
            return Ok(vec![one]);
        }
        let documents: Vec<Value> = common::entries(&kept).iter().map(read).collect();
        std::fs::remove_dir_all(&kept).expect("it is there");
        Ok(documents)
    };
    let arm64 = "vm:exact,arch=arm64";
    let both = run("entry", &["vm:exact", arm64]);
    let (both, [one, other]) = match (both, run(EXACT, &[arm64]), run(EXACT, &[arm64])) {
        (Ok(both), Ok(one), Ok(other)) => (both, [one, other].map(|mut one| one.remove(0))),
        (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => {
            return println!("skipped: no guest of arm64 can be started: {why}");
        }
    };
    let value = |name: &str| one["facts"][name]["value"].clone();
    assert_eq!((value("cpu.architecture"), value("run.clock")), (json!("aarch64"), json!("cntvct")));
    assert_eq!(value("hypervisor.layers"), json!(["QEMU TCG", "QEMU"]));
    let counts = |document: &Value| rows(document).map(counts).collect::<BTreeMap<_, _>>();
    let ([of_x86, beside], one, other) = ([0, 1].map(|at| counts(&both[at])), counts(&one), counts(&other));
    let mut exact = 0;
    for (name, counted) in one.iter().filter(|(_, counted)| counted.len() == 1) {
        let is_by_address = BY_ADDRESS.iter().any(|by| name.starts_with(&format!("\"{by}\"")));
        for same in [&other, &beside].into_iter().filter_map(|boot| boot.get(name)) {
            let is_near = same.iter().all(|same| (same - counted[0]).abs() < counted[0] / 20.0);
            assert!(
                same == counted || same.len() != 1 || is_by_address && is_near,
                "{name}: {counted:?} {same:?}"
            );
        }
        exact += 1;
    }
    assert!(exact >= 60, "{exact} of {} are exact: {one:?}", one.len());
    // MRS is one instruction, and BL and RET are two; each kernel has an entry of its own.
    let row = |benchmark: &str| format!("\"{benchmark}\" {{}}");
    assert_eq!((&one[&row("entry/rdtsc")], &one[&row("entry/call")]), (&vec![1.0], &vec![2.0]));
    assert_ne!(one[&row("entry/syscall")], of_x86[&row("entry/syscall")]);
    let int80 = rows(&both[1]).find(|row| row["benchmark"] == "entry/int80").expect("a row");
    assert_eq!(
        (&int80["status"], &int80["why"]),
        (&json!("skipped"), &json!("INT 80h is an instruction of x86"))
    );
}

/// The counts of a command in a guest, by case, in order. `more` are words of the command line.
fn counted(home: &Home, more: &[&str]) -> BTreeMap<String, Value> {
    let kept = home.path().join("counted");
    let path = kept.to_str().expect("a path");
    home.output([&["versus", "--quiet", "--out", path], more].concat());
    let files = common::entries(&kept);
    let document: Value = serde_json::from_slice(&std::fs::read(&files[0]).expect("a run")).expect("JSON");
    std::fs::remove_dir_all(&kept).expect("it is there");
    let name = |row: &Value| row["benchmark"].as_str().expect("a name").to_owned();
    rows(&document).map(|row| (name(row), row["samples"].clone())).collect()
}

fn failure(home: &Home, words: &[&str]) -> String {
    let said =
        home.tollgate([&["versus"], words].concat()).assert().code(2).stdout("").get_output().stderr.clone();
    String::from_utf8(said).expect("text")
}

/// A process that keeps all processors busy.
struct Busy(std::process::Child);

impl Busy {
    fn begin() -> Self {
        let spins = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        Self(spins.expect("a shell"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_command_has_the_same_counts_in_two_calls_also_beside_a_busy_loop_and_a_new_file() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let words = ["--in", "vm:exact", "--runs", "4", "ls -l /usr"];
    let one = counted(&home, &words);
    let other = {
        let _busy = Busy::begin();
        // The shell looks at its working directory.
        std::fs::write(home.path().join("written between them"), "text").expect("a file");
        counted(&home, &words)
    };
    for (case, samples) in &one {
        // It comes from a watched execution.
        if case != "versus/rep-iterations" {
            assert_eq!(samples, &other[case], "{case}");
        }
    }
    let median = |case: &str| one[case][0].as_f64().expect("a count");
    assert_eq!(one["versus/instructions"].as_array().map(Vec::len), Some(4));
    let (total, user) = (median("versus/instructions"), median("versus/user-instructions"));
    assert!(user > 100_000.0 && user < total / 2.0 && total < median("versus/first-instructions"), "{one:?}");
    assert!(median("versus/calls") > 50.0 && median("versus/faults") > 50.0, "{one:?}");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn what_a_command_opens_comes_along_and_what_is_around_it_is_executed_in_the_guest() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let directory = home.path().join("tree");
    std::fs::create_dir(&directory).expect("a directory");
    std::fs::write(directory.join("opened"), "text").expect("a file");
    std::fs::write(directory.join("taken"), "more").expect("a file");
    std::os::unix::fs::symlink("opened", directory.join("link")).expect("a link");
    let tree = directory.to_str().expect("a path");
    // Only in the guest it reads a file that nothing opened here.
    let line = format!(
        "test -d /tollgate || exit 0; cmp {tree}/link {tree}/opened && grep -q more {tree}/taken && \
         test $(stat -c %Y {tree}/opened) -gt 1700000000 && test -e {tree}/made && test ! -e {tree}/prepared"
    );
    // It replaces a file that it reads, as git(1) does with its index, so the file is younger than the command.
    let kept = home.path().join("kept").display().to_string();
    std::fs::write(&kept, "text").expect("a file");
    let replace = format!("grep text {kept} && cp {kept} {kept}.new && mv {kept}.new {kept} || exit");
    // It fails if a file has other attributes than the index of git(1).
    let repository = home.path().join("repository").display().to_string();
    let made = format!(
        "command -v git || exit 0; git init -q {repository} && cd {repository} && touch -d 2020-02-02 one two && git add ."
    );
    assert!(
        std::process::Command::new("sh").args(["-c", &made]).status().is_ok_and(|status| status.success())
    );
    let fresh = format!("! command -v git || git -C {repository} diff-files --quiet || exit");
    // A file that only the guest uses is opened here as well.
    let setup = format!(
        "{replace}; {fresh}; touch {tree}/made; grep -c . /dev/null; stat -c %Y {tree}; cmp {tree}/link {tree}/link"
    );
    let conclude = format!("rm -f {tree}/prepared");
    let words = [
        "--in",
        "vm:exact",
        "--runs",
        "2",
        "--no-trace",
        "--with",
        tree,
        "--setup",
        &setup,
        "--conclude",
        &conclude,
        &line,
    ];
    let found = counted(&home, &words);
    assert_eq!(found["versus/instructions"].as_array().map(Vec::len), Some(2));
    assert_eq!(found["versus/calls"], Value::Null);
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn an_execution_that_fails_in_the_guest_or_never_ends_is_not_counted() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let guest = ["--in", "vm:exact", "--quiet", "--no-trace"];
    let fails = "test ! -d /tollgate || { echo 'not here' >&2; exit 5; }";
    let said = failure(&home, &[&guest[..], &[fails]].concat());
    assert!(said.contains("not here") && said.contains("ended with exit status 5"), "{said}");
    // The guest lacks calls that the command uses here; they are named.
    let connects = "test ! -d /tollgate || exit 5; exec 3<> /dev/tcp/127.0.0.1/9 || true";
    let said = failure(&home, &[&guest[..], &["--shell", "bash", connects]].concat());
    assert!(said.contains("calls connect(2)") && said.contains("no network but its loopback"), "{said}");
    let waits = "test ! -d /tollgate || sleep 100000; sleep 0";
    let said = failure(&home, &[&guest[..], &["--timeout", "9s", waits]].concat());
    assert!(said.contains("took longer than 9.0 s") && said.contains("in vm:exact"), "{said}");
    let exits = ["--ignore-failure=5", "--runs", "2", fails];
    let found = counted(&home, &[&guest[..2], &exits].concat());
    assert_eq!(found["versus/instructions"].as_array().map(Vec::len), Some(2));
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn two_command_lines_of_the_kernel_have_names_and_differ_by_function() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let places = ["--in", "with=vm:exact", "--in", "without=vm:exact,append=mitigations=off"];
    let words =
        ["-N", "--runs", "2", "--no-trace", "--by", "function", "--fail-on", "more", "--quiet", "true"];
    let text = home.output([&["versus"], &places[..], &words].concat());
    let row = |begins: &str| {
        let line =
            text.lines().find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("{begins}: {text}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(text.contains("without compared with with"), "{text}");
    // The program's own instructions equal those of the other boot, and the kernel's are fewer.
    let user = row("user ");
    assert_eq!((&user[1], user.last().map(String::as_str)), (&user[2], Some("same")), "{text}");
    assert!(text.contains("fewer") && text.contains("By function\n"), "{text}");
    let text = home.output(["explain", "true", "--in", "vm:exact"]);
    // The program, here the shell, is divided into functions too.
    assert!(text.contains("\nBy function\n") && !text.contains("user space"), "{text}");
}

#[test]
fn what_cannot_be_counted_is_refused_before_a_guest_is_started() {
    let home = Home::new();
    let refused = |words: &[&str]| failure(&home, words);
    let lines = [
        "versus --in vm:exact --in host true",
        "versus --in vm:exact true --cold",
        "versus --in vm:exact true --time 3s",
        "versus --in vm:exact true --export-json a.json",
        "versus --in vm:exact true --until-decided",
        "versus --by function true",
        "versus --in vm:exact --by function --format csv true",
    ];
    insta::assert_snapshot!("not-counted", refusals(&home, lines));
    // Commands are executed here first if there is a guest for them.
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let said = refused(&["--in", "vm:exact,kernel=/no/such/kernel", "true"]);
    let kernel = "kernel=/no/such/kernel";
    assert_eq!(said, format!("tollgate: vm:exact,{kernel}: {kernel}: No such file or directory\n"));
    let said = refused(&["--in", "vm:exact", "echo to standard error >&2; exit 7"]);
    let is_clear = said.contains("to standard error") && said.contains("ended with exit status 7");
    assert!(is_clear && said.contains("on this machine") && said.contains("PATH="), "{said}");
    let said = refused(&["--in", "vm:exact", "-N", "tollgate-no-such-program"]);
    let program = "tollgate-no-such-program";
    let why = format!("{program} on this machine was not started: `{program}` was not found in PATH; ");
    assert!(said.starts_with(&format!("tollgate: {why}")), "{said}");
    let said = refused(&["--in", "vm:exact", "--timeout", "1s", "sleep 1000"]);
    assert!(said.contains("took longer than 1.0 s"), "{said}");
    let said = refused(&["--in", "vm:exact", "--with", "/no/such/file", "true"]);
    assert!(said.starts_with("tollgate: --with /no/such/file: "), "{said}");
    for other in ["/", "/dev/null"] {
        let said = refused(&["--in", "vm:exact", "--with", other, "true"]);
        let why = "only regular files and directories below the root can be copied";
        assert!(said.ends_with(&format!("--with {other}: {why}\n")), "{said}");
    }
    assert!(home.files().is_empty(), "something is kept: {:?}", home.files());
}

#[test]
fn a_directory_without_kernels_is_refused_before_a_guest_is_started() {
    let home = Home::new();
    let refused = |environment: &str, kernels: &str| {
        home.refusal(["run", "entry/call", "--quiet", "--in", environment, "--kernels", kernels])
    };
    assert_eq!(
        refused("vm:exact", "/no/such/directory"),
        "--kernels /no/such/directory: No such file or directory"
    );
    let of_command = ["versus", "--in", "vm:exact", "--kernels", "/no/such/directory", "true"];
    assert_eq!(home.refusal(of_command), "--kernels /no/such/directory: No such file or directory");
    let none = "--kernels .: it has no kernel; unpack packages into it with dpkg -x";
    assert_eq!(refused("vm:exact", "."), none);
    std::fs::create_dir(home.path().join("boot")).expect("a directory");
    std::fs::write(home.path().join("boot/vmlinuz-6.1.0-9-arm64"), "MZ").expect("a file");
    let other = "it is not a kernel for x86-64; a bzImage or a vmlinux would be right";
    assert_eq!(refused("vm:exact", "."), format!("--kernels .: ./boot/vmlinuz-6.1.0-9-arm64: {other}"));
    let two = ["run", "entry/call", "--quiet", "--in", "host", "--in", "vm:exact", "--kernels", "."];
    let said = home.refusal(two);
    assert!(said.contains("give one environment of kind vm"), "{said}");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn each_kernel_of_a_directory_is_a_column_in_the_order_of_releases() {
    let home = Home::new();
    let Some(kernels) = std::env::var("TOLLGATE_KERNELS").ok().filter(|_| home.no_guest().is_none()) else {
        return println!("skipped: no kernels, or no guest");
    };
    let words = ["run", "entry/call", "entry/syscall-getpid", "--in", "vm:exact", "--kernels", &kernels];
    let text = home.output([&words[..], &["--quiet"]].concat());
    let line = |begins: &str| {
        let line = text.lines().find(|line| line.starts_with(begins));
        line.unwrap_or_else(|| panic!("{begins}: {text}")).split_whitespace().collect::<Vec<_>>()
    };
    let (generic, clouds) = (line("A  ")[1], line("B  ")[1]);
    assert!(clouds.contains("-cloud-") && !generic.contains("cloud"), "{text}");
    // The two are built with other options.
    assert!(matches!(line("entry/syscall-getpid")[..], [_, _, _, "+" | "-"]), "{text}");
    assert!(text.contains("1 case the same in all kernels."), "{text}");
    // The same two execute a command.
    let words =
        ["versus", "--in", "vm:exact", "--kernels", &kernels, "-N", "--runs", "1", "--no-trace", "true"];
    let of_command = home.output(words);
    assert!(of_command.contains(&format!("\n{clouds} compared with {generic}\n")), "{of_command}");
    let csv = home.output(["export", "last", "--format", "csv", "--out", "-"]);
    assert!(csv.contains(&format!(",{generic},")) && csv.contains(&format!(",{clouds},")), "{csv}");
    let page = home.path().join("page.html");
    home.output(["report", "last", "--out", page.to_str().expect("a path")]);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(
        page.contains("Instructions by kernel") && page.contains("<tr><th>entry/call<td>2<td>2 ="),
        "no table"
    );
}

/// Makes a directory of a kernel that crashes at its first instruction, with the modules of this one. Returns its release.
fn make_crashing(kernel: &Path, directory: &Path) -> String {
    let release =
        kernel.file_name().and_then(|name| name.to_str()?.strip_prefix("vmlinuz-")).expect("a release");
    let other = release.replacen('6', "9", 1);
    let mut bytes = std::fs::read(kernel).expect("a kernel");
    // Documentation/arch/x86/boot.rst: the release, and the sectors before the code.
    let at = 0x200 + usize::from(u16::from_le_bytes([bytes[0x20e], bytes[0x20f]]));
    assert!(bytes[at..].starts_with(release.as_bytes()), "no release");
    bytes[at..at + other.len()].copy_from_slice(other.as_bytes());
    let setup = 512 * (1 + usize::from(bytes[0x1f1]));
    // UD2, which resets a processor without handlers.
    bytes[setup..].chunks_exact_mut(2).for_each(|code| code.copy_from_slice(&[0x0f, 0x0b]));
    let modules =
        kernel.parent().and_then(Path::parent).expect("a package").join("lib/modules").join(release);
    for made in ["boot", "lib/modules"] {
        std::fs::create_dir_all(directory.join(made)).expect("a directory");
    }
    std::fs::write(directory.join("boot").join(format!("vmlinuz-{other}")), bytes).expect("written");
    std::os::unix::fs::symlink(modules, directory.join("lib/modules").join(&other)).expect("a link");
    other
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_kernel_that_does_not_boot_is_left_out_of_a_comparison_that_needs_two() {
    let home = Home::new();
    let Some(kernels) = std::env::var("TOLLGATE_KERNELS").ok().filter(|_| home.no_guest().is_none()) else {
        return println!("skipped: no kernels, or no guest");
    };
    let booting = common::entries(Path::new(&kernels)).into_iter().flat_map(|package| {
        common::entries(&package.join("boot"))
            .into_iter()
            .filter(|file| file.display().to_string().contains("/vmlinuz-"))
    });
    let booting: Vec<PathBuf> = booting.filter(|file| file.display().to_string().contains("amd64")).collect();
    let [one, other, ..] = booting.as_slice() else { return println!("skipped: one kernel") };
    let place = home.path().join("kernels");
    let crashing = make_crashing(one, &place.join("crashing"));
    let add = |kernel: &Path, name: &str| {
        let package = kernel.parent().and_then(Path::parent).expect("a package");
        std::os::unix::fs::symlink(package, place.join(name)).expect("a link");
    };
    add(one, "one");
    let words = [
        "versus",
        "--in",
        "vm:exact",
        "--kernels",
        "kernels",
        "-N",
        "--runs",
        "1",
        "--no-trace",
        "--quiet",
        "true",
    ];
    let why = home.refusal(words);
    assert!(why.starts_with(&format!("nothing was compared: {crashing}: ")), "{why}");
    add(other, "other");
    let output = home.tollgate(words).assert().success().get_output().clone();
    let said = common::one_line(&output.stderr);
    let shown = String::from_utf8(output.stdout).expect("text");
    assert!(said.starts_with(&format!("{crashing}: ")) && !shown.contains(&crashing), "{said}: {shown}");
    assert_eq!(shown.matches(" compared with ").count(), 1, "{shown}");
    let judged = home.tollgate(words.into_iter().chain(["--fail-on", "more"])).assert().code(3);
    let said = String::from_utf8_lossy(&judged.get_output().stderr);
    assert!(said.ends_with("--fail-on: 2 of 3 environments were measured\n"), "{said}");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_guest_that_audits_counts_what_its_rules_add() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    if !["/usr/sbin/auditctl", "/sbin/auditctl"].iter().any(|file| Path::new(file).exists()) {
        return println!("skipped: no auditctl");
    }
    home.file("rules", "-a always,exit -F arch=b64 -S getpid\n");
    home.file("wrong", "# two lines\n\n-a never,nowhere\n");
    let words = ["--in", "vm:exact", "--in", "audited=vm:exact,audit=rules", "--quiet", "--format", "json"];
    let made = home.json(["run", "entry/syscall-getpid"].into_iter().chain(words));
    let row = &made["comparison"]["rows"][0];
    let [base, other] = ["base", "other"].map(|side| row[side].as_f64().expect("instructions"));
    // A rule of the call makes a record of it.
    assert!(other > 2.0 * base, "{row}");
    let facts = made["comparison"]["facts"].as_array().expect("facts");
    assert!(facts.iter().any(|fact| fact["name"] == "audit.rules" && fact["proven"] == true), "{facts:?}");
    let why = failure(&home, &["--in", "vm:exact,audit=wrong", "true"]);
    assert!(why.contains("auditctl refuses line 3 of wrong, `-a never,nowhere`: "), "{why}");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn what_is_of_caches_is_not_counted_and_says_so_and_calls_on_files_are_in_its_memory() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let document = run(&home, &["entry/call", "memory/latency", "files/stat"]);
    for row in rows(&document) {
        let expected = match row["benchmark"].as_str().expect("a name") {
            "entry/call" | "files/stat" => "measured",
            _ => "not measured",
        };
        assert_eq!(row["status"], expected, "{row}");
        if expected == "not measured" {
            assert_eq!(row["why"], "memory is not counted, and a guest under QEMU's translator has no times");
        }
    }
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn the_host_is_timed_beside_a_guest_that_is_counted() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    home.output(["run", "entry/syscall", "--in", "host", "--in", "vm:exact", "--processes", "1", "--quiet"]);
    let documents: Vec<Value> = common::entries(&home.runs())
        .iter()
        .map(|path| serde_json::from_slice(&std::fs::read(path).expect("a run")).expect("JSON"))
        .collect();
    let unit = |document: &Value| {
        let row = rows(document).find(|row| row["benchmark"] == "entry/syscall").expect("a row");
        (row["status"] == "measured").then(|| row["unit"].to_string())
    };
    let mut units: Vec<Option<String>> = documents.iter().map(unit).collect();
    units.sort();
    assert_eq!(units, [Some("\"instructions\"".to_owned()), Some("\"ns\"".to_owned())]);
}
