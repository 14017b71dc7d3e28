//! What of the processor the kernels use.

use std::sync::OnceLock;

/// Less than the processor has, so that one machine can try what others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// All it has.
    None,
    /// No AVX-512.
    Avx2,
    /// No vectors of ours.
    Portable,
    /// As [`Limit::Portable`], and no fused multiply-add: other bits, of the same contract.
    Separate,
}

/// The limit that the environment variable `TUI_TRANSFORMER_PROCESSOR` sets: `avx2`, `portable` or `separate`. It is for tests;
/// any other text sets none.
pub fn limit() -> Limit {
    static LIMIT: OnceLock<Limit> = OnceLock::new();
    *LIMIT.get_or_init(|| match std::env::var("TUI_TRANSFORMER_PROCESSOR").as_deref() {
        Ok("avx2") => Limit::Avx2,
        Ok("portable") => Limit::Portable,
        Ok("separate") => Limit::Separate,
        _ => Limit::None,
    })
}
