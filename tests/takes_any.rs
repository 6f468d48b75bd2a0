//! The test of a reader that accepts any input: the inputs with their strategies, and the calls, none of which may panic.

macro_rules! takes_any {
    ($($input:ident in $from:expr),+ => $($call:expr),+) => {
        mod any_input {
            use super::*;
            #[allow(unused_imports)] // Some modules have it already.
            use proptest::prelude::*;

            proptest! {
                #[test]
                fn is_taken($($input in $from),+) {
                    $(let _ = $call;)+
                }
            }
        }
    };
}
