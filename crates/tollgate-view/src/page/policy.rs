//! The page's content security policy: its own style and script, by their digests, and nothing else.

pub(super) const STYLE: &str = concat!(
    include_str!("../../templates/colors.css"),
    include_str!("../../templates/drawing.css"),
    include_str!("../../templates/page.css")
);
/// The colors, by day and by night, and the style of drawings, which a picture alone has too.
pub(super) const DRAWING: &str =
    concat!(include_str!("../../templates/colors.css"), include_str!("../../templates/drawing.css"));
pub(super) const SCRIPT: &str = include_str!("../../templates/page.js");

/// SHA-256 of [`STYLE`], in base64; a test compares them.
const STYLE_DIGEST: &str = "k5m684N+wUwkITffoLeD0r7xqTKSzaaZvT7q/FDHU7A=";
const SCRIPT_DIGEST: &str = "uU+PAktBBDRtOc7+QcxxephsVJ2+4CnHH3lhjm0a/pw=";

/// The content security policy (W3C, CSP Level 3): no request of any kind, no other script or style.
pub(super) fn policy() -> String {
    format!(
        "default-src 'none'; style-src 'sha256-{STYLE_DIGEST}'; script-src 'sha256-{SCRIPT_DIGEST}'; base-uri 'none'; \
         form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn digest(text: &str) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let sum = Sha256::digest(text.as_bytes());
        let groups = sum.chunks(3).map(|bytes| {
            let bits = bytes.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
                << (8 * (3 - bytes.len()));
            let digit = |at: usize| {
                if at <= bytes.len() {
                    char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63])
                } else {
                    '='
                }
            };
            (0..4).map(digit).collect::<String>()
        });
        groups.collect()
    }

    #[test]
    fn the_policy_has_the_digests_of_the_style_and_the_script() {
        assert_eq!(digest(STYLE), STYLE_DIGEST, "put this digest of page.css into policy.rs");
        assert_eq!(digest(SCRIPT), SCRIPT_DIGEST, "put this digest of page.js into policy.rs");
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
    }
}
