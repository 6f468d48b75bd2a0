//! The rules of ARCHITECTURE.md: imports between crates go down its floors, and the files of a crate do not import each other
//! cyclically, except a module and its submodules.

#![allow(clippy::panic, clippy::unwrap_used)] // A test may stop at the first surprise, its helpers too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use syn::visit::Visit;

/// From the top: a crate imports only from those after it.
const FLOORS: [&str; 22] = [
    "tollgate",
    "tollgate-claims",
    "tollgate-store",
    "tollgate-view",
    "tollgate-suites",
    "tollgate-lab",
    "tollgate-environments",
    "tollgate-engine",
    "tollgate-trace",
    "tollgate-dump",
    "tollgate-inspect",
    "tollgate-kconfig",
    "tollgate-kvm",
    "tollgate-schedules",
    "tollgate-output",
    "tollgate-os",
    "tollgate-model",
    "tollgate-versus",
    "tollgate-alternation",
    "tollgate-statistics",
    "tollgate-arch",
    "tollgate-x86",
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The crates of this workspace that a manifest names, without dev-dependencies.
fn imports(manifest: &str) -> Vec<&str> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]") && section != "[dev-dependencies]" {
            found.extend(line.split([' ', '.', '=']).next().filter(|name| name.starts_with("tollgate-")));
        }
    }
    found
}

#[test]
fn imports_between_crates_run_down_the_floors() {
    let floor = |name: &str| {
        FLOORS.iter().position(|known| *known == name).unwrap_or_else(|| panic!("{name} has no floor"))
    };
    let (mut seen, mut edges) = (0, 0);
    for entry in fs::read_dir(crates()).unwrap() {
        let path = entry.unwrap().path();
        let Ok(manifest) = fs::read_to_string(path.join("Cargo.toml")) else { continue };
        let name = path.file_name().unwrap().to_str().unwrap();
        seen += 1;
        for import in imports(&manifest) {
            edges += 1;
            assert!(floor(name) < floor(import), "{name} imports {import}, which lies on a floor above");
        }
    }
    println!("{seen} crates, {edges} imports");
    assert!(seen == FLOORS.len() && edges >= 30, "{seen} crates, {edges} imports");
}

/// With the manifest's setting Cargo does not find test programs by itself, and would ignore a file that nothing names.
#[test]
fn every_file_of_tests_is_in_a_program() {
    let mut seen = 0;
    for entry in fs::read_dir(crates()).unwrap() {
        let path = entry.unwrap().path();
        let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
        if !manifest.lines().any(|line| line == "autotests = false") {
            continue;
        }
        let files: Vec<PathBuf> =
            fs::read_dir(path.join("tests")).unwrap().map(|file| file.unwrap().path()).collect();
        let names: Vec<&str> = files
            .iter()
            .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
            .map(|file| file.file_stem().unwrap().to_str().unwrap())
            .collect();
        let is_program = |name: &&str| manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
        let programs = names.iter().copied().filter(is_program);
        let modules: String =
            programs.map(|name| fs::read_to_string(path.join(format!("tests/{name}.rs"))).unwrap()).collect();
        let is_module = |name: &str| modules.lines().any(|line| line == format!("mod {name};"));
        for name in names {
            assert!(is_program(&name) || is_module(name), "{}: no program has {name}.rs", path.display());
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} files");
}

type Names = Vec<String>;

#[derive(Default)]
struct Module {
    file: PathBuf,
    /// Its imports: the local name, and the whole path within the crate.
    uses: Vec<(String, Names)>,
    /// The paths in its code, as whole paths within the crate.
    paths: Vec<Names>,
    items: BTreeSet<String>,
}

/// The modules of a crate by their paths, without those for tests.
#[derive(Default)]
struct House {
    modules: BTreeMap<Names, Module>,
    /// Every file that was read, including those for tests.
    read: BTreeSet<PathBuf>,
    /// The module that each file begins.
    begins: BTreeMap<PathBuf, Names>,
    /// The calls that each of these makes.
    calls: BTreeMap<PathBuf, Calls>,
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let words = list.tokens.to_string();
            words.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test") && !words.contains("not")
        }
        _ => false,
    })
}

