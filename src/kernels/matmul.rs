//! Products of matrices, in the order of the contract.

use std::any::TypeId;
use std::sync::OnceLock;

use rayon::prelude::*;

use super::gemm;
use super::mat::Mat;
use super::processor::{self, Limit};
use super::tile::{Tile, Tiled};
use crate::tensor::{Precision, Real};

impl<'a, T: Real> Mat<'a, T> {
    fn cast<U: Real>(self) -> Mat<'a, U> {
        Mat {
            data: cast(self.data),
            rows: self.rows,
            cols: self.cols,
            row_stride: self.row_stride,
            col_stride: self.col_stride,
        }
    }
}

/// An implementation of the product. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Our tiles for AVX-512.
    Avx512,
    /// Our tiles for AVX2 and FMA.
    Avx2,
    /// The crate `matrixmultiply`.
    Crate,
    /// Multiplies, then adds, as a processor without fused multiply-add does.
    Separate,
}

impl Kernel {
    /// Its name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Avx512 => "AVX-512 tiles",
            Kernel::Avx2 => "AVX2 tiles",
            Kernel::Crate => "matrixmultiply",
            Kernel::Separate => "separate multiplication and addition",
        }
    }

    fn is_available(self) -> bool {
        match self {
            Kernel::Avx512 => f32::avx512().is_some(),
            Kernel::Avx2 => f32::avx2().is_some(),
            Kernel::Crate | Kernel::Separate => true,
        }
    }

    fn tile<T: Tiled>(self) -> Option<Tile<T>> {
        match self {
            Kernel::Avx512 => T::avx512(),
            Kernel::Avx2 => T::avx2(),
            Kernel::Crate | Kernel::Separate => None,
        }
    }
}

/// The kernels this processor can run and may run, best first. They agree about every bit.
pub fn kernels() -> impl Iterator<Item = Kernel> {
    let all: &[Kernel] = match processor::limit() {
        Limit::None => &[Kernel::Avx512, Kernel::Avx2, Kernel::Crate],
        Limit::Avx2 => &[Kernel::Avx2, Kernel::Crate],
        Limit::Portable => &[Kernel::Crate],
        Limit::Separate => &[Kernel::Separate],
    };
    all.iter().copied().filter(|kernel| kernel.is_available())
}

fn best() -> Kernel {
    static BEST: OnceLock<Kernel> = OnceLock::new();
    *BEST.get_or_init(|| kernels().next().unwrap_or(Kernel::Crate))
}

/// `out = a·b`: `a` is m×k, `b` is k×n, `out` is m×n, row-major and contiguous. Every element is written.
///
/// # Panics
/// Where the shapes do not fit, or a view reaches outside its data.
pub fn matmul<T: Real>(a: Mat<T>, b: Mat<T>, out: &mut [T]) {
    run(best(), a, b, out);
}

/// As [`matmul`], with a chosen kernel; one that this processor lacks is replaced by `matrixmultiply`.
///
/// # Panics
/// As [`matmul`].
pub fn run<T: Real>(kernel: Kernel, a: Mat<T>, b: Mat<T>, out: &mut [T]) {
    assert_eq!(a.cols, b.rows, "inner dimensions of a product");
    assert_eq!(out.len(), a.rows * b.cols, "elements of a product");
    assert!(a.is_inside() && b.is_inside(), "a view reaches outside its data");
    match T::PRECISION {
        Precision::F32 => run_as::<T, f32>(kernel, a, b, out),
        Precision::F64 => run_as::<T, f64>(kernel, a, b, out),
    }
}

fn run_as<T: Real, U: Tiled>(kernel: Kernel, a: Mat<T>, b: Mat<T>, out: &mut [T]) {
    let (a, b, out) = (a.cast::<U>(), b.cast::<U>(), cast_mut::<T, U>(out));
    match kernel.tile::<U>() {
        Some(tile) => gemm::multiply(tile, a, b, out),
        None => untiled(kernel, a, b, out),
    }
}

