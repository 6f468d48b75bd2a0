use crate::Apart;

pub(crate) fn reason(apart: Apart) -> String {
    let why = match apart {
        Apart::Named(line) => format!("line {line} names another system or processor"),
        Apart::Section(line) => format!("line {line} is a heading"),
        Apart::Prose(line) => {
            format!("prose or another prompt stands between them (line {line}), and no value links the two")
        }
        Apart::Contradiction(line) => format!("line {line} has another value of a register or an address"),
        Apart::Width(line) => format!("the tables from line {line} on are of another width"),
    };
    let doubt = if apart.is_doubtful() {
        " It may be the same machine; no walk goes from one to the other. --one-machine joins them."
    } else {
        ""
    };
    format!("Kept apart from the text above: {why}.{doubt}")
}
