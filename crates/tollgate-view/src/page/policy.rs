//! What the page allows itself: its own style and its own script, known by their digests, and nothing else.

/// The style.
pub(super) const STYLE: &str = include_str!("../../templates/page.css");
/// The script, which only adds comfort.
pub(super) const SCRIPT: &str = include_str!("../../templates/page.js");

/// SHA-256 of [`STYLE`], in base64; a test holds them together.
const STYLE_DIGEST: &str = "6/l7ab6OmPFsP1S/6iUW/UgSqIvYJfngI0h3Lsylplw=";
/// SHA-256 of [`SCRIPT`], in base64.
const SCRIPT_DIGEST: &str = "s8JHMuxqgiSMEb93CYxJe/Wa7eBo48eRxOmO63buRpI=";

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
            let digit = |at: usize| match at <= bytes.len() {
                true => char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]),
                false => '=',
            };
            (0..4).map(digit).collect::<String>()
        });
        groups.collect()
    }

    #[test]
    fn the_policy_names_what_the_page_holds() {
        assert_eq!(digest(STYLE), STYLE_DIGEST, "put this digest of page.css into policy.rs");
        assert_eq!(digest(SCRIPT), SCRIPT_DIGEST, "put this digest of page.js into policy.rs");
        // They stand in elements that end at the first of these.
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
    }
}
