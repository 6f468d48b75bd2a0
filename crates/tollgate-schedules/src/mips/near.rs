//! Words that are spelt nearly alike.

/// Those of `words` that are one letter away from `word`: another, one more, one less, or two exchanged.
pub(super) fn near(word: &str, words: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let letters: Vec<char> = word.chars().collect();
    words.filter(|other| one_away(&letters, &other.chars().collect::<Vec<_>>())).collect()
}

fn one_away(one: &[char], other: &[char]) -> bool {
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    let behind = |letters: &[char], count: usize| letters.get(count..).map(<[char]>::to_vec);
    let exchanged = || {
        let swapped = one.len() >= 2 && other.len() >= 2 && one[0] == other[1] && one[1] == other[0];
        swapped && one[2..] == other[2..]
    };
    let with = |less, more| behind(one, less).is_some_and(|rest| Some(rest) == behind(other, more));
    with(1, 1) || with(0, 1) || with(1, 0) || exchanged()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_letter_away_is_near() {
        let near = |word| near(word, ["lw", "sw", "ll", "bnez", "syscall"].into_iter());
        assert_eq!(near("lww"), ["lw"]);
        assert_eq!(near("l"), ["lw", "ll"]);
        assert_eq!(near("bnze"), ["bnez"]);
        assert_eq!(near("sycall"), ["syscall"]);
        assert_eq!(near("rw"), ["lw", "sw"]);
        assert!(near("é").is_empty() && near("").is_empty() && near("add").is_empty());
    }
}
