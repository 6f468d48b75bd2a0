//! The places where sides are executed, and those that are lost.

/// Why nothing more is executed.
#[derive(Debug)]
pub enum Halt<E> {
    /// At this place: it ended, for this reason. The others go on.
    Lost(String),
    /// Anywhere: the user stops it, or something failed.
    Run(E),
}

impl<E> Halt<E> {
    /// The same with another reason for the end of all.
    pub fn map<F>(self, of: impl FnOnce(E) -> F) -> Halt<F> {
        match self {
            Self::Lost(why) => Halt::Lost(why),
            Self::Run(error) => Halt::Run(of(error)),
        }
    }
}

/// The place of each side. A place that is lost takes its sides with it.
#[derive(Debug, Clone)]
pub struct Places {
    of_side: Vec<usize>,
    /// For each place why it gives nothing more, where it is lost.
    lost: Vec<Option<String>>,
}

impl Places {
    /// Deals the sides out to the places in turn: side 0 to place 0, side 1 to place 1.
    pub fn in_turn(sides: usize, places: usize) -> Self {
        let places = places.max(1);
        Self { of_side: (0..sides).map(|side| side % places).collect(), lost: vec![None; places] }
    }

    /// Each side at a place of its own.
    pub fn of_each(sides: usize) -> Self {
        Self::in_turn(sides, sides)
    }

    /// The place of a side.
    pub fn of(&self, side: usize) -> usize {
        self.of_side[side]
    }

    /// The number of places.
    pub fn number(&self) -> usize {
        self.lost.len()
    }

    /// Whether a side can still be executed.
    pub fn has(&self, side: usize) -> bool {
        self.lost[self.of(side)].is_none()
    }

    /// For each place why it gives nothing more, where it is lost.
    pub fn lost(&self) -> &[Option<String>] {
        &self.lost
    }

    /// Takes a step at a place. None where the place is lost, or ended in this step.
    ///
    /// # Errors
    /// What ends all; also [`Halt::Lost`] where no place is left.
    pub fn step<T, E>(
        &mut self,
        place: usize,
        step: impl FnOnce() -> Result<T, Halt<E>>,
    ) -> Result<Option<T>, Halt<E>> {
        if self.lost[place].is_some() {
            return Ok(None);
        }
        match step() {
            Ok(done) => Ok(Some(done)),
            Err(Halt::Run(error)) => Err(Halt::Run(error)),
            Err(Halt::Lost(why)) => {
                self.lost[place] = Some(why.clone());
                if self.lost.iter().all(Option::is_some) { Err(Halt::Lost(why)) } else { Ok(None) }
            }
        }
    }
}
