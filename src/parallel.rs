//! Loops that the threads of the pool share. What divides them is compiled here once, and not once for each loop: it was a
//! thirtieth of the program.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Calls `f` with every number below `n`.
pub fn each(n: usize, f: &(dyn Fn(usize) + Sync)) {
    (0..n).into_par_iter().for_each(f);
}

/// Calls `f` in a thread of the pool.
pub fn inside<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    fn call(f: &mut (dyn FnMut() + Send)) {
        rayon::scope(|_| f());
    }
    let (mut f, mut result) = (Some(f), None);
    call(&mut || result = f.take().map(|f| f()));
    result.expect("it was called")
}

/// What `f` makes of every number below `n`, in order.
pub fn map<T: Send>(n: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let made: Vec<Mutex<Option<T>>> = (0..n).map(|_| Mutex::new(None)).collect();
    each(n, &|i| *made[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(f(i)));
    made.into_iter()
        .map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner).expect("each number was gone through"))
        .collect()
}

/// Calls `f(start, piece)` for consecutive pieces of `len` elements of `out`, the last of what is left. The pieces do not
/// depend on the number of threads.
///
/// # Panics
/// Where `len` is 0.
pub fn pieces<E: Send>(out: &mut [E], len: usize, f: &(dyn Fn(usize, &mut [E]) + Sync)) {
    if out.len() <= len {
        f(0, out);
    } else {
        out.par_chunks_mut(len).enumerate().for_each(|(i, piece)| f(i * len, piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_and_every_piece_has_its_place() {
        for n in [0, 1, 2, 1000] {
            assert_eq!(map(n, |i| i * i), (0..n).map(|i| i * i).collect::<Vec<_>>());
            let mut out = vec![0; n];
            pieces(&mut out, 7, &|start, piece| {
                assert!(piece.len() == 7 || start + piece.len() == n);
                piece.iter_mut().enumerate().for_each(|(i, x)| *x = start + i + 1);
            });
            assert_eq!(out, (1..=n).collect::<Vec<_>>());
        }
    }
}
