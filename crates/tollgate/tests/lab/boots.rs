//! `tollgate lab --image`: a QEMU machine boots the CD that docs/lab.md makes of the image, and its serial port is read back.

use std::path::Path;
use std::process::{Command, Stdio};

use tollgate_os::process::Program;

use super::common::{Home, wait_for};
use super::{experiments, has_qemu, named};

/// The documented lines: the only block of docs/lab.md with `grub-mkrescue`.
fn documented() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let mut blocks = page.split("```").skip(1).step_by(2);
    blocks.find(|block| block.contains("\ngrub-mkrescue ")).expect("lines with grub-mkrescue").to_owned()
}

#[test]
fn grub_boots_it_from_the_documented_cd() {
    if !has_qemu() {
        return;
    }
    let home = Home::new();
    home.output(["lab", "--image", "lab.bin"]);
    let made = Command::new("sh").args(["-ec", &documented()]).current_dir(home.path()).output();
    let made = made.expect("a shell");
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr);
        return println!("skipped: grub-mkrescue makes no image: {}", why.lines().last().unwrap_or_default());
    }
    let arguments = "-nodefaults -display none -no-reboot -m 128 -accel tcg -cpu Haswell,check=off -serial file:serial.txt \
                     -device isa-debug-exit,iobase=0xf4,iosize=4 -cdrom lab.iso";
    let mut command = Command::new("qemu-system-x86_64");
    command.args(arguments.split_whitespace()).current_dir(home.path()).stdin(Stdio::null());
    let mut machine = Program(command.spawn().expect("started"));
    let status = wait_for("the end of QEMU", || machine.0.try_wait().expect("a child"));
    // isa-debug-exit: (value << 1) | 1, and the kernel's value is 0.
    assert_eq!(status.code(), Some(1));
    let document = home.json(["lab", "--from", "serial.txt", "--format", "json"]);
    assert_eq!(experiments(&document).len(), 31);
    assert_eq!(named(&document, "int")["status"], "done");
    assert_eq!(named(&document, "cr3-pcid")["status"], "lacking");
    assert_eq!(document["remarks"], serde_json::json!([]), "no record is lost");
}
