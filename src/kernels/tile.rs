//! Tiles: the innermost loops of a product, one per instruction set and number type.
//!
//! A tile is a few rows times two vectors of columns. Each of its elements has one accumulator, which takes one fused
//! multiply-add a step of `k` from +0: the order of the contract, whatever the tile's shape. A call covers at most
//! one block of `k`, and adds the block's sums to C (to +0 for the first block).

/// Adds one block of a product to a tile of C: `run(k, a, b, c, ldc, first)`.
///
/// # Safety
/// With `M` the rows of the tile and `NR` its columns: the processor has the instruction set; `a` holds `k·M` elements
/// (`M` a step), `b` holds `k·NR` (`NR` a step), and `c[i·ldc + j]` is valid for reads and writes for `i < M`,
/// `j < NR`, touched by nobody else meanwhile.
pub(super) type Run<T> = unsafe fn(usize, *const T, *const T, *mut T, usize, bool);

/// Transposes: `dst[p·nr + j] = src[j·ld + p]` for `p < k`, `j < cols`: `transpose(src, ld, k, cols, dst, nr)`.
///
/// # Safety
/// The processor has the instruction set; every element named is valid, and `src` and `dst` do not overlap.
pub(super) type Transpose<T> = unsafe fn(*const T, usize, usize, usize, *mut T, usize);

/// A family of tiles, of 1 to `run.len()` rows.
#[derive(Clone, Copy)]
pub(super) struct Tile<T: 'static> {
    /// Columns.
    pub nr: usize,
    /// `run[m - 1]` is the tile of `m` rows.
    pub run: &'static [Run<T>],
    /// For packing an operand that is contiguous along `k`.
    pub transpose: Transpose<T>,
}

/// A number type with tiles.
pub(super) trait Tiled: crate::tensor::Real {
    /// Tiles for AVX-512, if the processor has it.
    fn avx512() -> Option<Tile<Self>>;
    /// Tiles for AVX2 and FMA, if the processor has them.
    fn avx2() -> Option<Tile<Self>>;
    /// Takes this thread's scratch vector `slot`; what it holds is of no meaning.
    fn take_scratch(slot: usize) -> Vec<Self>;
    /// Gives it back.
    fn give_scratch(slot: usize, scratch: Vec<Self>);
}

/// Scratch vectors of a thread: packed A, packed block of B.
pub(super) const SLOTS: usize = 2;

macro_rules! scratch {
    ($t:ty) => {
        fn take_scratch(slot: usize) -> Vec<$t> {
            SCRATCH.with(|s| s[slot].take())
        }
        fn give_scratch(slot: usize, scratch: Vec<$t>) {
            SCRATCH.with(|s| s[slot].set(scratch));
        }
    };
}

