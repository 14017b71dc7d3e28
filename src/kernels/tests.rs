//! Every kernel of the product against the replay, bit for bit.

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;

use super::mat::Mat;
use super::matmul::{self, Kernel};
use super::{contract, dot, matmul_batched};
use crate::tensor::Real;

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug)]
enum Layout {
    RowMajor,
    Transposed,
    /// Rows with a gap between them.
    Gap,
    /// Every second column.
    Wide,
    /// One row, repeated.
    OneRow,
    /// One column, repeated.
    OneColumn,
}

const LAYOUTS: [Layout; 6] =
    [Layout::RowMajor, Layout::Transposed, Layout::Gap, Layout::Wide, Layout::OneRow, Layout::OneColumn];

/// What the numbers are like.
#[derive(Clone, Copy, Debug)]
enum Numbers {
    Rough,
    /// Zeros of both signs, numbers whose products underflow, and some ordinary ones.
    Tiny,
    /// Infinities and NaN among ordinary numbers.
    Wild,
}

fn number<T: Real>(numbers: Numbers, seed: &mut u64) -> T {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let rough = (*seed >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    let pick = (*seed >> 33) % 64;
    T::from_f64(match (numbers, pick) {
        (Numbers::Tiny, 0..16) => 0.0,
        (Numbers::Tiny, 16..32) => -0.0,
        (Numbers::Tiny, 32..48) => rough * 1e-30,
        (Numbers::Tiny, 48..60) => rough * 1e-200,
        (Numbers::Wild, 0) => f64::INFINITY,
        (Numbers::Wild, 1) => f64::NEG_INFINITY,
        (Numbers::Wild, 2) => f64::NAN,
        (Numbers::Wild, 3) => 3e38,
        _ => rough,
    })
}

/// The memory and the strides of a `rows`×`cols` operand.
fn operand<T: Real>(rows: usize, cols: usize, layout: Layout, numbers: Numbers, seed: u64) -> (Vec<T>, usize, usize) {
    let (row_stride, col_stride) = match layout {
        Layout::RowMajor => (cols, 1),
        Layout::Transposed => (1, rows),
        Layout::Gap => (cols + 3, 1),
        Layout::Wide => (2 * cols, 2),
        Layout::OneRow => (0, 1),
        Layout::OneColumn => (1, 0),
    };
    let len = if rows * cols == 0 { 0 } else { (rows - 1) * row_stride + (cols - 1) * col_stride + 1 };
    let mut seed = seed | 1;
    let data = (0..len).map(|_| number(numbers, &mut seed)).collect();
    (data, row_stride, col_stride)
}

#[derive(Clone, Copy, Debug)]
struct Case {
    m: usize,
    k: usize,
    n: usize,
    a: Layout,
    b: Layout,
    numbers: Numbers,
}

fn same<T: Real>(x: T, y: T) -> bool {
    x.bits() == y.bits() || (x.is_nan() && y.is_nan())
}

fn check<T: Real>(case: Case) {
    let Case { m, k, n, .. } = case;
    let (a, a_rows, a_cols) = operand::<T>(m, k, case.a, case.numbers, 7);
    let (b, b_rows, b_cols) = operand::<T>(k, n, case.b, case.numbers, 11);
    let a = Mat { data: &a, rows: m, cols: k, row_stride: a_rows, col_stride: a_cols };
    let b = Mat { data: &b, rows: k, cols: n, row_stride: b_rows, col_stride: b_cols };
    let fma = contract().fma;
    let replay: Vec<T> = (0..m * n)
        .map(|at| {
            let (i, j) = (at / n, at % n);
            dot(k, |p| a.data[i * a_rows + p * a_cols], |p| b.data[p * b_rows + j * b_cols], fma)
        })
        .collect();
    let mut out = vec![T::from_f64(f64::NAN); m * n];
    for kernel in matmul::kernels() {
        out.fill(T::from_f64(f64::NAN));
        matmul::run(kernel, a, b, &mut out);
        for (at, (&x, &y)) in out.iter().zip(&replay).enumerate() {
            assert!(same(x, y), "{} {:?} {case:?} at {at}: {x} {y}", kernel.name(), T::PRECISION);
        }
    }
}

fn check_both(case: Case) {
    check::<f32>(case);
    check::<f64>(case);
}

const PLAIN: Case = Case { m: 1, k: 1, n: 1, a: Layout::RowMajor, b: Layout::RowMajor, numbers: Numbers::Rough };

#[test]
fn edges_of_blocks_and_tiles() {
    for k in [0, 1, 2, 255, 256, 257, 513] {
        for (m, n) in [(1, 1), (1, 33), (2, 31), (6, 16), (12, 32), (13, 65), (25, 8)] {
            check_both(Case { m, k, n, ..PLAIN });
        }
    }
    for m in 0..27 {
        for n in [0, 1, 2, 7, 8, 9, 15, 16, 17, 32, 40] {
            check_both(Case { m, k: 5, n, ..PLAIN });
        }
    }
}

#[test]
fn few_rows_times_weights_contiguous_along_k() {
    for m in 1..=5 {
        for n in [15, 16, 32, 33, 48, 64, 80] {
            for k in [1, 15, 16, 17, 255, 256, 257, 600] {
                check_both(Case { m, k, n, b: Layout::Transposed, ..PLAIN });
            }
        }
    }
    // Large enough for several threads.
    check_both(Case { m: 1, k: 300, n: 512, b: Layout::Transposed, ..PLAIN });
}

#[test]
fn every_pair_of_layouts() {
    for a in LAYOUTS {
        for b in LAYOUTS {
            for (m, k, n) in [(1, 300, 45), (3, 9, 20), (29, 270, 37)] {
                check_both(Case { m, k, n, a, b, numbers: Numbers::Rough });
            }
        }
    }
}

#[test]
fn zeros_underflow_infinities_and_nan() {
    for numbers in [Numbers::Tiny, Numbers::Wild] {
        for k in [1, 2, 5, 300] {
            for (m, n) in [(1, 40), (14, 33)] {
                check_both(Case { m, k, n, numbers, ..PLAIN });
            }
        }
    }
}

#[test]
fn one_thread_is_two_threads() {
    // Above the size from which a product is shared out: many panels, few panels, one row.
    for (m, k, n) in [(33, 300, 130), (300, 257, 20), (1, 1025, 1030)] {
        let (a, ..) = operand::<f32>(m, k, Layout::RowMajor, Numbers::Rough, 3);
        let (b, ..) = operand::<f32>(n, k, Layout::RowMajor, Numbers::Rough, 5);
        let (a, b) = (Mat::row_major(&a, m, k), Mat::row_major(&b, n, k).t());
        assert!(m * k * n > 1 << 20);
        for kernel in matmul::kernels() {
            let outs = [1, 2, 3].map(|threads| {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut out = vec![f32::NAN; m * n];
                pool.install(|| matmul::run(kernel, a, b, &mut out));
                out
            });
            for (at, x) in outs[0].iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let replay = dot(k, |p| a.data[i * k + p], |p| b.data[j * k + p], contract().fma);
                assert_eq!(x.to_bits(), replay.to_bits());
                assert_eq!(x.to_bits(), outs[1][at].to_bits());
                assert_eq!(x.to_bits(), outs[2][at].to_bits());
            }
        }
    }
}

