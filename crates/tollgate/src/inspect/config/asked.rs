//! The extent of the output: options that affect latencies, certain areas, or everything.

use tollgate_kconfig::{AREAS, Area};

use crate::args::ConfigArgs;
use crate::failure::Failure;

/// The extent.
pub struct Asked {
    areas: Vec<&'static Area>,
    every_option: bool,
    explained: bool,
}

impl Asked {
    /// The extent that the arguments ask for.
    ///
    /// # Errors
    /// An unknown area.
    pub fn of(args: &ConfigArgs) -> Result<Self, Failure> {
        if let Some(unknown) = args.area.iter().find(|name| AREAS.iter().all(|area| area.name != **name)) {
            let names: Vec<&str> = AREAS.iter().map(|area| area.name).collect();
            return Err(Failure::input(format!(
                "no area is called {unknown:?}; they are {}",
                names.join(", ")
            )));
        }
        let meant = |area: &&Area| args.area.is_empty() || args.area.iter().any(|name| name == area.name);
        let areas = AREAS.iter().filter(meant).collect();
        let every_option = args.all || !args.area.is_empty();
        Ok(Self { areas, every_option, explained: args.explain || every_option })
    }

    /// The areas that are meant.
    pub fn areas(&self) -> &[&'static Area] {
        &self.areas
    }

    /// Whether this area is meant.
    pub fn has(&self, area: &Area) -> bool {
        self.areas.iter().any(|meant| meant.name == area.name)
    }

    /// Whether each option is to be shown, or only those that affect latencies.
    pub fn every_option(&self) -> bool {
        self.every_option
    }

    /// Whether the reasons are shown.
    pub fn explained(&self) -> bool {
        self.explained
    }

    /// Whether all areas are meant.
    pub fn is_whole(&self) -> bool {
        self.areas.len() == AREAS.len()
    }
}