/// The leaves of a `use`: the name that each gets, `*` for all, and its path.
fn leaves(tree: &syn::UseTree, path: &[String], found: &mut Vec<(String, Names)>) {
    let with = |name: &syn::Ident| [path, &[name.to_string()]].concat();
    match tree {
        syn::UseTree::Path(tree) => leaves(&tree.tree, &with(&tree.ident), found),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, path, found)),
        syn::UseTree::Name(name) if name.ident == "self" => {
            found.push((path.last().unwrap().clone(), path.to_vec()));
        }
        syn::UseTree::Name(name) => found.push((name.ident.to_string(), with(&name.ident))),
        syn::UseTree::Rename(name) => found.push((name.rename.to_string(), with(&name.ident))),
        syn::UseTree::Glob(_) => found.push(("*".to_owned(), path.to_vec())),
    }
}

/// The paths of code, as written.
#[derive(Default)]
struct Paths(Vec<Names>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut found = Vec::new();
        leaves(&item.tree, &[], &mut found);
        self.0.extend(found.into_iter().map(|(_, path)| path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    /// The input of a macro has no syntax: words joined by `::` are taken for paths.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let text = call.tokens.to_string().replace(" :: ", "::");
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        self.0.extend(
            words
                .filter(|word| word.contains("::"))
                .map(|word| word.split("::").map(str::to_owned).collect()),
        );
    }
}

/// Those of all crates, which all tests read once.
static HOUSES: LazyLock<BTreeMap<&str, House>> = LazyLock::new(|| {
    FLOORS.iter().map(|name| (*name, House::read(&crates().join(name).join("src")))).collect()
});

impl House {
    fn read(source: &Path) -> Self {
        let mut house = Self::default();
        let root = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|root| root.exists());
        house.file(&root.expect("a root"), source, &[], false);
        house
    }

    fn file(&mut self, file: &Path, below: &Path, path: &[String], for_tests: bool) {
        self.read.insert(file.to_owned());
        let parsed = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap();
        if !for_tests {
            self.begins.insert(file.to_owned(), path.to_vec());
            let mut calls = Calls::default();
            calls.visit_file(&parsed);
            self.calls.insert(file.to_owned(), calls);
        }
        self.items(parsed.items, file, below, path, for_tests);
    }

    fn items(&mut self, items: Vec<syn::Item>, file: &Path, below: &Path, path: &[String], for_tests: bool) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        let (mut uses, mut code) = (Vec::new(), Paths::default());
        for item in items {
            match item {
                // Code that the tests of several crates share is outside of each.
                syn::Item::Mod(part) if part.attrs.iter().any(|named| named.path().is_ident("path")) => {}
                syn::Item::Mod(part) => {
                    let name = part.ident.to_string();
                    let path = [path, std::slice::from_ref(&name)].concat();
                    let for_tests = for_tests || is_for_tests(&part.attrs);
                    let below = below.join(&name);
                    match part.content {
                        Some((_, items)) => self.items(items, file, &below, &path, for_tests),
                        None => {
                            let files = [below.with_extension("rs"), below.join("mod.rs")];
                            let found = files.iter().find(|file| file.exists()).expect("the module's file");
                            self.file(found, &below, &path, for_tests);
                        }
                    }
                }
                syn::Item::Use(item) if !is_for_tests(&item.attrs) => leaves(&item.tree, &[], &mut uses),
                item => {
                    let (name, attributes) = match &item {
                        syn::Item::Fn(item) => (Some(&item.sig.ident), &item.attrs),
                        syn::Item::Struct(item) => (Some(&item.ident), &item.attrs),
                        syn::Item::Enum(item) => (Some(&item.ident), &item.attrs),
                        syn::Item::Const(item) => (Some(&item.ident), &item.attrs),
                        syn::Item::Static(item) => (Some(&item.ident), &item.attrs),
                        syn::Item::Trait(item) => (Some(&item.ident), &item.attrs),
                        syn::Item::Type(item) => (Some(&item.ident), &item.attrs),
                        syn::Item::Impl(item) => (None, &item.attrs),
                        _ => (None, &Vec::new()),
                    };
                    if !is_for_tests(attributes) {
                        module.items.extend(name.map(ToString::to_string));
                        code.visit_item(&item);
                    }
                }
            }
        }
        if for_tests {
            return;
        }
        let is_part = |name: &String| self.modules.contains_key(&[path, std::slice::from_ref(name)].concat());
        let whole = |given: &Names| {
            let mut at = path.to_vec();
            let mut rest = given.as_slice();
            while let Some((first, others)) = rest.split_first() {
                match first.as_str() {
                    "crate" => at.clear(),
                    "super" => at.truncate(at.len().saturating_sub(1)),
                    "self" => {}
                    _ if rest.len() == given.len() && !is_part(first) => return None,
                    _ => break,
                }
                rest = others;
            }
            (given.len() > 1).then(|| [at.as_slice(), rest].concat())
        };
        module.uses = uses.iter().filter_map(|(name, path)| Some((name.clone(), whole(path)?))).collect();
        module.paths = code.0.iter().filter_map(whole).collect();
        self.modules.insert(path.to_vec(), module);
    }

    /// The file that defines what a path names, through the `use` that re-exports it.
    fn found(&self, path: &[String], depth: usize) -> &Path {
        let known = (0..=path.len()).rev().find(|&length| self.modules.contains_key(&path[..length]));
        let (module, rest) = path.split_at(known.expect("the root"));
        let module = &self.modules[module];
        let Some((name, others)) = rest.split_first().filter(|_| depth < 20) else { return &module.file };
        if module.items.contains(name) {
            return &module.file;
        }
        if let Some((_, on)) = module.uses.iter().find(|(named, _)| named == name) {
            return self.found(&[on, others].concat(), depth + 1);
        }
        let all = module.uses.iter().filter(|(named, _)| named == "*");
        let passed_on = all.map(|(_, on)| self.found(&[on, rest].concat(), depth + 1));
        passed_on.into_iter().find(|file| **file != module.file).unwrap_or(&module.file)
    }

    fn edges(&self) -> BTreeSet<(&Path, &Path)> {
        let edges = self.modules.values().flat_map(|module| {
            let paths = module.uses.iter().map(|(_, path)| path).chain(&module.paths);
            paths.map(|path| (module.file.as_path(), self.found(path, 0)))
        });
        edges.filter(|(from, to)| from != to).collect()
    }

    /// Whether the module of one file contains that of the other.
    fn is_whole_of(&self, whole: &Path, part: &Path) -> bool {
        self.begins[part].starts_with(&self.begins[whole])
    }

    /// The cycles: those among submodules, and those through their parent.
    fn circles(&self) -> BTreeSet<BTreeSet<&Path>> {
        let edges = self.edges();
        let without_up = edges.iter().copied().filter(|(from, to)| !self.is_whole_of(to, from));
        let without_down = edges.iter().copied().filter(|(from, to)| !self.is_whole_of(from, to));
        let mut found = circles(without_up);
        found.extend(circles(without_down));
        let is_part =
            |circle: &BTreeSet<&Path>| found.iter().any(|other| other != circle && circle.is_subset(other));
        found.iter().filter(|circle| circle.len() > 1 && !is_part(circle)).cloned().collect()
    }
}

