//! Number types of GGUF files: blocks of quantised weights, widened to f32 in the order of operations of the `gguf`
//! package (a product with the scale, then the offset; no fused multiply-add).

use half::{bf16, f16};

/// A number type of a GGUF file that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[allow(non_camel_case_types, reason = "the names of the format")]
pub enum GgmlType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    BF16,
    /// IEEE 754 binary64.
    F64,
    /// Signed bytes.
    I8,
    /// Integers of 16 bits.
    I16,
    /// Integers of 32 bits.
    I32,
    /// Integers of 64 bits.
    I64,
    /// 4 bits, one scale a block of 32.
    Q4_0,
    /// 4 bits, a scale and an offset a block of 32.
    Q4_1,
    /// 5 bits, one scale a block of 32.
    Q5_0,
    /// 5 bits, a scale and an offset a block of 32.
    Q5_1,
    /// 8 bits, one scale a block of 32.
    Q8_0,
    /// 2 bits, scales and offsets of 16 in blocks of 256.
    Q2_K,
    /// 3 bits, scales of 16 in blocks of 256.
    Q3_K,
    /// 4 bits, scales and offsets of 32 in blocks of 256.
    Q4_K,
    /// 5 bits, scales and offsets of 32 in blocks of 256.
    Q5_K,
    /// 6 bits, scales of 16 in blocks of 256.
    Q6_K,
    /// 4 bits that choose one of 16 levels, one scale a block of 32.
    IQ4_NL,
    /// The same levels, scales of 32 in blocks of 256.
    IQ4_XS,
}

/// Levels of IQ4_NL and IQ4_XS.
const LEVELS: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Names of the types that are in the format but not read here, by number.
const OTHERS: [(u32, &str); 14] = [
    (9, "Q8_1"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
    (41, "Q1_0"),
];

impl GgmlType {
    /// The type with this number in the file.
    ///
    /// # Errors
    /// Its name, or its number where it has none, where it is not read here.
    pub fn from_number(number: u32) -> Result<Self, String> {
        Ok(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            10 => Self::Q2_K,
            11 => Self::Q3_K,
            12 => Self::Q4_K,
            13 => Self::Q5_K,
            14 => Self::Q6_K,
            20 => Self::IQ4_NL,
            23 => Self::IQ4_XS,
            24 => Self::I8,
            25 => Self::I16,
            26 => Self::I32,
            27 => Self::I64,
            28 => Self::F64,
            30 => Self::BF16,
            _ => {
                let known = OTHERS.iter().find(|(n, _)| *n == number);
                return Err(known.map_or_else(|| format!("#{number}"), |(_, name)| (*name).to_owned()));
            }
        })
    }

    /// Elements and bytes of a block.
    pub fn block(self) -> (usize, usize) {
        match self {
            Self::F32 | Self::I32 => (1, 4),
            Self::F16 | Self::BF16 | Self::I16 => (1, 2),
            Self::F64 | Self::I64 => (1, 8),
            Self::I8 => (1, 1),
            Self::Q4_0 | Self::IQ4_NL => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
            Self::Q2_K => (256, 84),
            Self::Q3_K => (256, 110),
            Self::Q4_K => (256, 144),
            Self::Q5_K => (256, 176),
            Self::Q6_K => (256, 210),
            Self::IQ4_XS => (256, 136),
        }
    }

    /// Bytes of `elements` of a row; `None` where they do not fill whole blocks, or the number is too large.
    pub fn bytes(self, elements: usize) -> Option<usize> {
        let (block, size) = self.block();
        elements.is_multiple_of(block).then_some(elements / block)?.checked_mul(size)
    }

    /// Widens the blocks of `data` and gives each number to `put`, in order.
    pub fn widen(self, data: &[u8], mut put: impl FnMut(f64)) {
        match self {
            Self::F32 => each(data, |b| put(f32::from_le_bytes(b).into())),
            Self::F64 => each(data, |b| put(f64::from_le_bytes(b))),
            Self::F16 => each(data, |b| put(f16::from_le_bytes(b).to_f64())),
            Self::BF16 => each(data, |b| put(bf16::from_le_bytes(b).to_f64())),
            Self::I8 => each(data, |b| put(i8::from_le_bytes(b).into())),
            Self::I16 => each(data, |b| put(i16::from_le_bytes(b).into())),
            Self::I32 => each(data, |b| put(i32::from_le_bytes(b).into())),
            Self::I64 => each(data, |b| put(i64::from_le_bytes(b) as f64)),
            Self::Q4_0 => blocks::<18, 32>(data, put, q4_0),
            Self::Q4_1 => blocks::<20, 32>(data, put, q4_1),
            Self::Q5_0 => blocks::<22, 32>(data, put, q5_0),
            Self::Q5_1 => blocks::<24, 32>(data, put, q5_1),
            Self::Q8_0 => blocks::<34, 32>(data, put, q8_0),
            Self::Q2_K => blocks::<84, 256>(data, put, q2_k),
            Self::Q3_K => blocks::<110, 256>(data, put, q3_k),
            Self::Q4_K => blocks::<144, 256>(data, put, q4_k),
            Self::Q5_K => blocks::<176, 256>(data, put, q5_k),
            Self::Q6_K => blocks::<210, 256>(data, put, q6_k),
            Self::IQ4_NL => blocks::<18, 32>(data, put, iq4_nl),
            Self::IQ4_XS => blocks::<136, 256>(data, put, iq4_xs),
        }
    }
}

