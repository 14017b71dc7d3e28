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

/// Whole sums of a product whose B is read once and lies contiguous along `k`, as weights do: `stream(k, a, b, ldb, c, ldc)`.
/// B is transposed in registers on the way, without being packed, and read from one end to the other.
///
/// # Safety
/// As [`Run`], except that `b[j·ldb + p]` is valid for `p < k`, `j < STREAM_COLUMNS`, and C has `STREAM_COLUMNS` columns.
pub(super) type Stream<T> = unsafe fn(usize, *const T, *const T, usize, *mut T, usize);

/// Columns that a [`Stream`] covers.
pub(super) const STREAM_COLUMNS: usize = 16;

/// A family of tiles, of 1 to `run.len()` rows.
#[derive(Clone, Copy)]
pub(super) struct Tile<T: 'static> {
    /// Columns.
    pub nr: usize,
    /// `run[m - 1]` is the tile of `m` rows.
    pub run: &'static [Run<T>],
    /// For packing an operand that is contiguous along `k`.
    pub transpose: Transpose<T>,
    /// `stream[m - 1]` is for `m` rows; empty where there is none.
    pub stream: &'static [Stream<T>],
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
    use crate::kernels::BLOCK;

    macro_rules! tile {
        (
            $name:ident, $table:ident, $features:literal, $t:ty, $vec:ty, $lanes:literal,
            [$($m:literal)*], $transpose:ident, $stream:expr,
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
                stream: $stream,
            };
        };
    }

    tile!(
        f32_avx512, F32_AVX512, "avx512f", f32, __m512, 16, [1 2 3 4 5 6 7 8 9 10 11 12], transpose_f32,
        &[stream_f32::<1>, stream_f32::<2>, stream_f32::<3>, stream_f32::<4>],
        _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps
    );
    tile!(
        f64_avx512, F64_AVX512, "avx512f", f64, __m512d, 8, [1 2 3 4 5 6 7 8 9 10 11 12], transpose_f64, &[],
        _mm512_setzero_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_add_pd
    );
    tile!(
        f32_avx2, F32_AVX2, "avx2,fma", f32, __m256, 8, [1 2 3 4 5 6], transpose_f32, &[],
        _mm256_setzero_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps
    );
    tile!(
        f64_avx2, F64_AVX2, "avx2,fma", f64, __m256d, 4, [1 2 3 4 5 6], transpose_f64, &[],
        _mm256_setzero_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_add_pd
    );

    /// See [`super::Stream`].
    ///
    /// # Safety
    /// As there.
    #[target_feature(enable = "avx512f")]
    unsafe fn stream_f32<const M: usize>(k: usize, a: *const f32, b: *const f32, ldb: usize, c: *mut f32, ldc: usize) {
        /// Elements ahead that a column is requested: past the square at hand and the next.
        const AHEAD: usize = 64;
        // SAFETY: columns of B are read below `k` (the last square of a block through a mask), `a` at M a step, C at its M
        // rows of one vector. What is prefetched may lie outside: that is a hint, and no access.
        unsafe {
            let mut total = [_mm512_setzero_ps(); M];
            for start in (0..k).step_by(BLOCK) {
                let end = k.min(start + BLOCK);
                let mut acc = [_mm512_setzero_ps(); M];
                for p in (start..end).step_by(16) {
                    let steps = (end - p).min(16);
                    let mask = (0xffff_u32 >> (16 - steps)) as __mmask16;
                    // Near its end, a column is followed by the one that is read after it: 16 columns on.
                    let ahead = if p + AHEAD < k { p + AHEAD } else { 16 * ldb + (p + AHEAD - k) };
                    let rows: [__m512; 16] = std::array::from_fn(|j| {
                        let column = b.add(j * ldb);
                        _mm_prefetch::<_MM_HINT_T0>(column.wrapping_add(ahead).cast());
                        _mm512_maskz_loadu_ps(mask, column.add(p))
                    });
                    let columns = square_f32x16(&rows);
                    for (q, b) in columns.into_iter().enumerate().take(steps) {
                        for (i, acc) in acc.iter_mut().enumerate() {
                            *acc = _mm512_fmadd_ps(_mm512_set1_ps(*a.add((p + q) * M + i)), b, *acc);
                        }
                    }
                }
                for (total, &acc) in total.iter_mut().zip(&acc) {
                    *total = _mm512_add_ps(*total, acc);
                }
            }
            for (i, &total) in total.iter().enumerate() {
                _mm512_storeu_ps(c.add(i * ldc), total);
            }
        }
    }

    /// A transposed square of 16×16: pairs, then quadruples within lanes, then the lanes.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn square_f32x16(r: &[__m512; 16]) -> [__m512; 16] {
        let pairs: [__m512; 16] = std::array::from_fn(|i| {
            let (a, b) = (r[i & !1], r[i | 1]);
            if i & 1 == 0 { _mm512_unpacklo_ps(a, b) } else { _mm512_unpackhi_ps(a, b) }
        });
        // quads[4g + c] holds in lane l the elements 4l + c of the rows 4g..4g + 4.
        let quads: [__m512; 16] = std::array::from_fn(|i| {
            let (group, c) = (i & !3, i & 3);
            let a = _mm512_castps_pd(pairs[group + c / 2]);
            let b = _mm512_castps_pd(pairs[group + 2 + c / 2]);
            _mm512_castpd_ps(if c & 1 == 0 { _mm512_unpacklo_pd(a, b) } else { _mm512_unpackhi_pd(a, b) })
        });
        let mut out = [_mm512_setzero_ps(); 16];
        for c in 0..4 {
            let (a, b) = (quads[c], quads[4 + c]);
            let (d, e) = (quads[8 + c], quads[12 + c]);
            let (even, odd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
            let (even2, odd2) = (_mm512_shuffle_f32x4::<0x88>(d, e), _mm512_shuffle_f32x4::<0xdd>(d, e));
            out[c] = _mm512_shuffle_f32x4::<0x88>(even, even2);
            out[8 + c] = _mm512_shuffle_f32x4::<0xdd>(even, even2);
            out[4 + c] = _mm512_shuffle_f32x4::<0x88>(odd, odd2);
            out[12 + c] = _mm512_shuffle_f32x4::<0xdd>(odd, odd2);
        }
        out
    }

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
