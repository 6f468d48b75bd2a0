use crate::{AREAS, Area};

/// The options to show: those that affect latencies, those of certain areas, or all; with or without the reasons.
pub struct Asked {
    pub(crate) areas: Vec<&'static Area>,
    /// Show every option, not only those that affect latencies.
    pub(crate) every_option: bool,
    /// Show the reasons.
    pub(crate) explained: bool,
}

/// The error for an unknown name of an area.
#[derive(Debug, thiserror::Error)]
#[error("there is no area {0:?}; the areas are {names}", names = AREAS.iter().map(|area| area.name).collect::<Vec<_>>().join(", "))]
pub struct NoSuchArea(String);

impl Asked {
    /// Selects the areas with these names, or all if there are none.
    ///
    /// # Errors
    /// If a name is not that of an area.
    pub fn new(areas: &[String], all: bool, explain: bool) -> Result<Self, NoSuchArea> {
        if let Some(unknown) = areas.iter().find(|name| AREAS.iter().all(|area| area.name != **name)) {
            return Err(NoSuchArea(unknown.clone()));
        }
        let meant = |area: &&Area| areas.is_empty() || areas.iter().any(|name| name == area.name);
        let every_option = all || !areas.is_empty();
        let explained = explain || every_option;
        Ok(Self { areas: AREAS.iter().filter(meant).collect(), every_option, explained })
    }

    pub(crate) fn has(&self, area: &Area) -> bool {
        self.areas.iter().any(|meant| meant.name == area.name)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.areas.len() == AREAS.len()
    }
}
