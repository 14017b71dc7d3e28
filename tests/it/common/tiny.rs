//! A Transformer in plain loops over f64, with switches for the faults that people make. It shares nothing with the
//! crate but the names of what it records.

use std::collections::BTreeMap;

/// A fault, in the layer at `Tiny::at` where it is one of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    Eps(f64),
    EpsBeside,
    Unbiased,
    GeluTanh,
    ScaleByDModel,
    PositionsPlusOne,
    PadMaskOnQueries,
    NoMask,
    MaskAddedAfterSoftmax,
    MaskZeroedAfterSoftmax,
    CausalOffByOne,
    HeadsNotTransposed,
    RotaryInterleaved,
    TransposedWeight,
    DroppedBias,
    ResidualFromNormalised,
    DropoutAtInference,
    HeadNotTied,
    NanInAWeight,
}

/// A recorded tensor.
pub type Recorded = BTreeMap<String, (Vec<usize>, Vec<f64>)>;

/// One stack of layers and what it reads.
pub struct Tiny<'a> {
    /// `encoder` or `decoder`.
    pub stack: &'static str,
    pub layers: usize,
    pub d: usize,
    pub heads: usize,
    pub ff: usize,
    pub vocab: usize,
    pub eps: f64,
    /// Norms before sublayers and after the last layer; else after each.
    pub pre: bool,
    /// Queries and keys are rotated; else positions are learned.
    pub rotary: bool,
    /// Logits by the embedding table.
    pub tied_head: bool,
    pub ids: &'a [Vec<usize>],
    pub real: &'a [Vec<bool>],
    /// A parameter, row-major.
    pub weight: &'a dyn Fn(&str) -> Vec<f64>,
    pub fault: Fault,
    /// The layer with the fault.
    pub at: usize,
    /// How the number type of the model rounds what a kernel returns; inside, kernels do not round.
    pub store: fn(f64) -> f64,
}

/// `x·Wᵀ + b`, x in rows of `n`.
fn linear(x: &[f64], n: usize, w: &[f64], b: Option<&[f64]>) -> Vec<f64> {
    let out = w.len() / n;
    let mut y = Vec::new();
    for row in x.chunks(n) {
        for o in 0..out {
            let mut sum = 0.0;
            for i in 0..n {
                sum += row[i] * w[o * n + i];
            }
            y.push(sum + b.map_or(0.0, |b| b[o]));
        }
    }
    y
}

fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

