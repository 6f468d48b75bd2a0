//! A progress bar on a terminal, for studies that take long.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const PATIENCE: Duration = Duration::from_secs(1);

/// Drawn after [`PATIENCE`], cleared when dropped.
pub struct Bar {
    all: u32,
    began: Instant,
    drawn: Option<ProgressBar>,
}

impl Bar {
    pub fn new(all: u32) -> Self {
        Self { all, began: Instant::now(), drawn: None }
    }

    pub fn show(&mut self, done: u32) {
        if self.drawn.is_none() && self.began.elapsed() < PATIENCE {
            return;
        }
        let all = self.all;
        let bar = self.drawn.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(8);
            let bar = ProgressBar::with_draw_target(Some(u64::from(all)), target);
            match ProgressStyle::with_template("{bar:24} {pos} of {len} starts") {
                Ok(style) => bar.with_style(style.progress_chars("━╸─")),
                Err(_) => bar,
            }
        });
        bar.set_position(u64::from(done));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.drawn {
            bar.finish_and_clear();
        }
    }
}