#[test]
fn a_batch_is_its_products() {
    for (batch, m, k, n) in [(1, 3, 4, 5), (12, 40, 64, 40), (3, 0, 2, 2), (2, 2, 0, 3)] {
        let (a, ..) = operand::<f64>(batch * m, k, Layout::RowMajor, Numbers::Rough, 3);
        let (b, ..) = operand::<f64>(batch * n, k, Layout::RowMajor, Numbers::Rough, 5);
        let a = |i: usize| Mat::row_major(&a[i * m * k..][..m * k], m, k);
        let b = |i: usize| Mat::row_major(&b[i * n * k..][..n * k], n, k).t();
        let mut out = vec![f64::NAN; batch * m * n];
        matmul_batched(m, n, a, b, &mut out);
        for i in 0..batch {
            let mut one = vec![f64::NAN; m * n];
            matmul::matmul(a(i), b(i), &mut one);
            let same = one.iter().zip(&out[i * m * n..]).all(|(x, y)| x.to_bits() == y.to_bits());
            assert!(same, "product {i}");
        }
    }
}

#[test]
fn the_best_kernel_comes_first_and_the_crate_is_always_there() {
    let all: Vec<Kernel> = matmul::kernels().collect();
    assert_eq!(all.last(), Some(&Kernel::Crate));
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        assert_ne!(all[0], Kernel::Crate);
    }
}

#[test]
#[should_panic(expected = "outside its data")]
fn a_view_past_its_data_is_refused() {
    let data = [1.0f32; 5];
    matmul::matmul(Mat::row_major(&data, 2, 3), Mat::row_major(&data, 3, 1), &mut [0.0; 2]);
}

#[test]
#[should_panic(expected = "inner dimensions")]
fn shapes_that_do_not_fit_are_refused() {
    let data = [1.0f32; 6];
    matmul::matmul(Mat::row_major(&data, 2, 3), Mat::row_major(&data, 2, 3), &mut [0.0; 6]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_shape_layout_and_numbers(
        m in 0usize..40,
        k in 0usize..530,
        n in 0usize..80,
        a in 0usize..LAYOUTS.len(),
        b in 0usize..LAYOUTS.len(),
        numbers in 0usize..3,
    ) {
        check_both(Case {
            m,
            k,
            n,
            a: LAYOUTS[a],
            b: LAYOUTS[b],
            numbers: [Numbers::Rough, Numbers::Tiny, Numbers::Wild][numbers],
        });
    }
}
