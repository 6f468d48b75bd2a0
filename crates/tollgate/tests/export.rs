//! `tollgate export`: its formats, its files and its refusals.

use crate::common;
use common::{Home, document};

fn home() -> Home {
    let home = Home::new();
    home.keep(&document("20261121-015427-0001", Some("native"), 1.0));
    home
}

#[test]
fn a_file_is_replaced_whole_or_left_alone() {
    let home = home();
    let file = home.file("out/tollgate.prom", "old");
    home.tollgate(["export", "native", "--format", "openmetrics", "-o", &file]).assert().success().stdout("");
    let text = std::fs::read_to_string(&file).expect("read");
    assert!(text.starts_with("# TYPE ") && text.ends_with("# EOF\n"));
    assert_eq!(home.files().iter().filter(|name| name.starts_with("out/")).count(), 1, "nothing beside it");
    let refusal = home.refusal(["export", "unheard-of", "--format", "csv", "-o", &file]);
    assert!(refusal.contains("unheard-of"), "{refusal}");
    assert_eq!(std::fs::read_to_string(&file).expect("read"), text);
}