/// The strongly connected components of more than one node.
fn circles<'a>(edges: impl Iterator<Item = (&'a Path, &'a Path)>) -> BTreeSet<BTreeSet<&'a Path>> {
    let mut onward: HashMap<&Path, Vec<&Path>> = HashMap::new();
    for (from, to) in edges {
        onward.entry(from).or_default().push(to);
    }
    let reached = |from: &'a Path| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(at) = next.pop() {
            next.extend(onward.get(at).into_iter().flatten().filter(|to| seen.insert(**to)));
        }
        seen
    };
    let reach: BTreeMap<&Path, BTreeSet<&Path>> = onward.keys().map(|from| (*from, reached(from))).collect();
    let both = |one: &'a Path| {
        reach[one]
            .iter()
            .copied()
            .filter(|other| reach.get(other).is_some_and(|back| back.contains(one)))
            .collect()
    };
    reach.keys().map(|from| both(from)).filter(|circle: &BTreeSet<&Path>| circle.len() > 1).collect()
}

fn files(directory: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(path);
        }
    }
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let (mut seen, mut edges, mut found) = (0, 0, Vec::new());
    for name in &FLOORS {
        let source = crates().join(name).join("src");
        let house = &HOUSES[name];
        let mut all = BTreeSet::new();
        files(&source, &mut all);
        assert_eq!(house.read, all, "{name}: files that belong to no module");
        seen += all.len();
        edges += house.edges().len();
        for circle in house.circles() {
            let circle: Vec<&str> =
                circle.iter().map(|file| file.strip_prefix(&source).unwrap().to_str().unwrap()).collect();
            found.push(format!("{name}: {}", circle.join(", ")));
        }
    }
    println!("{seen} files, {edges} imports between them");
    assert!(seen > 500 && edges > 1500, "{seen} files, {edges} imports");
    assert!(found.is_empty(), "circles of imports:\n{}", found.join("\n"));
}