macro_rules! tiled {
    ($t:ty, $avx512:ident, $avx2:ident) => {
        const _: () = {
            thread_local! {
                static SCRATCH: [std::cell::Cell<Vec<$t>>; SLOTS] =
                    const { [const { std::cell::Cell::new(Vec::new()) }; SLOTS] };
            }
            #[cfg(target_arch = "x86_64")]
            impl Tiled for $t {
                fn avx512() -> Option<Tile<$t>> {
                    (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx2")).then_some(x86::$avx512)
                }
                fn avx2() -> Option<Tile<$t>> {
                    (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(x86::$avx2)
                }
                scratch!($t);
            }
            #[cfg(not(target_arch = "x86_64"))]
            impl Tiled for $t {
                fn avx512() -> Option<Tile<$t>> {
                    None
                }
                fn avx2() -> Option<Tile<$t>> {
                    None
                }
                scratch!($t);
            }
        };
    };
}
tiled!(f32, F32_AVX512, F32_AVX2);
tiled!(f64, F64_AVX512, F64_AVX2);

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[allow(clippy::wildcard_imports)] // intrinsics
    use std::arch::x86_64::*;

    use super::{Run, Tile};

    macro_rules! tile {
        (
            $name:ident, $table:ident, $features:literal, $t:ty, $vec:ty, $lanes:literal,
            [$($m:literal)*], $transpose:ident,
            $zero:ident, $load:ident, $store:ident, $splat:ident, $fma:ident, $add:ident
        ) => {
            /// See [`Run`].
            ///
            /// # Safety
            /// As [`Run`] says, with `NR` two vectors.
            #[target_feature(enable = $features)]
            unsafe fn $name<const M: usize>(
                k: usize,
                a: *const $t,
                b: *const $t,
                c: *mut $t,
                ldc: usize,
                first: bool,
            ) {
                // SAFETY: every pointer stays inside what the caller promises: `a` moves M and `b` two vectors a step,
                // k times; `c` is used at rows below M and at the two vectors of each. Loads and stores are unaligned.
                unsafe {
                    let (mut a, mut b) = (a, b);
                    let mut acc = [[$zero(); 2]; M];
                    for _ in 0..k {
                        let (b0, b1) = ($load(b), $load(b.add($lanes)));
                        for (i, acc) in acc.iter_mut().enumerate() {
                            let x: $vec = $splat(*a.add(i));
                            acc[0] = $fma(x, b0, acc[0]);
                            acc[1] = $fma(x, b1, acc[1]);
                        }
                        a = a.add(M);
                        b = b.add(2 * $lanes);
                    }
                    for (i, acc) in acc.iter().enumerate() {
                        for (half, &acc) in acc.iter().enumerate() {
                            let c = c.add(i * ldc + half * $lanes);
                            // +0 + acc, not acc: a block sum of −0 leaves a total of +0.
                            let before = if first { $zero() } else { $load(c) };
                            $store(c, $add(before, acc));
                        }
                    }
                }
            }

            pub(super) const $table: Tile<$t> = Tile {
                nr: 2 * $lanes,
                run: &[$($name::<$m> as Run<$t>),*],
                transpose: $transpose,
            };
        };
    }

    tile!(
        f32_avx512, F32_AVX512, "avx512f", f32, __m512, 16, [1 2 3 4 5 6 7 8 9 10 11 12], transpose_f32,
        _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps
    );
    tile!(
        f64_avx512, F64_AVX512, "avx512f", f64, __m512d, 8, [1 2 3 4 5 6 7 8 9 10 11 12], transpose_f64,
        _mm512_setzero_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_add_pd
    );
    tile!(
        f32_avx2, F32_AVX2, "avx2,fma", f32, __m256, 8, [1 2 3 4 5 6], transpose_f32,
        _mm256_setzero_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps
    );
    tile!(
        f64_avx2, F64_AVX2, "avx2,fma", f64, __m256d, 4, [1 2 3 4 5 6], transpose_f64,
        _mm256_setzero_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_add_pd
    );

    /// See [`super::Transpose`].
    ///
    /// # Safety
    /// As there.
    #[target_feature(enable = "avx2")]
    unsafe fn transpose_f32(src: *const f32, ld: usize, k: usize, cols: usize, dst: *mut f32, nr: usize) {
        let (whole_k, whole_cols) = (k & !7, cols & !7);
        // SAFETY: squares of 8×8 whose corners lie below k and cols, then the single elements that are left: every
        // index is one the caller vouches for.
        unsafe {
            for j in (0..whole_cols).step_by(8) {
                for p in (0..whole_k).step_by(8) {
                    square_f32(src.add(j * ld + p), ld, dst.add(p * nr + j), nr);
                }
            }
            for j in 0..cols {
                let start = if j < whole_cols { whole_k } else { 0 };
                for p in start..k {
                    *dst.add(p * nr + j) = *src.add(j * ld + p);
                }
            }
        }
    }

    /// 8×8, in registers: pairs, then quadruples, then halves.
    ///
    /// # Safety
    /// AVX2; 8 rows of 8 elements at `src` (`ld` apart) and `dst` (`nr` apart) are valid.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn square_f32(src: *const f32, ld: usize, dst: *mut f32, nr: usize) {
        // SAFETY: reads and writes exactly the rows named above.
        unsafe {
            let r: [__m256; 8] = std::array::from_fn(|i| _mm256_loadu_ps(src.add(i * ld)));
            let pair = |i: usize| (_mm256_unpacklo_ps(r[i], r[i + 1]), _mm256_unpackhi_ps(r[i], r[i + 1]));
            let quad = |x: (__m256, __m256), y: (__m256, __m256)| {
                [
                    _mm256_shuffle_ps::<0x44>(x.0, y.0),
                    _mm256_shuffle_ps::<0xee>(x.0, y.0),
                    _mm256_shuffle_ps::<0x44>(x.1, y.1),
                    _mm256_shuffle_ps::<0xee>(x.1, y.1),
                ]
            };
            let low = quad(pair(0), pair(2));
            let high = quad(pair(4), pair(6));
            for i in 0..4 {
                let first = _mm256_permute2f128_ps::<0x20>(low[i], high[i]);
                let second = _mm256_permute2f128_ps::<0x31>(low[i], high[i]);
                _mm256_storeu_ps(dst.add(i * nr), first);
                _mm256_storeu_ps(dst.add((i + 4) * nr), second);
            }
        }
    }

    /// See [`super::Transpose`].
    ///
    /// # Safety
    /// As there.
    #[target_feature(enable = "avx2")]
    unsafe fn transpose_f64(src: *const f64, ld: usize, k: usize, cols: usize, dst: *mut f64, nr: usize) {
        let (whole_k, whole_cols) = (k & !3, cols & !3);
        // SAFETY: as in `transpose_f32`, with squares of 4×4.
        unsafe {
            for j in (0..whole_cols).step_by(4) {
                for p in (0..whole_k).step_by(4) {
                    let src = src.add(j * ld + p);
                    let dst = dst.add(p * nr + j);
                    let r: [__m256d; 4] = std::array::from_fn(|i| _mm256_loadu_pd(src.add(i * ld)));
                    let (a, b) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1]));
                    let (c, d) = (_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3]));
                    _mm256_storeu_pd(dst, _mm256_permute2f128_pd::<0x20>(a, c));
                    _mm256_storeu_pd(dst.add(nr), _mm256_permute2f128_pd::<0x20>(b, d));
                    _mm256_storeu_pd(dst.add(2 * nr), _mm256_permute2f128_pd::<0x31>(a, c));
                    _mm256_storeu_pd(dst.add(3 * nr), _mm256_permute2f128_pd::<0x31>(b, d));
                }
            }
            for j in 0..cols {
                let start = if j < whole_cols { whole_k } else { 0 };
                for p in start..k {
                    *dst.add(p * nr + j) = *src.add(j * ld + p);
                }
            }
        }
    }
}
