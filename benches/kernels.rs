//! Kernels at the shapes of BERT-base: products against plain `matrixmultiply`, elementary functions against `libm`.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tui_transformer::kernels::Mat;
use tui_transformer::kernels::matmul;
use tui_transformer::kernels::{Reduction, erf_slice, exp_slice, fold, matmul_batched, tanh_slice};
use tui_transformer::tensor::Real;

fn numbers<T: Real>(n: usize) -> Vec<T> {
    let mut seed = 1u64;
    (0..n)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            T::from_f64((seed >> 11) as f64 / (1u64 << 51) as f64 * 2.0 - 2.0)
        })
        .collect()
}

/// `x·Wᵀ` with W `[n, k]`, or `x·W` with W `[k, n]`.
fn product<T: Real>(c: &mut Criterion, name: &str, m: usize, k: usize, n: usize, transposed: bool) {
    let (x, w) = (numbers::<T>(m * k), numbers::<T>(k * n));
    let x = Mat::row_major(&x, m, k);
    let w = if transposed { Mat::row_major(&w, n, k).t() } else { Mat::row_major(&w, k, n) };
    let mut out = vec![T::ZERO; m * n];
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements((m * k * n) as u64));
    for kernel in matmul::kernels() {
        group.bench_function(kernel.name(), |bench| {
            bench.iter(|| matmul::run(kernel, black_box(x), black_box(w), &mut out));
        });
    }
    group.finish();
}

fn products(c: &mut Criterion) {
    product::<f32>(c, "128x768·(768x768)ᵀ f32", 128, 768, 768, true);
    product::<f32>(c, "128x768·768x3072 f32", 128, 768, 3072, false);
    product::<f32>(c, "128x3072·(768x3072)ᵀ f32", 128, 3072, 768, true);
    product::<f32>(c, "1x768·(3072x768)ᵀ f32", 1, 768, 3072, true);
    product::<f32>(c, "1x768·768x3072 f32", 1, 768, 3072, false);
    product::<f32>(c, "4x768·(3072x768)ᵀ f32", 4, 768, 3072, true);
    product::<f32>(c, "4x4·4x4 f32", 4, 4, 4, false);
    product::<f64>(c, "4x4·4x4 f64", 4, 4, 4, false);
    product::<f64>(c, "128x768·(768x768)ᵀ f64", 128, 768, 768, true);

    let (q, k) = (numbers::<f32>(12 * 128 * 64), numbers::<f32>(12 * 128 * 64));
    let mut scores = vec![0.0; 12 * 128 * 128];
    c.bench_function("12 heads 128x64·(128x64)ᵀ f32", |bench| {
        bench.iter(|| {
            matmul_batched(
                128,
                128,
                |h| Mat::row_major(&q[h * 8192..][..8192], 128, 64),
                |h| Mat::row_major(&k[h * 8192..][..8192], 128, 64).t(),
                black_box(&mut scores),
            );
        });
    });
}

fn slices(c: &mut Criterion) {
    type Slice = fn(&[f32], &mut [f32]);
    type Scalar = fn(f32) -> f32;
    let functions: [(&str, Slice, Scalar); 3] =
        [("exp", exp_slice, libm::expf), ("erf", erf_slice, libm::erff), ("tanh", tanh_slice, libm::tanhf)];
    let x = numbers::<f32>(128 * 3072);
    let mut out = vec![0.0; x.len()];
    for (name, slice, scalar) in functions {
        let mut group = c.benchmark_group(format!("{name} of 128x3072 f32"));
        group.throughput(Throughput::Elements(x.len() as u64));
        group.bench_function("slice", |bench| {
            bench.iter(|| slice(black_box(&x), &mut out));
        });
        group.bench_function("libm, one thread", |bench| {
            bench.iter(|| {
                for (out, &x) in out.iter_mut().zip(black_box(&x)) {
                    *out = scalar(x);
                }
            });
        });
        group.finish();
    }
}

fn folds(c: &mut Criterion) {
    let x = numbers::<f32>(128 * 768);
    let mut out = vec![0.0; 128];
    for reduction in [Reduction::Sum, Reduction::Max, Reduction::Mean] {
        c.bench_function(&format!("{reduction:?} of rows, 128x768 f32"), |bench| {
            bench.iter(|| fold(reduction, black_box(&x), 128, 768, 1, &mut out));
        });
    }
}

criterion_group!(benches, products, slices, folds);
criterion_main!(benches);
