//! Evaluating primitives on slices; the accumulation contract.