impl Tiny<'_> {
    fn has(&self, layer: usize, fault: Fault) -> bool {
        layer == self.at && self.fault == fault
    }

    fn stored(&self, mut x: Vec<f64>) -> Vec<f64> {
        for x in &mut x {
            *x = (self.store)(*x);
        }
        x
    }

    fn weight(&self, path: &str) -> Vec<f64> {
        self.stored((self.weight)(path))
    }

    fn rows(&self) -> Vec<usize> {
        vec![self.ids.len(), self.ids[0].len()]
    }

    fn shape(&self, last: usize) -> Vec<usize> {
        [self.rows(), vec![last]].concat()
    }

    /// Everything that the run computes, by our paths.
    pub fn run(&self) -> Recorded {
        let mut out = Recorded::new();
        let side = if self.stack == "encoder" { "source" } else { "target" };
        let (d, tokens) = (self.d, self.ids[0].len());
        let table = self.weight("embed.weight");
        let mut x: Vec<f64> = Vec::new();
        for id in self.ids.iter().flatten() {
            x.extend(&table[id * d..(id + 1) * d]);
        }
        out.insert(format!("embed.{side}.lookup"), (self.shape(d), x.clone()));
        if !self.rotary {
            let table = self.weight(&format!("embed.{side}.positions.weight"));
            let first = usize::from(self.fault == Fault::PositionsPlusOne);
            let rows = table[first * d..(first + tokens) * d].to_vec();
            x = self.stored(add(&x, &rows.repeat(self.ids.len())));
            out.insert(format!("embed.{side}.positions"), (vec![tokens, d], rows));
        }
        out.insert(format!("embed.{side}.out"), (self.shape(d), x.clone()));
        for layer in 0..self.layers {
            x = self.layer(layer, &x, &mut out);
        }
        if self.pre {
            let path = format!("{}.final_norm", self.stack);
            x = self.norm(&path, &x, false, &mut out);
        }
        if self.tied_head {
            let mut table = table;
            if self.fault == Fault::HeadNotTied {
                // As a head of its own starts: other numbers of the same spread.
                table.rotate_left(d + 3);
            }
            let logits = self.stored(linear(&x, d, &table, None));
            let probs = self.stored(softmax(&logits, self.vocab, &mut |_, _| {}));
            out.insert("output.logits".into(), (self.shape(self.vocab), logits));
            out.insert("output.probs".into(), (self.shape(self.vocab), probs));
        }
        out
    }

    fn layer(&self, layer: usize, x: &[f64], out: &mut Recorded) -> Vec<f64> {
        let path = format!("{}.{layer}", self.stack);
        let faulty = layer == self.at;
        let mut x = x.to_vec();
        for (n, ffn) in [(1, false), (2, true)] {
            let norm = format!("{path}.norm{n}");
            let read = if self.pre { self.norm(&norm, &x, faulty && n == 1, out) } else { x.clone() };
            let y = if ffn { self.ffn(layer, &read, out) } else { self.attention(layer, &read, out) };
            let from = if !ffn && self.has(layer, Fault::ResidualFromNormalised) { &read } else { &x };
            let mut sum = add(from, &y);
            if !ffn && self.has(layer, Fault::DropoutAtInference) {
                for (i, y) in y.iter().enumerate() {
                    // A tenth is dropped, the rest is scaled up.
                    sum[i] += if i % 10 == 3 { -y } else { y / 0.9 - y };
                }
            }
            let sum = self.stored(sum);
            out.insert(format!("{path}.residual{n}"), (self.shape(self.d), sum.clone()));
            x = if self.pre { sum } else { self.norm(&norm, &sum, faulty && n == 1, out) };
        }
        x
    }

    fn norm(&self, path: &str, x: &[f64], faulty: bool, out: &mut Recorded) -> Vec<f64> {
        let (d, fault) = (self.d, if faulty { self.fault } else { Fault::None });
        let (gamma, beta) = (self.weight(&format!("{path}.gamma")), self.weight(&format!("{path}.beta")));
        let (mut means, mut vars, mut y) = (Vec::new(), Vec::new(), Vec::new());
        for row in x.chunks(d) {
            let mean = row.iter().sum::<f64>() / d as f64;
            let n = if fault == Fault::Unbiased { d - 1 } else { d };
            let var = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n as f64;
            let eps = match fault {
                Fault::Eps(eps) => eps,
                _ => self.eps,
            };
            let root = if fault == Fault::EpsBeside { var.sqrt() + eps } else { (var + eps).sqrt() };
            y.extend((0..d).map(|i| (row[i] - mean) / root * gamma[i] + beta[i]));
            means.push(mean);
            vars.push(var);
        }
        let y = self.stored(y);
        out.insert(format!("{path}.mean"), (self.shape(1), means));
        out.insert(format!("{path}.var"), (self.shape(1), vars));
        out.insert(format!("{path}.out"), (self.shape(d), y.clone()));
        y
    }

    fn attention(&self, layer: usize, x: &[f64], out: &mut Recorded) -> Vec<f64> {
        let path = format!("{}.{layer}.self_attn", self.stack);
        let (d, h, batch, tokens) = (self.d, self.heads, self.ids.len(), self.ids[0].len());
        let w = d / h;
        let heads = vec![batch, h, tokens, w];
        // [batch, head, token, width].
        let mut project = |name: &str| -> Vec<f64> {
            let mut weight = self.weight(&format!("{path}.{name}.weight"));
            if name == "q" && self.has(layer, Fault::TransposedWeight) {
                weight = (0..d * d).map(|i| weight[i % d * d + i / d]).collect();
            }
            let bias = self.weight(&format!("{path}.{name}.bias"));
            let y = self.stored(linear(x, d, &weight, Some(&bias)));
            let mut split = Vec::new();
            for b in 0..batch {
                for head in 0..h {
                    for t in 0..tokens {
                        split.extend(&y[(b * tokens + t) * d + head * w..][..w]);
                    }
                }
            }
            out.insert(format!("{path}.{name}"), (heads.clone(), split.clone()));
            split
        };
        let (mut q, mut k, v) = (project("q"), project("k"), project("v"));
        if self.rotary {
            for (name, x) in [("q", &mut q), ("k", &mut k)] {
                self.rotate(layer, x);
                out.insert(format!("{path}.{name}_rotated"), (heads.clone(), x.clone()));
            }
        }
        let scale = if self.has(layer, Fault::ScaleByDModel) { d } else { w };
        let (mut raw, mut scores, mut masked) = (Vec::new(), Vec::new(), Vec::new());
        let mut hidden = Vec::new();
        for b in 0..batch {
            for head in 0..h {
                for i in 0..tokens {
                    for j in 0..tokens {
                        let at = |t: usize| ((b * h + head) * tokens + t) * w;
                        let mut sum = 0.0;
                        for c in 0..w {
                            sum += q[at(i) + c] * k[at(j) + c];
                        }
                        let hide = self.hides(layer, b, i, j);
                        let sum = (self.store)(sum);
                        let score = (self.store)(sum / (scale as f64).sqrt());
                        raw.push(sum);
                        scores.push(score);
                        hidden.push(hide);
                        masked.push(if hide { f64::NEG_INFINITY } else { score });
                    }
                }
            }
        }
        let square = vec![batch, h, tokens, tokens];
        let late = [Fault::MaskAddedAfterSoftmax, Fault::MaskZeroedAfterSoftmax];
        let late = late.into_iter().find(|f| self.has(layer, *f));
        let read = if late.is_some() { &scores } else { &masked };
        let (mut exps, mut sums) = (Vec::new(), Vec::new());
        let mut weights = softmax(read, tokens, &mut |row, sum| {
            exps.extend_from_slice(row);
            sums.push(sum);
        });
        weights = self.stored(weights);
        for (weight, hide) in weights.iter_mut().zip(&hidden) {
            match late {
                Some(Fault::MaskAddedAfterSoftmax) if *hide => *weight -= 1e9,
                Some(_) if *hide => *weight = 0.0,
                _ => {}
            }
        }
        out.insert(format!("{path}.scores_raw"), (square.clone(), raw));
        out.insert(format!("{path}.scores"), (square.clone(), scores));
        if late.is_none() {
            // Such a program holds no masked scores; these sums are none that ours has.
            out.insert(format!("{path}.masked_scores"), (square.clone(), masked));
            out.insert(format!("{path}.exp"), (square.clone(), exps));
            out.insert(format!("{path}.sum"), (vec![batch, h, tokens, 1], sums));
        }
        out.insert(format!("{path}.weights"), (square, weights.clone()));
        let mut context = Vec::new();
        for bh in 0..batch * h {
            for i in 0..tokens {
                for c in 0..w {
                    let mut sum = 0.0;
                    for j in 0..tokens {
                        sum += weights[(bh * tokens + i) * tokens + j] * v[(bh * tokens + j) * w + c];
                    }
                    context.push(sum);
                }
            }
        }
        context = self.stored(context);
        out.insert(format!("{path}.context"), (heads, context.clone()));
        let mut concat = context.clone();
        if !self.has(layer, Fault::HeadsNotTransposed) {
            concat.clear();
            for b in 0..batch {
                for t in 0..tokens {
                    for head in 0..h {
                        concat.extend(&context[((b * h + head) * tokens + t) * w..][..w]);
                    }
                }
            }
        }
        let (weight, bias) = (self.weight(&format!("{path}.o.weight")), self.weight(&format!("{path}.o.bias")));
        let y = self.stored(linear(&concat, d, &weight, Some(&bias)));
        out.insert(format!("{path}.concat"), (self.shape(d), concat));
        out.insert(format!("{path}.out"), (self.shape(d), y.clone()));
        y
    }

    /// Whether query `i` may not see key `j`.
    fn hides(&self, layer: usize, b: usize, i: usize, j: usize) -> bool {
        if self.has(layer, Fault::NoMask) {
            return false;
        }
        let ahead = usize::from(self.has(layer, Fault::CausalOffByOne));
        let pad = if self.has(layer, Fault::PadMaskOnQueries) { !self.real[b][i] } else { !self.real[b][j] };
        pad || self.stack == "decoder" && j > i + ahead
    }

    /// Rotates pairs (c, c + w/2) by position / 10000^(2c/w).
    fn rotate(&self, layer: usize, x: &mut [f64]) {
        let (w, tokens) = (self.d / self.heads, self.ids[0].len());
        for (row, x) in x.chunks_mut(w).enumerate() {
            for c in 0..w / 2 {
                let angle = (row % tokens) as f64 / 10_000f64.powf(2.0 * c as f64 / w as f64);
                let (i, j) =
                    if self.has(layer, Fault::RotaryInterleaved) { (2 * c, 2 * c + 1) } else { (c, c + w / 2) };
                let (a, b) = (x[i], x[j]);
                let (sin, cos) = ((self.store)(angle.sin()), (self.store)(angle.cos()));
                let product = |a: f64, b: f64| (self.store)(a * b);
                x[i] = (self.store)(product(a, cos) - product(b, sin));
                x[j] = (self.store)(product(b, cos) + product(a, sin));
            }
        }
    }

    fn ffn(&self, layer: usize, x: &[f64], out: &mut Recorded) -> Vec<f64> {
        let path = format!("{}.{layer}.ffn", self.stack);
        let of = |name: &str| self.weight(&format!("{path}.{name}"));
        let mut w1 = of("w1.weight");
        if self.has(layer, Fault::NanInAWeight) {
            w1[self.d * 3 + 2] = f64::NAN;
        }
        let b1 = of("w1.bias");
        let bias = (!self.has(layer, Fault::DroppedBias)).then_some(&b1[..]);
        let hidden = self.stored(linear(x, self.d, &w1, bias));
        let act: Vec<f64> = hidden
            .iter()
            .map(|&x| {
                let inner = if self.has(layer, Fault::GeluTanh) {
                    let root = (2.0 / std::f64::consts::PI).sqrt();
                    (root * (x + 0.044_715 * x * x * x)).tanh()
                } else {
                    libm::erf(x / 2f64.sqrt())
                };
                0.5 * x * (1.0 + inner)
            })
            .collect();
        let act = self.stored(act);
        let y = self.stored(linear(&act, self.ff, &of("w2.weight"), Some(&of("w2.bias"))));
        out.insert(format!("{path}.hidden"), (self.shape(self.ff), hidden));
        out.insert(format!("{path}.act"), (self.shape(self.ff), act));
        out.insert(format!("{path}.out"), (self.shape(self.d), y.clone()));
        y
    }
}

/// Softmax of rows of `n`; `see` gets each row's exponentials and their sum.
fn softmax(x: &[f64], n: usize, see: &mut dyn FnMut(&[f64], f64)) -> Vec<f64> {
    let mut y = Vec::new();
    for row in x.chunks(n) {
        let exps: Vec<f64> = row.iter().map(|x| x.exp()).collect();
        let sum: f64 = exps.iter().sum();
        see(&exps, sum);
        // Of a row in which all is hidden, nothing is left.
        y.extend(exps.iter().map(|e| if sum == 0.0 { 0.0 } else { e / sum }));
    }
    y
}
