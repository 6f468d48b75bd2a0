//! How long single calls took: a line of bars per call, a bar per octave, all on one scale.

use tollgate_model::Traced;
use tollgate_model::text::clean;
use tollgate_model::traced::{BUCKETS_PER_OCTAVE, Call, bucket_low};
use tollgate_output::table::heading;

use super::{calls, text};

const BARS: [char; 5] = ['▁', '▂', '▃', '▅', '▇'];
const NAME: usize = 18;

/// Renders the shown calls, with a heading and the scale. Empty if no distribution was kept.
pub(crate) fn text(traced: &Traced, top: usize, width: usize) -> String {
    let shown: Vec<&Call> =
        calls::shown(traced, top).into_iter().filter(|call| !call.histogram.is_empty()).collect();
    let octaves = || shown.iter().flat_map(|call| call.histogram.iter()).map(|(bucket, _)| octave(*bucket));
    let (Some(first), Some(last)) = (octaves().min(), octaves().max()) else { return String::new() };
    let name = shown.iter().map(|call| call.name.chars().take(NAME).count()).max().unwrap_or(0);
    let free = width.saturating_sub(name + 2).max(1);
    let columns = (last - first + 1) as usize;
    // If there are more octaves than columns, a bar stands for several.
    let together = columns.div_ceil(free);
    let mut text = heading("how long single calls took", width);
    text.push_str(&axis(name, first, last, columns.div_ceil(together)));
    for call in shown {
        let mut heights = vec![0_u64; columns.div_ceil(together)];
        for (bucket, number) in &call.histogram {
            let at = (octave(*bucket) - first) as usize / together;
            if let Some(height) = heights.get_mut(at) {
                *height = height.saturating_add(*number);
            }
        }
        let label: String = clean(&text::cut(&call.name, NAME - 1)).chars().take(NAME).collect();
        let line = format!("{label:name$}  {}", bars(&heights));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push('\n');
    text
}

/// The octave of a bucket; 0 for those below 8 ns.
fn octave(bucket: u32) -> u32 {
    bucket / BUCKETS_PER_OCTAVE
}

/// Renders the shortest time, and the end of the longest octave, above the ends of the bars.
fn axis(name: usize, first: u32, last: u32, columns: usize) -> String {
    let low = text::time(bucket_low(first * BUCKETS_PER_OCTAVE));
    let high = text::time(bucket_low((last + 1) * BUCKETS_PER_OCTAVE));
    let gap = columns.saturating_sub(low.chars().count() + high.chars().count());
    let between = if gap > 0 { "─".repeat(gap) } else { "–".to_owned() };
    format!("{:name$}  {low}{between}{high}\n", "")
}

/// Renders a bar per number: the tallest for the largest, the lowest for the smallest above 0.
fn bars(heights: &[u64]) -> String {
    let most = heights.iter().copied().max().unwrap_or(0).max(1);
    let block = |&height: &u64| match height {
        0 => ' ',
        height => {
            let step = (height as f64 / most as f64 * BARS.len() as f64).ceil() as usize;
            BARS[step.clamp(1, BARS.len()) - 1]
        }
    };
    heights.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::examples;

    #[test]
    fn the_tallest_bar_is_the_most_calls_and_a_single_one_is_seen() {
        assert_eq!(bars(&[0, 1, 1000, 500, 0]), " ▁▇▃ ");
        assert_eq!(bars(&[0, 0]), "  ");
    }

    #[test]
    fn every_line_is_on_the_same_scale_and_fits() {
        for width in [30, 40, 60, 120] {
            let text = anstream::adapter::strip_str(&text(&examples::checkout(), 12, width)).to_string();
            assert!(text.contains("unlink"), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
        }
    }

    #[test]
    fn without_distributions_there_is_no_picture() {
        let mut traced = examples::checkout();
        traced.calls.iter_mut().for_each(|call| call.histogram.clear());
        assert_eq!(text(&traced, 12, 80), "");
    }
}