fn each<const N: usize>(data: &[u8], mut put: impl FnMut([u8; N])) {
    data.as_chunks::<N>().0.iter().for_each(|b| put(*b));
}

fn blocks<const SIZE: usize, const N: usize>(
    data: &[u8],
    mut put: impl FnMut(f64),
    widen: impl Fn(&[u8; SIZE], &mut [f32; N]),
) {
    let mut out = [0.0; N];
    for block in data.as_chunks::<SIZE>().0 {
        widen(block, &mut out);
        for x in out {
            put(f64::from(x));
        }
    }
}

/// The binary16 at byte `at`.
fn half(b: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([b[at], b[at + 1]]).to_f32()
}

/// The 4 bits of element `i` of a block of 32: low halves of the bytes first, then their high halves.
fn nibble(qs: &[u8], i: usize) -> u8 {
    if i < 16 { qs[i] & 15 } else { qs[i - 16] >> 4 }
}

fn q4_0(b: &[u8; 18], out: &mut [f32; 32]) {
    let d = half(b, 0);
    for (i, y) in out.iter_mut().enumerate() {
        *y = d * (f32::from(nibble(&b[2..], i)) - 8.0);
    }
}

fn q4_1(b: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (half(b, 0), half(b, 2));
    for (i, y) in out.iter_mut().enumerate() {
        *y = d * f32::from(nibble(&b[4..], i)) + m;
    }
}

/// The 5 bits of element `i`: the fifth is bit `i` of `high`.
fn five(high: &[u8], low: &[u8], i: usize) -> u8 {
    nibble(low, i) | ((high[i / 8] >> (i % 8)) & 1) << 4
}

fn q5_0(b: &[u8; 22], out: &mut [f32; 32]) {
    let d = half(b, 0);
    for (i, y) in out.iter_mut().enumerate() {
        *y = d * (f32::from(five(&b[2..6], &b[6..], i)) - 16.0);
    }
}

fn q5_1(b: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (half(b, 0), half(b, 2));
    for (i, y) in out.iter_mut().enumerate() {
        *y = d * f32::from(five(&b[4..8], &b[8..], i)) + m;
    }
}

fn q8_0(b: &[u8; 34], out: &mut [f32; 32]) {
    let d = half(b, 0);
    for (y, q) in out.iter_mut().zip(&b[2..]) {
        *y = f32::from(q.cast_signed()) * d;
    }
}

