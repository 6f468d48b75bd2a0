//! Shows one configuration, or the differences of several.

mod affecting;
mod asked;
mod chosen;
mod json;
mod many;
mod one;
mod text;

pub use asked::{Asked, NoSuchArea};
pub use chosen::Chosen;
pub use json::ConfigDocument;

/// Renders one configuration, or the differences of several, as text.
pub fn show(chosen: &[Chosen], asked: &Asked, width: usize) -> String {
    match chosen {
        [one] => one::show(one, asked, width),
        many => many::show(many, asked, width),
    }
}