/// The folders of the engine, from the top: a lower one does not know a higher one.
#[test]
fn imports_between_rooms_of_the_engine_run_down() {
    const ROOMS: [&str; 6] = ["sides", "rounds", "bench_process", "cases", "loops", "machine"];
    let source = crates().join("tollgate-engine/src");
    let house = &HOUSES["tollgate-engine"];
    let room = |file: &Path| {
        let within = file.strip_prefix(&source).unwrap();
        let first = within.iter().next().unwrap().to_str().unwrap();
        ROOMS.iter().position(|room| *room == first.trim_end_matches(".rs"))
    };
    let (mut down, mut up) = (BTreeSet::new(), Vec::new());
    for (from, to) in house.edges() {
        match (room(from), room(to)) {
            (Some(above), Some(below)) if above <= below => drop(down.insert((above, below))),
            (Some(_), Some(_)) => up.push((from, to)),
            _ => {}
        }
    }
    assert!(up.is_empty() && down.len() > 10, "{up:?}; {down:?}");
}

/// A benchmark is one file, and its name appears only in its suite. A variant of another benchmark in its folder takes the
/// common parts from that (`..syscall::BENCHMARK`).
#[test]
fn a_benchmark_is_named_in_its_suite_alone() {
    let source = crates().join("tollgate-suites/src");
    let house = &HOUSES["tollgate-suites"];
    let mut named: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for module in house.modules.values() {
        if module.items.contains("BENCHMARK") {
            named.entry(&module.file).or_default();
        }
        let paths = module.uses.iter().map(|(_, path)| path).chain(&module.paths);
        for path in paths.filter(|path| path.last().is_some_and(|name| name == "BENCHMARK")) {
            named.entry(house.found(path, 0)).or_default().push(&module.file);
        }
    }
    assert!(named.len() > 80, "{} files of benchmarks", named.len());
    for (benchmark, by) in named {
        let suite = benchmark.strip_prefix(&source).unwrap().iter().next().unwrap();
        assert_eq!(by, [source.join(suite).join("mod.rs")], "{}", benchmark.display());
    }
}

/// The calls in code that is not for tests.
#[derive(Default)]
struct Calls(BTreeSet<String>);

impl<'ast> Visit<'ast> for Calls {
    fn visit_item_mod(&mut self, part: &'ast syn::ItemMod) {
        if !is_for_tests(&part.attrs) {
            syn::visit::visit_item_mod(self, part);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let last: Vec<String> =
            path.segments.iter().rev().take(2).map(|part| part.ident.to_string()).collect();
        self.0.extend(last.first().cloned());
        self.0.insert(last.into_iter().rev().collect::<Vec<_>>().join("::"));
        syn::visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.0.insert(call.method.to_string());
        if let syn::Expr::Path(of) = &*call.receiver {
            self.0.extend(of.path.get_ident().map(|of| format!("{of}.{}", call.method)));
        }
        syn::visit::visit_expr_method_call(self, call);
    }
}

/// The files of the product with one of these calls, by their crates.
fn callers(calls: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, house) in HOUSES.iter() {
        let source = crates().join(name).join("src");
        let makes = |made: &Calls| calls.iter().any(|call| made.0.contains(*call));
        let files = house.calls.iter().filter(|(_, made)| makes(made));
        found.extend(
            files.map(|(file, _)| format!("{name}/{}", file.strip_prefix(&source).unwrap().display())),
        );
    }
    found
}

/// `commands_a_reader` covers more than control characters: characters that change the direction of writing, and invisible
/// ones.
#[test]
fn what_strangers_wrote_has_one_way_out() {
    // These refuse or read input, and show nothing of it.
    let readers = [
        "tollgate-dump/line.rs",
        "tollgate-dump/markup.rs",
        "tollgate-engine/bench_process/record.rs",
        "tollgate-engine/sides/session/agent_side.rs",
        "tollgate-engine/bench_process/shared.rs",
        "tollgate-environments/container.rs",
        "tollgate-environments/kinds.rs",
        "tollgate-environments/knob.rs",
        "tollgate-model/text.rs",
    ];
    assert_eq!(callers(&["is_control", "char::is_control"]), readers.map(str::to_owned).into());
    // A line that is redrawn does not go through `say`.
    let drawn = ["tollgate/inspect/aslr/bar.rs", "tollgate/run/progress.rs"];
    assert_eq!(callers(&["ProgressBar"]), drawn.map(str::to_owned).into());
}

/// `thread::spawn` and `Scope::spawn` panic if no thread can be created; `thread::Builder` returns an error.
#[test]
fn a_thread_that_cannot_start_is_no_panic() {
    assert_eq!(callers(&["thread::spawn", "scope.spawn"]), BTreeSet::new());
}

