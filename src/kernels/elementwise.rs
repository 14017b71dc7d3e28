//! Functions applied element by element, with and without broadcasting.
//!
//! A function is copied into the loop: what it captures is then in registers. Read through a reference, which may alias
//! the result for all the compiler knows, it is loaded, and matched on, once an element.

use smallvec::SmallVec;

use super::par;
use crate::tensor::Real;

/// `out[i] = f(x[i])`.
///
/// # Panics
/// Where the lengths differ.
pub fn map<T: Real>(x: &[T], out: &mut [T], f: impl Fn(T) -> T + Sync + Copy) {
    assert_eq!(x.len(), out.len(), "lengths of a map");
    par::chunks(out, |at, out| {
        let x = &x[at..at + out.len()];
        par::wide(move || {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = f(x);
            }
        });
    });
}

/// `x[i] = f(x[i])`.
pub fn map_inplace<T: Real>(x: &mut [T], f: impl Fn(T) -> T + Sync + Copy) {
    par::chunks(x, |_, x| {
        par::wide(move || {
            for x in x {
                *x = f(*x);
            }
        });
    });
}

/// `out[i] = f(x[i], y[i])`.
///
/// # Panics
/// Where the lengths differ.
pub fn zip<T: Real>(x: &[T], y: &[T], out: &mut [T], f: impl Fn(T, T) -> T + Sync + Copy) {
    assert_eq!(x.len(), out.len(), "lengths of a zip");
    assert_eq!(y.len(), out.len(), "lengths of a zip");
    par::chunks(out, |at, out| {
        let range = at..at + out.len();
        let (x, y) = (&x[range.clone()], &y[range]);
        par::wide(move || {
            for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
                *out = f(x, y);
            }
        });
    });
}

/// One axis of a broadcast, after neighbours that can be walked as one are joined.
#[derive(Clone, Copy)]
struct Walk {
    n: usize,
    sx: usize,
    sy: usize,
}

/// `out[i…] = f(x[i…], y[i…])` over `dims`, row-major. Strides are in elements; a broadcast axis has stride 0.
///
/// # Panics
/// Where the numbers of axes differ, `out` does not hold the product of `dims`, or a stride leads outside.
pub fn zip_broadcast<X: Copy + Sync, Y: Copy + Sync, T: Copy + Send>(
    x: &[X],
    x_strides: &[usize],
    y: &[Y],
    y_strides: &[usize],
    dims: &[usize],
    out: &mut [T],
    f: impl Fn(X, Y) -> T + Sync + Copy,
) {
    assert_eq!(x_strides.len(), dims.len(), "axes of a broadcast");
    assert_eq!(y_strides.len(), dims.len(), "axes of a broadcast");
    assert_eq!(out.len(), dims.iter().product::<usize>(), "elements of a broadcast");
    if out.is_empty() {
        return;
    }
    let mut axes: SmallVec<[Walk; 6]> = SmallVec::new();
    for ((&n, &sx), &sy) in dims.iter().zip(x_strides).zip(y_strides) {
        if n == 1 {
            continue;
        }
        match axes.last_mut() {
            Some(last) if last.sx == sx * n && last.sy == sy * n => {
                *last = Walk { n: last.n * n, sx, sy };
            }
            _ => axes.push(Walk { n, sx, sy }),
        }
    }
    let inner = axes.pop().unwrap_or(Walk { n: 1, sx: 0, sy: 0 });
    let axes = &*axes;
    par::chunks(out, |start, out| {
        par::wide(move || {
            let mut at = start;
            let mut rest = out;
            while !rest.is_empty() {
                let (mut row, column) = (at / inner.n, at % inner.n);
                let (mut ox, mut oy) = (column * inner.sx, column * inner.sy);
                for axis in axes.iter().rev() {
                    ox += row % axis.n * axis.sx;
                    oy += row % axis.n * axis.sy;
                    row /= axis.n;
                }
                let len = rest.len().min(inner.n - column);
                let (run, tail) = rest.split_at_mut(len);
                zip_run(&x[ox..], inner.sx, &y[oy..], inner.sy, run, f);
                rest = tail;
                at += len;
            }
        });
    });
}

/// One run along the innermost axis, with a loop of its own for each pair of usual strides.
#[inline(always)]
fn zip_run<X: Copy, Y: Copy, T>(x: &[X], sx: usize, y: &[Y], sy: usize, out: &mut [T], f: impl Fn(X, Y) -> T) {
    let n = out.len();
    match (sx, sy) {
        (1, 1) => {
            for ((out, &x), &y) in out.iter_mut().zip(&x[..n]).zip(&y[..n]) {
                *out = f(x, y);
            }
        }
        (1, 0) => {
            let y = y[0];
            for (out, &x) in out.iter_mut().zip(&x[..n]) {
                *out = f(x, y);
            }
        }
        (0, 1) => {
            let x = x[0];
            for (out, &y) in out.iter_mut().zip(&y[..n]) {
                *out = f(x, y);
            }
        }
        _ => {
            for (i, out) in out.iter_mut().enumerate() {
                *out = f(x[i * sx], y[i * sy]);
            }
        }
    }
}

