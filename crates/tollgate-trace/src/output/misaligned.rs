//! Refused direct I/O: a sentence per call, with the requirements of its file.

use tollgate_model::Traced;
use tollgate_model::traced::{Misaligned, Misfit};
use tollgate_output::table::paragraph;

use super::text;

const MOST: usize = 5;

/// Renders the paragraphs below the table of files; empty if no such call failed.
pub(super) fn paragraphs(traced: &Traced, width: usize) -> String {
    let all = &traced.misaligned;
    let mut shown: String = all.iter().take(MOST).map(|one| paragraph(&sentence(one), width, "  ")).collect();
    if all.len() > MOST {
        let rest =
            text::counted((all.len() - MOST) as u64, "further file and call", "further files and calls");
        shown.push_str(&paragraph(
            &format!("{rest} failed the same way; --format json has them."),
            width,
            "  ",
        ));
    }
    if !all.is_empty() {
        shown.insert(0, '\n');
        let page = "docs/direct-io.md shows aligned buffers in C, Go, Python and Rust.";
        shown.push_str(&paragraph(page, width, ""));
    }
    shown
}

fn sentence(one: &Misaligned) -> String {
    let times =
        if one.count == 1 { "once".to_owned() } else { format!("{} times", text::grouped(one.count)) };
    let first = if one.count == 1 { "with" } else { "first with" };
    let buffer = match one.buffer {
        0 => "the buffer".to_owned(),
        number => format!("buffer {number}"),
    };
    let mut said = format!(
        "{} on {} failed {times} with EINVAL (direct I/O), {first} {buffer} at {:#x}, length {}, offset {}. ",
        one.call, one.path, one.address, one.length, one.offset
    );
    let Some(needs) = one.needs else {
        said.push_str(&format!("The alignment that the file needs is unknown: {}.", one.by));
        return said;
    };
    said.push_str(&format!(
        "The file needs buffers at multiples of {} bytes, and offsets and lengths in multiples of {} ({}). ",
        needs.memory, needs.offset, one.by
    ));
    let misfits = needs.misfits(one.offset, one.address, one.length);
    let named = |misfit: &Misfit| match misfit {
        Misfit::Address(beyond) => format!("the address is {beyond} beyond a multiple"),
        Misfit::Offset(beyond) => format!("the offset is {beyond} beyond a multiple"),
        Misfit::Length(beyond) => format!("the length is {beyond} beyond a multiple"),
    };
    let named: Vec<String> = misfits.iter().map(named).collect();
    match named.as_slice() {
        [] => said.push_str("This call meets them: EINVAL has another cause."),
        named => said.push_str(&format!("Here {}.", named.join(", and "))),
    }
    said
}

#[cfg(test)]
mod tests {
    use tollgate_model::traced::Needs;

    use super::*;
    use crate::output::examples;

    fn refused() -> Misaligned {
        Misaligned {
            path: "/data/log".to_owned(),
            call: "pwrite64".to_owned(),
            count: 3,
            offset: 4096,
            address: 0x7f00_0000_1010,
            length: 512,
            buffer: 0,
            needs: Some(Needs { memory: 512, offset: 512 }),
            by: "statx(2), STATX_DIOALIGN".to_owned(),
        }
    }

    #[test]
    fn the_call_its_buffer_and_what_the_file_needs_are_named() {
        let said = sentence(&refused());
        assert_eq!(
            said,
            "pwrite64 on /data/log failed 3 times with EINVAL (direct I/O), first with the buffer at 0x7f0000001010, length 512, offset \
             4096. The file needs buffers at multiples of 512 bytes, and offsets and lengths in multiples of 512 (statx(2), \
             STATX_DIOALIGN). Here the address is 16 beyond a multiple."
        );
        let fits = Misaligned { address: 0x1000, count: 1, ..refused() };
        assert!(sentence(&fits).contains("failed once") && sentence(&fits).ends_with("another cause."));
        let unknown =
            Misaligned { needs: None, by: "statx(2) reports nothing".to_owned(), buffer: 2, ..refused() };
        let said = sentence(&unknown);
        assert!(
            said.contains("buffer 2 at") && said.ends_with("unknown: statx(2) reports nothing."),
            "{said}"
        );
    }

    #[test]
    fn a_trace_without_such_calls_says_nothing_of_them() {
        let mut traced = examples::build();
        assert_eq!(paragraphs(&traced, 80), "");
        traced.misaligned = vec![refused(); 7];
        let text = paragraphs(&traced, 80);
        assert!(text.contains("2 further files and calls") && text.contains("docs/direct-io.md"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
