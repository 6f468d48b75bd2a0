//! A heat map of pairs of processors.

use super::svg::{Anchor, Svg};
use tollgate_output::markup::Text;

#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    pub names: Vec<Text>,
    /// The pairs, the larger number's row first.
    pub cells: Vec<Cell>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub row: usize,
    pub column: usize,
    /// From 0 for the fastest to 1 for the slowest.
    pub heat: f64,
    pub value: Text,
}

const SHADES: usize = 6;
/// With more processors figures do not fit in the cells.
const MOST_FIGURES: usize = 12;
/// With more processors, only some are named.
const MOST_NAMES: usize = 32;

impl Heat {
    pub(super) fn draw(&self, id: &str, title: &Text) -> String {
        let number = self.names.len().max(1);
        let has_figures = number <= MOST_FIGURES;
        let side = if has_figures { 32.0 } else { (480.0 / number as f64).clamp(4.0, 24.0) };
        let height = side * number as f64;
        let mut svg = Svg::image("plot heat", height + 20.0, id, title);
        svg.stretched(0.0, height, [number as f64, number as f64]);
        for shade in 0..SHADES {
            // All cells of a shade are one path: there may be thousands.
            let of_shade = self.cells.iter().filter(|cell| shade_of(cell.heat) == shade);
            let path: String =
                of_shade.map(|cell| format!("M{} {}h1v1h-1z", cell.column, cell.row)).collect();
            svg.path(format_args!("h{shade}"), &path);
        }
        svg.end_stretched();
        let middle = |at: usize| (at as f64 + 0.5) * 100.0 / number as f64;
        if has_figures {
            for cell in &self.cells {
                let y = (cell.row as f64 + 0.5) * side + 4.0;
                svg.text("v", middle(cell.column), y, Anchor::Middle, 0.0, cell.value.as_str());
            }
        }
        let every = number.div_ceil(MOST_NAMES);
        for (at, name) in self.names.iter().enumerate().step_by(every) {
            let y = (at as f64 + 0.5) * side + 4.0;
            svg.text("a", 0.0, y, Anchor::End, -8.0, name.as_str());
            svg.text("a", middle(at), height + 15.0, Anchor::Middle, 0.0, name.as_str());
        }
        svg.finish()
    }
}

fn shade_of(heat: f64) -> usize {
    // NaN has the shade of the fastest.
    ((heat.clamp(0.0, 1.0) * SHADES as f64) as usize).min(SHADES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_shade_are_one_path() {
        let cell = |row, column, heat| Cell { row, column, heat, value: "50 ns".into() };
        let cells = vec![cell(1, 0, 0.0), cell(2, 0, 1.0), cell(2, 1, 0.0)];
        let heat = Heat { names: ["0", "1", "2"].map(Text::from).to_vec(), cells };
        let drawn = heat.draw("f-0", &"t".into());
        assert!(drawn.contains("<path class=\"h0\" d=\"M0 1h1v1h-1zM1 2h1v1h-1z\"/>"), "{drawn}");
        assert!(drawn.contains("<path class=\"h5\" d=\"M0 2h1v1h-1z\"/>"), "{drawn}");
        assert_eq!(shade_of(f64::NAN), 0);
    }
}
