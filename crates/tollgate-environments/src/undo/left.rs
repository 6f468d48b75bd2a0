//! Private directories that a killed program left.

use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use tollgate_os::private::{PrivateDirectory, TrustedDirectory};
use tollgate_os::temporary::PREFIX;

use crate::directory::distrusted;
use crate::error::EnvironmentError;

/// A killed process closes its files one by one: the lock of a directory can be the last of them.
const LOOKS: u32 = 100;
const LOOK: Duration = Duration::from_millis(10);

/// Removes what process `pid` and other ended processes left below a directory. This program's own directories are in use.
pub(super) fn remove(under: &Path, pid: i32) -> Result<(), EnvironmentError> {
    if pid == std::process::id().cast_signed() {
        return Ok(());
    }
    let own = format!("{PREFIX}{pid}-");
    for _ in 0..LOOKS {
        let place = TrustedDirectory::open(under).map_err(|error| distrusted(under, &error))?;
        drop(PrivateDirectory::left(&place, PREFIX));
        let mut entries = fs::read_dir(under).into_iter().flatten().flatten();
        if !entries.any(|entry| entry.file_name().to_string_lossy().starts_with(&own)) {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_left_goes_and_what_one_uses_stays() {
        let under = tempfile::tempdir().unwrap();
        let used = PrivateDirectory::make(&TrustedDirectory::open(under.path()).unwrap()).unwrap();
        // No process has this number, and nothing holds the lock.
        let left = under.path().join(format!("{PREFIX}4194305-0123456789abcdef"));
        fs::create_dir(&left).unwrap();
        fs::set_permissions(&left, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        remove(under.path(), 4_194_305).unwrap();
        assert!(!left.exists() && used.path().exists());
    }
}
