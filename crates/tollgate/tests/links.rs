//! The links of the documentation: every file and heading that a page names exists, and the book has every page.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the source tree")
}

/// The pages: those of the root, of docs/ and of each crate.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let mut directories = vec![root.clone(), root.join("docs")];
    let crates = fs::read_dir(root.join("crates")).expect("crates");
    directories.extend(crates.map(|entry| entry.expect("an entry").path()));
    let mut pages = Vec::new();
    for directory in directories.iter().filter(|directory| directory.is_dir()) {
        let files =
            fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|extension| extension == "md")));
    }
    pages.sort();
    pages
}

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// A line without the text between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<&str>>().join(" ")
}

/// The targets of the links in a line: `](target)` and `[name]: target`.
fn links(line: &str) -> Vec<String> {
    let line = without_code(line);
    let mut found: Vec<String> =
        line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect();
    if line.starts_with('[')
        && let Some((_, target)) = line.split_once("]: ")
    {
        found.push(target.trim().to_owned());
    }
    found
}

/// The anchors of headings: letters in lower case, digits, `-` and `_`, and `-` for a blank. A repeated one ends in `-1`.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let headings = prose(text).filter_map(|line| {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        ((1..=6).contains(&level) && line.as_bytes().get(level) == Some(&b' ')).then(|| line[level..].trim())
    });
    let mut anchors = Vec::new();
    for heading in headings {
        let kept = heading.to_lowercase();
        let kept: String = kept
            .chars()
            .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect();
        let number = seen.entry(kept.clone()).or_default();
        anchors.push(if *number == 0 { kept } else { format!("{kept}-{number}") });
        *number += 1;
    }
    anchors
}

/// Why a link leads nowhere; `None` if it is valid, or leads out of this project.
fn broken(page: &Path, link: &str) -> Option<String> {
    if ["http://", "https://", "mailto:"].iter().any(|scheme| link.starts_with(scheme)) {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = match file {
        "" => page.to_owned(),
        file => page.parent().expect("a directory").join(file),
    };
    if !target.exists() {
        return Some(format!("{}: {link}: there is no {}", page.display(), target.display()));
    }
    let anchor = anchor?;
    let text = fs::read_to_string(&target).unwrap_or_default();
    (!anchors(&text).iter().any(|known| known == anchor))
        .then(|| format!("{}: {link}: {} has no such heading", page.display(), target.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let links: Vec<String> = prose(&text).flat_map(links).collect();
        seen += links.len();
        wrong.extend(links.iter().filter_map(|link| broken(&page, link)));
    }
    assert!(seen > 100, "{seen} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_book_has_every_page_once() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("the summary");
    let mut listed: Vec<String> = prose(&summary).flat_map(links).collect();
    let mut there: Vec<String> = fs::read_dir(&docs)
        .expect("pages")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md")
        .collect();
    listed.sort();
    there.sort();
    assert_eq!(listed, there);
}

/// The largest page of the gallery, which is kept in the repository. docs/remake refuses more as well.
const LARGEST: u64 = 300_000;

#[test]
fn the_gallery_shows_each_of_its_files_and_none_is_large() {
    let docs = root().join("docs");
    let page = fs::read_to_string(docs.join("gallery.md")).expect("the gallery");
    let shown: Vec<String> = prose(&page).flat_map(links).collect();
    let files = fs::read_dir(docs.join("gallery")).expect("its files").map(|entry| entry.expect("an entry"));
    for file in files {
        let link = format!("gallery/{}", file.file_name().into_string().expect("a name"));
        let bytes = file.metadata().expect("its size").len();
        assert!(shown.contains(&link), "docs/gallery.md has no link to {link}");
        assert!(bytes <= LARGEST, "{link}: {bytes} bytes");
    }
}

#[test]
fn headings_and_links_are_read_as_a_browser_shows_them() {
    assert_eq!(
        anchors("# Reading the table\n## A `b`: c\n```\n# no\n```\n## A b c\n"),
        ["reading-the-table", "a-b-c", "a-b-c-1"]
    );
    assert_eq!(links("see [a](b.md#c), `[no](x)` and [d](e)"), ["b.md#c", "e"]);
    let page = root().join("README.md");
    assert_eq!(broken(&page, "docs/verbs.md#reading-the-table"), None);
    assert!(broken(&page, "docs/verbs.md#nothing").is_some_and(|why| why.contains("no such heading")));
    assert!(broken(&page, "docs/nothing.md").is_some_and(|why| why.contains("there is no")));
}
