/// The reason why execution stops.
#[derive(Debug)]
pub enum Halt<E> {
    /// This place ended, for this reason. The others go on.
    Lost(String),
    /// Everything ends: the user stopped it, or something failed.
    Run(E),
}

impl<E> Halt<E> {
    /// Converts the reason why everything ends.
    pub fn map<F>(self, of: impl FnOnce(E) -> F) -> Halt<F> {
        match self {
            Self::Lost(why) => Halt::Lost(why),
            Self::Run(error) => Halt::Run(of(error)),
        }
    }
}

/// The place of each side. The sides of a lost place are lost too.
#[derive(Debug, Clone)]
pub struct Places {
    of_side: Vec<usize>,
    /// For each place the reason why it is lost, if it is.
    lost: Vec<Option<String>>,
}

impl Places {
    /// Assigns sides to places in turn: side 0 to place 0, side 1 to place 1.
    pub fn in_turn(sides: usize, places: usize) -> Self {
        let places = places.max(1);
        Self { of_side: (0..sides).map(|side| side % places).collect(), lost: vec![None; places] }
    }

    /// Gives each side a place of its own.
    pub fn of_each(sides: usize) -> Self {
        Self::in_turn(sides, sides)
    }

    /// Returns the place of a side.
    pub fn of(&self, side: usize) -> usize {
        self.of_side[side]
    }

    /// Returns the number of places.
    pub fn number(&self) -> usize {
        self.lost.len()
    }

    /// Whether a side can still be executed.
    pub fn has(&self, side: usize) -> bool {
        self.lost[self.of(side)].is_none()
    }

    /// Returns for each place the reason why it is lost, if it is.
    pub fn lost(&self) -> &[Option<String>] {
        &self.lost
    }

    /// Performs a step at a place. `None` if the place was lost before or is lost in this step.
    ///
    /// # Errors
    /// [`Halt::Run`] as the step returns it; [`Halt::Lost`] if no place is left.
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
