//! Captured trees for tests.

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
