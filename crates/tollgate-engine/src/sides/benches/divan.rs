//! Parses divan's output: a tree of its benches, which has a row of figures at each leaf when they are timed.

/// The width of a level in characters: `│  `, `├─ `.
const LEVEL: usize = 3;

/// The paths of the leaves of the tree that `--test` prints, such as `ops::sum::100`, without ignored benches and foreign lines.
pub(super) fn leaves(output: &str) -> Vec<String> {
    let mut nodes: Vec<(usize, &str)> = Vec::new();
    let mut root = None;
    let mut is_open = false;
    for line in output.lines() {
        match branch(line) {
            Some(Branch { depth, name, is_last }) => {
                nodes.extend(root.take().map(|root| (0, root)));
                nodes.push((depth, name));
                is_open = if depth == 1 { !is_last } else { is_open };
            }
            // No root appears between the branches of another.
            None if !is_open && !line.trim().is_empty() => root = Some(line.trim()),
            None => {}
        }
    }
    let mut path: Vec<&str> = Vec::new();
    let mut leaves = Vec::new();
    for (at, (depth, name)) in nodes.iter().enumerate() {
        path.truncate(*depth);
        path.push(name);
        let is_leaf = nodes.get(at + 1).is_none_or(|(next, _)| next <= depth);
        if is_leaf && *depth > 0 && !name.ends_with("(ignored)") {
            leaves.push(path.join("::"));
        }
    }
    leaves
}

struct Branch<'a> {
    depth: usize,
    name: &'a str,
    is_last: bool,
}

fn branch(line: &str) -> Option<Branch<'_>> {
    let at = line.find(['├', '╰'])?;
    let before = &line[..at];
    let is_margin = before.chars().all(|c| c == '│' || c == ' ');
    let rest = line[at..].strip_prefix("├─ ").or_else(|| line[at..].strip_prefix("╰─ "))?;
    let depth = before.chars().count() / LEVEL + 1;
    is_margin.then_some(Branch { depth, name: rest.trim(), is_last: line[at..].starts_with('╰') })
}

/// Splits off the leaf `t=N` of a bench that is executed with several numbers of threads: it is not part of the path.
pub(super) fn without_threads(bench: &str) -> (&str, Option<&str>) {
    let split = bench.rsplit_once("::t=");
    match split
        .filter(|(_, threads)| !threads.is_empty() && threads.bytes().all(|byte| byte.is_ascii_digit()))
    {
        Some((path, threads)) => (path, Some(threads)),
        None => (bench, None),
    }
}

/// The median of the only row with figures, in ns. `None` if there is none, or more than one.
pub(super) fn median(output: &str) -> Option<f64> {
    let mut medians = output.lines().filter_map(of_row);
    let median = medians.next()?;
    medians.next().is_none().then_some(median)
}

/// `╰─ 100  272.6 ns │ 339.3 ns │ 283 ns │ 283.5 ns │ 20 │ 1280`: fastest, slowest, median, mean, samples, iterations.
fn of_row(line: &str) -> Option<f64> {
    let mut columns = line.rsplit('│').map(str::trim);
    let is_number = |column: Option<&str>| column.is_some_and(|column| column.parse::<u64>().is_ok());
    let are_counts = is_number(columns.next()) && is_number(columns.next());
    let (number, unit) = columns.nth(1)?.split_once(' ')?;
    let of_unit = match unit {
        "ps" => 1e-3,
        "ns" => 1.0,
        "µs" | "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * of_unit).filter(|_| are_counts)
}
