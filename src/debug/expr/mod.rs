//! A small expression language over a run: `max(abs(encoder.0.ffn.act))`, `A1[0,:].sum()`, `row_sum != 1 ± 1e-6`.
//!
//! ```text
//! expression  = or
//! or          = and   { ("or"  | "||") and }
//! and         = not   { ("and" | "&&") not }
//! not         = [ "not" | "!" ] compare
//! compare     = sum   [ ("=" | "==" | "!=" | "<" | "<=" | ">" | ">=") sum [ ("±" | "+-") sum ] ]
//! sum         = term  { ("+" | "-") term }
//! term        = sign  { ("*" | "/" | "@") sign }           @ is the matrix product
//! sign        = [ "-" | "+" ] power
//! power       = postfix [ ("^" | "**") sign ]
//! postfix     = atom  { "[" pick { "," pick } "]" | ".T" | ".f(" … ")" }
//! atom        = NUMBER | inf | nan | NAME | "NAME" | it | before | changed | any nan | any inf
//!             | f | f "(" expression { "," expression } [ "," "axis" "=" axis ] ")" | "(" expression ")"
//! pick        = expression | [expression] (":" | "..") [expression] | axis-name "=" (the same)
//! ```
//!
//! A NAME is a path (`encoder.0.ffn.act`), a symbol of a step (`A1`), or either with its run before it
//! (`inference:output.probs`; inside an index with two colons); a name with other signs is in double quotes. Inside a decoding call the path may
//! leave out `gen.N.`. Batch axes of 1 are not there, as on the screen. Arithmetic is in f64, from the exact recorded
//! values; shapes broadcast as in `NumPy`; `.T` swaps the last two axes. `max`, `row_sum` and the other functions without
//! brackets are those of `it`, the tensor that a condition is about; `before` is what it was (see
//! [`Scope`]).

mod array;
mod ast;
mod error;
mod eval;
mod functions;
mod lexer;
mod parser;
mod postfix;

#[cfg(test)]
mod tests;

pub use array::Array;
pub use ast::Expr;
pub use error::{ExprError, Fault};
pub use eval::{Holds, NameFault, Scope};
pub use functions::{FUNCTIONS, Function};
