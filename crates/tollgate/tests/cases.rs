//! Command lines with all that they print and their status, as reviewed: a file of them in cases/ for each verb, and the files that they name
//! in the folder beside it. `TRYCMD=overwrite` writes the files anew.

use crate::common;
use common::{Home, document};

#[test]
fn commands_print_what_was_reviewed() {
    let home = Home::new();
    // The runs of this machine do not differ.
    let native = document("20261121-015427-0001", Some("native"), 1.0);
    home.keep_others_like(&native);
    home.keep(&native);
    home.keep(&document("20261121-015428-0002", Some("vm"), 1.5));
    let kept = home.files();
    let none = home.path().join("none");
    trycmd::TestCases::new()
        .default_bin_path(common::program())
        .env("COLUMNS", "80")
        .env("HOME", none.to_str().expect("text"))
        .env("XDG_CONFIG_HOME", none.to_str().expect("text"))
        .env("XDG_DATA_HOME", home.path().to_str().expect("text"))
        .case("tests/cases/*.trycmd")
        .run();
    assert_eq!(home.files(), kept, "nothing is kept");
}
