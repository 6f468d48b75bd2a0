//! Captured trees for tests, and arbitrary input for parsers.

use std::path::Path;

pub(crate) fn tree<T: AsRef<[u8]>>(files: &[(&str, T)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    files.iter().for_each(|(path, content)| write(root.path(), path, content));
    root
}

pub(crate) fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Declares a test that parsers accept any input: the inputs with their strategies, and the calls.
macro_rules! takes_any {
    ($($input:ident in $from:expr),+ => $($call:expr),+) => {
        mod any_input {
            use super::*;
            #[allow(unused_imports)] // Some modules have it already.
            use proptest::prelude::*;

            proptest! {
                #[test]
                fn is_taken($($input in $from),+) {
                    $(let _ = $call;)+
                }
            }
        }
    };
}
pub(crate) use takes_any;