/// Two bits of element `i` of a block of 256: four rounds of 32 from the first 32 bytes, then from the other 32.
fn two(qs: &[u8], i: usize) -> u8 {
    (qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3
}

fn q2_k(b: &[u8; 84], out: &mut [f32; 256]) {
    let (d, dmin) = (half(b, 80), half(b, 82));
    for (i, y) in out.iter_mut().enumerate() {
        let scale = b[i / 16];
        let (dl, ml) = (d * f32::from(scale & 15), dmin * f32::from(scale >> 4));
        *y = dl * f32::from(two(&b[16..80], i)) - ml;
    }
}

fn q3_k(b: &[u8; 110], out: &mut [f32; 256]) {
    let (high, qs, scales, d) = (&b[..32], &b[32..96], &b[96..108], half(b, 108));
    for (i, y) in out.iter_mut().enumerate() {
        let group = i / 16;
        let low = if group < 8 { scales[group] & 15 } else { scales[group - 8] >> 4 };
        let top = (scales[8 + group % 4] >> (group / 4 * 2)) & 3;
        let dl = d * (f32::from(low | top << 4) - 32.0);
        // Where the third bit is 0, 4 is taken away.
        let offset = if (high[i % 32] >> (i / 32)) & 1 == 1 { 0.0 } else { 4.0 };
        *y = dl * (f32::from(two(qs, i)) - offset);
    }
}

/// Scale and offset of group `j` of 32 elements, 6 bits each, packed into 12 bytes.
fn scale_and_min(s: &[u8], j: usize) -> (f32, f32) {
    let (scale, min) = if j < 4 {
        (s[j] & 63, s[j + 4] & 63)
    } else {
        ((s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4)
    };
    (f32::from(scale), f32::from(min))
}

/// The 4 bits of element `i` of a block of 256: of each 32 bytes the low halves, then the high halves.
fn low_four(qs: &[u8], i: usize) -> u8 {
    let byte = qs[i / 64 * 32 + i % 32];
    if i % 64 < 32 { byte & 15 } else { byte >> 4 }
}

fn q4_k(b: &[u8; 144], out: &mut [f32; 256]) {
    let (d, dmin) = (half(b, 0), half(b, 2));
    for (i, y) in out.iter_mut().enumerate() {
        let (scale, min) = scale_and_min(&b[4..16], i / 32);
        *y = d * scale * f32::from(low_four(&b[16..], i)) - dmin * min;
    }
}

fn q5_k(b: &[u8; 176], out: &mut [f32; 256]) {
    let (d, dmin) = (half(b, 0), half(b, 2));
    for (i, y) in out.iter_mut().enumerate() {
        let (scale, min) = scale_and_min(&b[4..16], i / 32);
        let q = low_four(&b[48..], i) | ((b[16 + i % 32] >> (i / 32)) & 1) << 4;
        *y = d * scale * f32::from(q) - dmin * min;
    }
}

fn q6_k(b: &[u8; 210], out: &mut [f32; 256]) {
    let (low, high, scales, d) = (&b[..128], &b[128..192], &b[192..208], half(b, 208));
    for (i, y) in out.iter_mut().enumerate() {
        let (part, at) = (i / 128, i % 128);
        let byte = low[part * 64 + at % 64];
        let four = if at < 64 { byte & 15 } else { byte >> 4 };
        let top = (high[part * 32 + at % 32] >> (at / 32 * 2)) & 3;
        let scale = d * f32::from(scales[i / 16].cast_signed());
        *y = scale * (f32::from(four | top << 4) - 32.0);
    }
}

fn level(q: u8) -> f32 {
    f32::from(LEVELS[usize::from(q)])
}

fn iq4_nl(b: &[u8; 18], out: &mut [f32; 32]) {
    let d = half(b, 0);
    for (i, y) in out.iter_mut().enumerate() {
        *y = d * level(nibble(&b[2..], i));
    }
}

fn iq4_xs(b: &[u8; 136], out: &mut [f32; 256]) {
    let d = half(b, 0);
    let top = u16::from_le_bytes([b[2], b[3]]);
    for (i, y) in out.iter_mut().enumerate() {
        let group = i / 32;
        let low = (b[4 + group / 2] >> (group % 2 * 4)) & 15;
        let high = (top >> (group * 2)) as u8 & 3;
        let scale = d * (f32::from(low | high << 4) - 32.0);
        *y = scale * level(nibble(&b[8 + group * 16..], i % 32));
    }
}
