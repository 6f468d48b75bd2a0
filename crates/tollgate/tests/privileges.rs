//! The user does not get rights that the program's file brings by set-user-ID, set-group-ID and capabilities.

mod common;

use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fs, io};

use common::{is_root, readable_copy};
use rustix::fs::XattrFlags;
use tempfile::TempDir;

/// A user and a group that own nothing.
const USER: u32 = 54_321;
/// Numbers of linux/capability.h.
const DAC_OVERRIDE: u32 = 1;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// A copy of the program in a directory that every user may read.
struct Shared {
    directory: TempDir,
    program: PathBuf,
}

impl Shared {
    /// The error says why a file there brings no rights.
    fn new() -> Result<Self, String> {
        if !is_root() {
            return Err("needs root (a file that has privileges)".to_owned());
        }
        let directory = common::public_directory();
        let mount = rustix::fs::statvfs(directory.path()).expect("statvfs(3)");
        if mount.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID) {
            return Err(format!("{} is mounted nosuid", directory.path().display()));
        }
        let program = readable_copy(directory.path());
        Ok(Self { directory, program })
    }

    fn has_mode(&self, mode: u32) {
        chown(&self.program, Some(0), Some(0)).expect("our own file");
        fs::set_permissions(&self.program, fs::Permissions::from_mode(mode)).expect("our own file");
    }

    /// Gives the file these capabilities, permitted and effective: struct vfs_cap_data of linux/capability.h, revision 2.
    fn may(&self, capabilities: &[u32]) -> io::Result<()> {
        const REVISION_2_EFFECTIVE: u32 = 0x0200_0001;
        let set = capabilities.iter().fold(0_u64, |set, capability| set | 1 << capability);
        let words = [REVISION_2_EFFECTIVE, set as u32, 0, (set >> 32) as u32, 0];
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(rustix::fs::setxattr(&self.program, "security.capability", &bytes, XattrFlags::empty())?)
    }

    fn run<'a>(&self, words: impl IntoIterator<Item = &'a (impl AsRef<OsStr> + ?Sized + 'a)>) -> Output {
        let mut command = Command::new(&self.program);
        command.args(words).uid(USER).gid(USER).current_dir("/").env("HOME", "/").stdin(Stdio::null());
        command.output().expect("started")
    }
}

fn refusal(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

fn secret(directory: &Path) -> PathBuf {
    let file = directory.join("secret");
    fs::write(&file, "a secret\n").expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("our own file");
    file
}

#[test]
fn a_file_that_is_set_user_id_or_set_group_id_is_refused() {
    let shared = match Shared::new() {
        Ok(shared) => shared,
        Err(why) => return println!("skipped: {why}"),
    };
    for (mode, bit) in [(0o4755, "set-user-ID"), (0o2755, "set-group-ID"), (0o6755, "set-user-ID")] {
        shared.has_mode(mode);
        let said = refusal(&shared.run(["list"]));
        assert!(said.contains(bit) && said.lines().count() == 1, "{said}");
    }
    shared.has_mode(0o755);
    assert!(shared.run(["list"]).status.success());
}

#[test]
fn capabilities_of_the_file_trace_the_users_own_command_and_no_other_process() {
    let shared = match Shared::new() {
        Ok(shared) => shared,
        Err(why) => return println!("skipped: {why}"),
    };
    if let Err(error) = shared.may(&[BPF, PERFMON, DAC_OVERRIDE]) {
        return println!("skipped: the file takes no capabilities: {error}");
    }
    // With CAP_DAC_OVERRIDE the program would read it, and say that it is not a run.
    let file = secret(shared.directory.path());
    let said = refusal(&shared.run([OsStr::new("show"), file.as_os_str()]));
    assert!(said.contains("cap_dac_override") && said.contains("ermission denied"), "{said}");
    let own = std::process::id().to_string();
    for words in [
        &["trace", "--for", "1", "-p", &own][..],
        &["trace", "--for", "1", "--cgroup", "/sys/fs/cgroup"],
        &["trace", "--blocked", "true"],
        &["trace", "--stacks", "/tmp/never", "true"],
    ] {
        let said = refusal(&shared.run(words));
        assert!(said.contains("the capabilities of this program's file"), "{words:?}: {said}");
    }
    let script = "grep -E '^(NoNewPrivs|CapEff)' /proc/self/status | tr -d '\\t\\n'";
    let traced = shared.run(["trace", "--quiet", "--backend", "bpf", "sh", "-c", script]);
    if !traced.status.success() {
        return println!("skipped: {}", String::from_utf8_lossy(&traced.stderr));
    }
    assert_eq!(String::from_utf8_lossy(&traced.stdout), "CapEff:0000000000000000NoNewPrivs:1");
}