/// A slice kernel whose loop calls the method itself, which is always inlined: a function handed over as a value is
/// inlined only while it is small, and erf is not.
macro_rules! slice_kernel {
    ($(#[$doc:meta])* $name:ident, $method:ident) => {
        $(#[$doc])*
        ///
        /// # Panics
        /// Where the lengths differ.
        pub fn $name<T: Real>(x: &[T], out: &mut [T]) {
            #[inline(always)]
            fn plain<T: Real>(x: &[T], out: &mut [T]) {
                for (out, &x) in out.iter_mut().zip(x) {
                    *out = x.$method();
                }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            fn avx512<T: Real>(x: &[T], out: &mut [T]) {
                plain(x, out);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2<T: Real>(x: &[T], out: &mut [T]) {
                plain(x, out);
            }
            assert_eq!(x.len(), out.len(), "lengths of a map");
            par::chunks(out, |at, out| {
                let x = &x[at..at + out.len()];
                match par::width() {
                    // SAFETY: `width` has found the processor to have the instruction set.
                    #[cfg(target_arch = "x86_64")]
                    par::Width::Avx512 => unsafe { avx512(x, out) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    par::Width::Avx2 => unsafe { avx2(x, out) },
                    par::Width::Plain => plain(x, out),
                }
            });
        }
    };
}

slice_kernel!(
    /// `out[i] = e^x[i]`, the bits of [`Real::exp`].
    exp_slice, exp
);
slice_kernel!(
    /// `out[i] = erf(x[i])`, the bits of [`Real::erf`].
    erf_slice, erf
);
slice_kernel!(
    /// `out[i] = tanh(x[i])`, the bits of [`Real::tanh`].
    tanh_slice, tanh
);

#[cfg(test)]
#[allow(clippy::float_cmp)] // the exact value is what is requested
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 37) % 101) as f64 * 0.25 - 12.0).collect()
    }

    #[test]
    fn maps_and_zips_across_chunks() {
        for n in [0, 1, 7, par::CHUNK, par::CHUNK + 1, 3 * par::CHUNK + 5] {
            let (x, y) = (numbers(n), numbers(n + 3));
            let mut out = vec![f64::NAN; n];
            map(&x, &mut out, |x| x * 2.0 + 1.0);
            assert!(out.iter().zip(&x).all(|(o, x)| *o == x * 2.0 + 1.0));
            zip(&x, &y[3..], &mut out, |x, y| x - y);
            assert!((0..n).all(|i| out[i] == x[i] - y[i + 3]));
            map_inplace(&mut out, |x| -x);
            assert!((0..n).all(|i| out[i] == -(x[i] - y[i + 3])));
        }
    }

    #[test]
    fn slices_have_the_bits_of_the_scalar_functions() {
        type Case<T> = (fn(&[T], &mut [T]), fn(T) -> T);
        fn check<T: Real>(x: &[T]) {
            let cases: [Case<T>; 3] = [(exp_slice, T::exp), (erf_slice, T::erf), (tanh_slice, T::tanh)];
            let mut out = vec![T::ZERO; x.len()];
            for (slice, scalar) in cases {
                slice(x, &mut out);
                for (&x, out) in x.iter().zip(&out) {
                    let y = std::hint::black_box(scalar)(x);
                    assert!(out.bits() == y.bits() || (out.is_nan() && y.is_nan()), "{x}");
                }
            }
        }
        // Every exponent and both signs, subnormals, infinities and NaN.
        let bits = (0..=u32::MAX).step_by(65_537 - 4);
        check(&bits.clone().map(f32::from_bits).collect::<Vec<_>>());
        let wide = bits.map(|b| f64::from_bits(u64::from(b) << 32));
        check(&wide.collect::<Vec<_>>());
    }

    #[test]
    fn broadcasts_like_the_indices_say() {
        // (dims, which axes x has, which axes y has)
        type Case = (&'static [usize], &'static [bool], &'static [bool]);
        let cases: [Case; 9] = [
            (&[], &[], &[]),
            (&[5], &[true], &[false]),
            (&[3, 4], &[true, true], &[false, true]),
            (&[3, 4], &[true, true], &[true, false]),
            (&[3, 4], &[false, true], &[true, false]),
            (&[2, 3, 4, 5], &[true; 4], &[true, false, true, true]),
            (&[2, 3, 4, 5], &[true; 4], &[false, false, true, true]),
            (&[200, 300], &[true, true], &[true, false]),
            (&[1, 70, 1, 600], &[false, false, true, true], &[true; 4]),
        ];
        for (dims, has_x, has_y) in cases {
            let strides = |has: &[bool]| {
                let mut strides = vec![0; dims.len()];
                let mut step = 1;
                for i in (0..dims.len()).rev() {
                    if has[i] {
                        strides[i] = step;
                        step *= dims[i];
                    }
                }
                (strides, numbers(step))
            };
            let ((sx, x), (sy, y)) = (strides(has_x), strides(has_y));
            let len = dims.iter().product();
            let mut out = vec![f64::NAN; len];
            zip_broadcast(&x, &sx, &y, &sy, dims, &mut out, |x, y| x * 3.0 - y);
            for (flat, got) in out.iter().enumerate() {
                let (mut rest, mut ox, mut oy) = (flat, 0, 0);
                for i in (0..dims.len()).rev() {
                    ox += rest % dims[i] * sx[i];
                    oy += rest % dims[i] * sy[i];
                    rest /= dims[i];
                }
                assert_eq!(*got, x[ox] * 3.0 - y[oy], "{dims:?} at {flat}");
            }
        }
    }

    #[test]
    fn an_empty_axis_gives_nothing() {
        let mut out: [f64; 0] = [];
        zip_broadcast(&[], &[1, 1], &[], &[1, 1], &[3, 0], &mut out, |x: f64, _: f64| x);
    }
}
