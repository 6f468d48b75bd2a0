//! Direct I/O: the programs of docs/direct-io.md do what the page says, and a trace names the call whose buffer is misaligned.
//! Languages that are not installed are skipped, and so are file systems without direct I/O.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::Home;
use serde_json::Value;

/// A file of two pages on which direct I/O works, and the page's programs.
struct Scene {
    directory: tempfile::TempDir,
    data: PathBuf,
    page: String,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let data = directory.path().join("data");
        fs::write(&data, [7u8; 8192]).expect("written");
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/direct-io.md");
        Self { directory, data, page: fs::read_to_string(page).expect("a page") }
    }

    fn source(&self, language: &str, name: &str) -> PathBuf {
        let begin = format!("\n```{language}\n");
        let program =
            self.page.split_once(&begin).and_then(|(_, rest)| rest.split_once("\n```")).expect("a program").0;
        let path = self.directory.path().join(name);
        fs::write(&path, format!("{program}\n")).expect("written");
        path
    }

    /// Compiles with this command, to which the target's path is added; `None` if there is no compiler.
    fn compiled(&self, mut compiler: Command) -> Option<PathBuf> {
        let target = self.directory.path().join("program");
        compiler.arg(&target).current_dir(self.directory.path());
        let name = compiler.get_program().to_string_lossy().into_owned();
        match compiler.output() {
            Err(_) => {
                println!("skipped: there is no {name} here");
                None
            }
            Ok(output) => {
                assert!(output.status.success(), "{name}: {output:?}");
                Some(target)
            }
        }
    }

    fn compiled_c(&self) -> Option<PathBuf> {
        let source = self.source("c", "program.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-Wall", "-Werror"]).arg(source).arg("-o");
        self.compiled(compiler)
    }

    /// `None` if the file system has no direct I/O.
    fn lines(&self, program: &mut Command) -> Option<Vec<String>> {
        let output = program.arg(&self.data).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() && said.to_lowercase().contains("invalid argument") {
            println!("skipped: this file system has no direct I/O: {said}");
            return None;
        }
        assert!(output.status.success(), "{output:?}");
        Some(String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect())
    }

    /// Checks the output of every program. The kernel's text for EINVAL differs in case.
    fn expect(&self, program: &mut Command) {
        let Some(lines) = self.lines(program) else { return };
        let [aligned, later] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!(aligned, "aligned: 4096");
        let later = later.strip_prefix("a byte later: ").expect("a second answer").to_lowercase();
        assert!(later == "4096" || later.starts_with("invalid argument"), "{later}");
    }
}

#[test]
fn the_program_in_c_reads_into_an_aligned_buffer() {
    let scene = Scene::new();
    let Some(program) = scene.compiled_c() else { return };
    scene.expect(&mut Command::new(program));
}

#[test]
fn the_program_in_go_reads_into_an_aligned_buffer() {
    let scene = Scene::new();
    let source = scene.source("go", "program.go");
    if Command::new("go").arg("version").output().is_err() {
        println!("skipped: there is no go here");
        return;
    }
    let target = scene.directory.path().join("program");
    let mut compiler = Command::new("go");
    compiler.args(["build", "-o"]).arg(&target).arg(&source);
    // The standard library is compiled only once.
    compiler.env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go")).env("GO111MODULE", "off");
    let output = compiler.output().expect("it was there before");
    assert!(output.status.success(), "{output:?}");
    scene.expect(&mut Command::new(target));
}

#[test]
fn the_program_in_rust_reads_into_an_aligned_buffer() {
    let scene = Scene::new();
    let source = scene.source("rust", "program.rs");
    let mut compiler = Command::new("rustc");
    compiler.args(["--edition", "2024", "-D", "warnings"]).arg(source).arg("-o");
    let Some(program) = scene.compiled(compiler) else { return };
    scene.expect(&mut Command::new(program));
}

#[test]
fn the_program_in_python_reads_into_an_aligned_buffer() {
    let scene = Scene::new();
    let source = scene.source("python", "program.py");
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3 here");
        return;
    }
    scene.expect(Command::new("python3").arg(source));
}

#[test]
fn a_trace_names_the_call_whose_buffer_is_misaligned() {
    let scene = Scene::new();
    let Some(program) = scene.compiled_c() else { return };
    let Some(lines) = scene.lines(&mut Command::new(&program)) else { return };
    if lines.iter().any(|line| line == "a byte later: 4096") {
        println!("skipped: this file system accepts a misaligned buffer");
        return;
    }
    let data = scene.data.canonicalize().expect("a path");
    for backend in ["bpf", "ptrace"] {
        let home = Home::new();
        let mut tollgate =
            home.tollgate(["trace", "--by", "file", "--backend", backend, "--format", "json", "--"]);
        let output: Output = tollgate.arg(&program).arg(&data).output().expect("it starts");
        if output.status.code() == Some(2) {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
            continue;
        }
        // The command's own two lines come first.
        let text = String::from_utf8(output.stdout).expect("text");
        let document: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
        let [one] = document["misaligned"].as_array().expect("a list").as_slice() else {
            panic!("{backend}: {}", document["misaligned"]);
        };
        assert_eq!(one["path"], data.to_str().expect("text"), "{backend}");
        assert_eq!((&one["call"], &one["count"]), (&Value::from("pread64"), &Value::from(1)), "{backend}");
        assert_eq!((&one["offset"], &one["length"]), (&Value::from(0), &Value::from(4096)), "{backend}");
        assert_eq!(one["address"].as_u64().expect("an address") % 4096, 1, "{backend}");
        let needs = one["needs"]["memory"].as_u64().expect("what the file needs");
        assert!(needs.is_power_of_two() && needs > 1, "{one}");
        let mut tollgate = home.tollgate(["trace", "--by", "file", "--backend", backend, "--"]);
        let output = tollgate.arg(&program).arg(&data).output().expect("it starts");
        let text = String::from_utf8(output.stderr).expect("text");
        let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("the address is 1 beyond a multiple") && said.contains("docs/direct-io.md"),
            "{text}"
        );
        assert!(said.contains(&format!("multiples of {needs} bytes")), "{text}");
    }
}
