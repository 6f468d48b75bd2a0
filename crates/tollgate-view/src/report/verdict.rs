//! The verdict strip: how far the figures can be trusted, and what is slow here.

use crate::page::{Expensive, Quality, Text};

use super::subject::Subject;
use crate::{advice, expensive, quality};

/// What is slow, with its cause and an alternative.
pub fn expensive(subject: &Subject) -> Vec<Expensive> {
    let item = |item: expensive::Expense| Expensive {
        what: item.what.into(),
        cause: item.cause.into(),
        action: item.action.into(),
        benchmark: item.benchmark.into(),
    };
    expensive::of(&subject.summary).into_iter().map(item).collect()
}

/// The quality of a run, and the remedies.
pub fn quality(subject: &Subject) -> Quality {
    let quality = quality::of(&subject.summary);
    let advice = advice::of(&subject.summary).into_iter();
    Quality {
        grade: quality.grade.to_string().into(),
        words: quality.to_string().into(),
        warnings: advice.map(|advice| Text::new(&format!("{}. {}", advice.warning, advice.remedy))).collect(),
    }
}
