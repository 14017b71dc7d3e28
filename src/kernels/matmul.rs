//! Products of matrices, in the order of the contract.

use rayon::prelude::*;

use crate::tensor::Real;

/// A view of a matrix: element `(i, j)` is `data[i·row_stride + j·col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Mat<'a, T> {
    /// The elements, from `(0, 0)` on.
    pub data: &'a [T],
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Distance between rows, in elements.
    pub row_stride: usize,
    /// Distance between columns, in elements.
    pub col_stride: usize,
}

impl<'a, T> Mat<'a, T> {
    /// A contiguous matrix.
    pub fn row_major(data: &'a [T], rows: usize, cols: usize) -> Self {
        Self {
            data,
            rows,
            cols,
            row_stride: cols,
            col_stride: 1,
        }
    }

    /// Its transpose: the same memory read the other way.
    #[must_use]
    pub fn t(self) -> Self {
        Self {
            data: self.data,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }

    /// Whether every element lies inside `data`.
    pub(super) fn is_inside(&self) -> bool {
        self.rows == 0 || self.cols == 0 || {
            let last = (self.rows - 1)
                .checked_mul(self.row_stride)
                .zip((self.cols - 1).checked_mul(self.col_stride))
                .and_then(|(r, c)| r.checked_add(c));
            last.is_some_and(|last| last < self.data.len())
        }
    }
}

/// An implementation of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// The crate `matrixmultiply`.
    Crate,
}

impl Kernel {
    /// Its name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Crate => "matrixmultiply",
        }
    }
}

/// The kernels this processor can run, best first.
pub fn kernels() -> impl Iterator<Item = Kernel> {
    [Kernel::Crate].into_iter()
}

/// `out = a·b`: `a` is m×k, `b` is k×n, `out` is m×n, row-major and contiguous. Every element is written.
///
/// # Panics
/// Where the shapes do not fit, or a view reaches outside its data.
pub fn matmul<T: Real>(a: Mat<T>, b: Mat<T>, out: &mut [T]) {
    run(Kernel::Crate, a, b, out);
}

/// As [`matmul`], with a chosen kernel.
///
/// # Panics
/// As [`matmul`].
pub fn run<T: Real>(kernel: Kernel, a: Mat<T>, b: Mat<T>, out: &mut [T]) {
    assert_eq!(a.cols, b.rows, "inner dimensions of a product");
    assert_eq!(out.len(), a.rows * b.cols, "elements of a product");
    assert!(
        a.is_inside() && b.is_inside(),
        "a view reaches outside its data"
    );
    match kernel {
        Kernel::Crate => via_crate(a, b, out),
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
        crate::tensor::Precision::F32 => gemm!(matrixmultiply::sgemm, f32),
        crate::tensor::Precision::F64 => gemm!(matrixmultiply::dgemm, f64),
    }
}