/// Only `tollgate_alternation` decides which side is executed next, and when a comparison ends. In a bench process the batches
/// of a round have a random order of their own.
#[test]
fn which_side_runs_next_is_decided_in_one_place() {
    let draw = ["tollgate-alternation/order.rs", "tollgate-engine/bench_process/worker.rs"];
    assert_eq!(callers(&["shuffle"]), draw.map(str::to_owned).into());
    let ends = ["tollgate-alternation/case.rs".to_owned()];
    assert_eq!(callers(&["settled_interval", "is_precise"]), ends.into());
}

/// All that depends on the processor's architecture stands in one crate, so that another architecture is added there. The lab and
/// `tollgate-kvm` are about x86 itself.
#[test]
fn instructions_stand_in_the_crate_of_the_architecture() {
    const ABOUT_X86: [&str; 3] = ["tollgate-arch", "tollgate-lab", "tollgate-kvm"];
    let mut found = BTreeSet::new();
    for name in FLOORS.iter().filter(|name| !ABOUT_X86.contains(name)) {
        let source = crates().join(name).join("src");
        let mut all = BTreeSet::new();
        files(&source, &mut all);
        let is_found = |file: &&PathBuf| {
            let text = fs::read_to_string(file).unwrap();
            ["asm!(", "target_arch", "::arch::"].iter().any(|word| text.contains(word))
        };
        let within = |file: &PathBuf| format!("{name}/{}", file.strip_prefix(&source).unwrap().display());
        found.extend(all.iter().filter(is_found).map(within));
    }
    assert!(found.is_empty(), "{found:?}");
}

/// Programs that use the library build this code; docs/library.md promises the number of crates.
#[test]
fn the_library_brings_at_most_ten_crates() {
    let manifest = crates().join("tollgate-versus/Cargo.toml");
    let words = ["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let output =
        Command::new(env!("CARGO")).args(words).arg("--manifest-path").arg(manifest).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let others: BTreeSet<&str> =
        text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(others.contains("tollgate-statistics") && others.len() <= 10, "{others:?}");
}

/// A crate of these files.
fn made_up(files: &[(&str, &str)]) -> (tempfile::TempDir, House) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let house = House::read(directory.path());
    (directory, house)
}

#[test]
fn circles_are_found_through_every_form_of_import() {
    let circle = |house: &House| -> Vec<String> {
        let found = house.circles();
        found
            .into_iter()
            .flatten()
            .map(|file| file.file_name().unwrap().to_str().unwrap().to_owned())
            .collect()
    };
    let root = ("lib.rs", "mod a; mod b; mod c; pub use a::A;");
    // A `use` of a group, a path in code, a path in a macro, and a re-export of the root.
    let (_directory, house) = made_up(&[
        root,
        ("a.rs", "use crate::{b::{self, B}}; pub struct A;"),
        ("b.rs", "pub struct B; fn f() { super::c::g() }"),
        ("c.rs", "pub fn g() { println!(\"{}\", crate::A::new()); }"),
    ]);
    assert_eq!(circle(&house), ["a.rs", "b.rs", "c.rs"]);
    // A cycle through a submodule that imports its parent.
    let (_directory, house) = made_up(&[
        root,
        ("a.rs", "mod part; use crate::c::C; pub struct A;"),
        ("a/part.rs", "use super::A; pub struct Part;"),
        ("b.rs", "pub use crate::a::part::Part;"),
        ("c.rs", "use crate::b::Part; pub struct C;"),
    ]);
    assert_eq!(circle(&house), ["part.rs", "a.rs", "c.rs"]);
    let (_directory, house) = made_up(&[
        root,
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::c::C; pub struct B;"),
        ("c.rs", "pub struct C; fn f() -> Option<crate::b::B> { None }"),
    ]);
    assert_eq!(circle(&house), ["b.rs", "c.rs"]);
    // A module and its submodules, and tests, which may import all.
    let (_directory, house) = made_up(&[
        root,
        ("a.rs", "mod one; mod two; use one::One; use two::Two; pub struct A; #[cfg(test)] mod tests;"),
        ("a/one.rs", "use super::A; pub struct One;"),
        ("a/two.rs", "use crate::a::A; use super::One; pub struct Two;"),
        ("a/tests.rs", "use crate::b::B; use crate::c::C;"),
        ("b.rs", "use crate::c::C; use crate::a::A; pub struct B;"),
        ("c.rs", "pub struct C; #[cfg(test)] mod tests { use crate::a::A; }"),
    ]);
    assert_eq!(circle(&house), [""; 0]);
    assert_eq!((house.read.len(), house.edges().len()), (7, 8));
}
