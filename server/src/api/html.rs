//! Pages that the control plane writes itself: without scripts, one style sheet inside, and a policy that allows just that.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;
use sha2::{Digest as _, Sha256};

/// The one style sheet.
pub fn style() -> &'static str {
    include_str!("html.css")
}

/// The policy: nothing but the style sheet in the page itself.
pub fn content_policy() -> HeaderValue {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
        let hash = BASE64_STANDARD.encode(Sha256::digest(style()));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        HeaderValue::from_str(&policy).expect("base64 and ASCII")
    });
    POLICY.clone()
}
