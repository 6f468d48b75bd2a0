//! The programs that workloads need.

use super::command::is_here;
use crate::prelude::*;

pub(super) struct Program {
    pub name: &'static str,
    /// Its name, and its project.
    pub package: &'static str,
    /// Its Debian package.
    pub debian: &'static str,
}

impl Program {
    pub fn must_be_here(&self) -> Result<()> {
        if is_here(self.name) {
            return Ok(());
        }
        let Self { name, package, debian } = self;
        Err(skip!("{name} is missing: install {package} (in Debian the package {debian})"))
    }
}
