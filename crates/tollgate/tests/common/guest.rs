//! A guest whose first process is a program of ours, on the machine that tollgate makes for `--in vm`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether a run failed because there is nothing to make a guest of arm64 of.
pub fn lacks_arm64(said: &str) -> bool {
    ["no kernel is found", "is not installed", "needs tollgate for arm64"]
        .iter()
        .any(|why| said.contains(why))
}

/// A program of tests/vm, compiled to one static file. `None`, with a message, if there is no such compiler.
pub fn compiled(compiler: &str, directory: &Path, source: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vm").join(source);
    let program = directory.join("program");
    let built =
        Command::new(compiler).args(["-static", "-O2", "-pthread", "-o"]).args([&program, &source]).output();
    match built {
        Err(error) => {
            println!("skipped: there is no C compiler {compiler}: {error}");
            return None;
        }
        Ok(built) => assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr)),
    }
    Some(program)
}

/// Returns, for each mark, the rest of the line after it in the output of the guest's first process, `init`. `said` is the
/// output of a run with `--verbose`: the guest gets the arguments that it gave QEMU, and these files.
pub fn says<const N: usize>(
    directory: &Path,
    said: &str,
    files: &[(&str, &Path)],
    marks: [&str; N],
) -> [String; N] {
    let (_, rest) = said.split_once(": command: ").expect("the command");
    let line = rest.lines().next().expect("a line");
    let words = Command::new("sh").args(["-c", &format!("printf '%s\\n' {line}")]).output().expect("a shell");
    let mut words: Vec<String> =
        String::from_utf8(words.stdout).expect("text").lines().map(str::to_owned).collect();
    let (image, console) = (directory.join("initramfs"), directory.join("console"));
    fs::write(&image, archive(files)).expect("written");
    let at = words.iter().position(|word| word == "-initrd").expect("an initramfs");
    words[at + 1] = image.display().to_string();
    let at = words.iter().position(|word| word.starts_with("file,id=console,path=")).expect("a console");
    words[at] = format!("file,id=console,path={}", console.display());
    // That is in tollgate's memory. The kernel's file counts the same.
    let (_, kernel) = said.split_once(": kernel: ").expect("the kernel");
    let kernel = kernel.lines().next().and_then(|line| Some(line.strip_suffix(')')?.split_once('(')?.1));
    let at = words.iter().position(|word| word == "-kernel").expect("a kernel");
    words[at + 1] = kernel.expect("its file").to_owned();
    // The monitor's protocol uses a descriptor of tollgate's, and so does the plugin, if there is one.
    for own in [
        "socket,id=monitor,",
        "chardev=monitor,",
        "/proc/self/fd/",
        "socket,id=gate,",
        "isa-debugcon,iobase=233,",
    ] {
        if let Some(at) = words.iter().position(|word| word.starts_with(own)) {
            words.drain(at - 1..=at);
        }
    }
    let mut timed = Command::new("timeout");
    timed.arg("300").args(&words).stdin(Stdio::null());
    let output = timed.output().expect("started");
    let text = fs::read_to_string(&console).unwrap_or_default();
    marks.map(|mark| {
        let line = text.lines().find_map(|line| Some(line.split_once(mark)?.1.to_owned()));
        line.unwrap_or_else(|| panic!("no {mark:?}: {text}\n{}", String::from_utf8_lossy(&output.stderr)))
    })
}

/// An archive in the newc format of cpio(5): programs, and a console like the one that the kernel gives its first process.
fn archive(files: &[(&str, &Path)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut entry = |name: &str, mode: u32, device: [u32; 2], content: &[u8]| {
        let size = u32::try_from(content.len()).expect("small");
        let length = u32::try_from(name.len() + 1).expect("short");
        let fields = [1, mode, 0, 0, 1, 0, size, 0, 0, device[0], device[1], length, 0];
        bytes.extend(b"070701");
        fields.iter().for_each(|field| bytes.extend(format!("{field:08x}").bytes()));
        for part in [&[name.as_bytes(), b"\0"].concat()[..], content] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
    };
    entry("dev", 0o040_755, [0, 0], b"");
    entry("dev/console", 0o020_600, [5, 1], b"");
    for (name, file) in files {
        entry(name, 0o100_755, [0, 0], &fs::read(file).expect("the program"));
    }
    entry("TRAILER!!!", 0, [0, 0], b"");
    bytes
}