/// Many products of one shape: `out[i] = a(i)·b(i)`, each m×n and contiguous in `out`.
///
/// # Panics
/// As [`matmul`], or where `out` is not a whole number of products of `m·n` elements.
pub fn matmul_batched<'a, T: Real>(
    m: usize,
    n: usize,
    a: impl Fn(usize) -> Mat<'a, T> + Sync,
    b: impl Fn(usize) -> Mat<'a, T> + Sync,
    out: &mut [T],
) {
    if m * n == 0 {
        assert!(out.is_empty(), "elements of a batch of empty products");
        return;
    }
    assert_eq!(out.len() % (m * n), 0, "elements of a batch of products");
    let batch = out.len() / (m * n);
    let work = out.len() * a(0).cols;
    let one = |(i, out): (usize, &mut [T])| matmul(a(i), b(i), out);
    if batch > 1 && work > super::par::CHUNK {
        out.par_chunks_mut(m * n).enumerate().for_each(one);
    } else {
        out.chunks_mut(m * n).enumerate().for_each(one);
    }
}

fn untiled<T: Real>(kernel: Kernel, a: Mat<T>, b: Mat<T>, out: &mut [T]) {
    if kernel == Kernel::Separate { separate(a, b, out) } else { via_crate(a, b, out) }
}

/// The order of the contract, rounded after each multiplication.
fn separate<T: Real>(a: Mat<T>, b: Mat<T>, out: &mut [T]) {
    out.fill(T::ZERO);
    let mut sums = vec![T::ZERO; b.cols];
    for (i, out) in out.chunks_exact_mut(b.cols.max(1)).enumerate() {
        for start in (0..a.cols).step_by(super::BLOCK) {
            sums.fill(T::ZERO);
            for p in start..a.cols.min(start + super::BLOCK) {
                let x = a.data[i * a.row_stride + p * a.col_stride];
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum += x * b.data[p * b.row_stride + j * b.col_stride];
                }
            }
            for (out, &sum) in out.iter_mut().zip(&sums) {
                *out += sum;
            }
        }
    }
}

fn via_crate<T: Real>(a: Mat<T>, b: Mat<T>, out: &mut [T]) {
    out.fill(T::ZERO);
    let (m, k, n) = (a.rows, a.cols, b.cols);
    let stride = |s: usize| isize::try_from(s).expect("stride fits the address space");
    let (rsa, csa) = (stride(a.row_stride), stride(a.col_stride));
    let (rsb, csb) = (stride(b.row_stride), stride(b.col_stride));
    macro_rules! gemm {
        ($f:path, $t:ty) => {
            // SAFETY: `T` is the type named (its tag says so, and `Real` is sealed to these two); `run` has checked that
            // every element of both views lies inside its slice and that `out` holds m×n elements, and `out` is
            // borrowed mutably, so it overlaps neither.
            unsafe {
                $f(
                    m,
                    k,
                    n,
                    1.0,
                    a.data.as_ptr().cast::<$t>(),
                    rsa,
                    csa,
                    b.data.as_ptr().cast::<$t>(),
                    rsb,
                    csb,
                    1.0,
                    out.as_mut_ptr().cast::<$t>(),
                    n.max(1) as isize,
                    1,
                );
            }
        };
    }
    match T::PRECISION {
        Precision::F32 => gemm!(matrixmultiply::sgemm, f32),
        Precision::F64 => gemm!(matrixmultiply::dgemm, f64),
    }
}

/// `x` under the name `U` of its own type.
fn cast<T: Real, U: Real>(x: &[T]) -> &[U] {
    assert_eq!(TypeId::of::<T>(), TypeId::of::<U>());
    // SAFETY: the types are the same.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) }
}

/// As [`cast`].
fn cast_mut<T: Real, U: Real>(x: &mut [T]) -> &mut [U] {
    assert_eq!(TypeId::of::<T>(), TypeId::of::<U>());
    // SAFETY: the types are the same.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len()) }
}
