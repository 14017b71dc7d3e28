//! Which tensors of the file the parameters are, with shapes checked before a number is read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use globset::{GlobBuilder, GlobMatcher};

use super::family::{Expr, Family, RewriteExpr, Rule};
use super::settings::Model;
use super::values::Values;
use crate::model::params::ParamSpec;
use crate::scenario::files::Weighty;
use crate::scenario::rewrite::{Plan, Rewrite, shape};
use crate::scenario::schema::{Made, WeightFile};
use crate::text::{Msg, escape, nearest};

/// A parameter and its tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Path of the parameter.
    pub path: String,
    /// Names in the file.
    pub from: Vec<String>,
    /// What is done with each.
    pub with: Vec<Rewrite>,
}

/// One rule for one parameter.
struct Candidate<'f> {
    rule: &'f Rule,
    layer: usize,
    expert: usize,
}

/// Finds the tensors of every parameter.
///
/// # Errors
/// Everything that is missing, misshapen or left over.
pub fn find(
    family: &Family,
    values: &Values,
    model: &Model,
    specs: &[ParamSpec],
    file: &Weighty<f32>,
) -> Result<Vec<Found>, Vec<Msg>> {
    let candidates = candidates(family, model);
    let mut problems = Vec::new();
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut all = Vec::new();
    for spec in specs {
        let rules = candidates.get(spec.path.as_str()).map_or(&[][..], Vec::as_slice);
        match one(family, values, spec, rules, file) {
            Ok(found) => {
                used.extend(found.from.iter().cloned());
                all.push(found);
            }
            Err(msg) => problems.push(msg),
        }
    }
    match surplus(family, values, file, &used) {
        Ok(more) => problems.extend(more),
        Err(msg) => problems.push(msg),
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

/// Rules by the path that they give, layers and experts written out.
fn candidates<'f>(family: &'f Family, model: &Model) -> HashMap<String, Vec<Candidate<'f>>> {
    let mut all: HashMap<String, Vec<Candidate<'f>>> = HashMap::new();
    for rule in &family.tensors {
        let layers = if rule.ours.contains("{L}") { model.layers.0.max(model.layers.1) } else { 1 };
        let experts = if rule.ours.contains("{E}") { model.experts } else { 1 };
        for layer in 0..layers {
            for expert in 0..experts {
                let path = filled(&rule.ours, layer, expert);
                all.entry(path).or_default().push(Candidate { rule, layer, expert });
            }
        }
    }
    all
}

fn filled(pattern: &str, layer: usize, expert: usize) -> String {
    pattern.replace("{L}", &layer.to_string()).replace("{E}", &expert.to_string())
}

/// A name in which each `{expression}` is its value.
fn computed(values: &Values, at: &str, name: &str, with: &[(&str, usize)]) -> Result<String, Msg> {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((expression, end)) = after.split_once('}') else { break };
        let value = values.value(at, &Expr(expression.to_owned()), with)?;
        out.push_str(before);
        out.push_str(&value.to_string());
        rest = end;
    }
    Ok(out + rest)
}

fn one(
    family: &Family,
    values: &Values,
    spec: &ParamSpec,
    rules: &[Candidate<'_>],
    file: &Weighty<f32>,
) -> Result<Found, Msg> {
    let mut wanted = None;
    for candidate in rules {
        let with = [("L", candidate.layer), ("E", candidate.expert)];
        let at = format!("tensors.\"{}\"", candidate.rule.ours);
        if let Some(when) = &candidate.rule.when
            && !values.holds(&at, when, &with)?
        {
            continue;
        }
        for name in candidate.rule.theirs.split(" | ") {
            let stacked = name.contains("{E}") && !candidate.rule.ours.contains("{E}");
            let named = |number: usize| -> Result<String, Msg> {
                let with = [("L", candidate.layer), ("E", number)];
                computed(values, &at, &filled(name, candidate.layer, number), &with)
            };
            let names: Vec<String> = if stacked {
                let count = spec.shape.dims().first().copied().unwrap_or(1);
                (0..count).map(named).collect::<Result<_, _>>()?
            } else {
                vec![named(candidate.expert)?]
            };
            wanted.get_or_insert_with(|| {
                format!("{}{}", usual_prefix(family, file), names[..names.len().min(1)].concat())
            });
            if let Some(from) = there(family, &names, file) {
                let with = rewrites(values, &at, &candidate.rule.with, &with, &from, file)?;
                return fits(family, spec, Found { path: spec.path.clone(), from, with }, stacked, file);
            }
        }
    }
    let missing = |key, name: &str| {
        Msg::new(key)
            .arg("path", escape(&spec.path))
            .arg("shape", spec.shape)
            .arg("name", escape(name))
            .arg("family", escape(&family.file))
    };
    Err(match wanted {
        None => missing("checkpoint.no_rule", ""),
        Some(name) => match nearest(&name, file.names()) {
            Some(near) => missing("checkpoint.missing_near", &name).arg("near", escape(near)),
            None => missing("checkpoint.missing", &name),
        },
    })
}

/// The prefix that names of the file have, for messages.
fn usual_prefix<'f>(family: &'f Family, file: &Weighty<f32>) -> &'f str {
    let used = |prefix: &&String| file.names().any(|name| name.starts_with(prefix.as_str()));
    family.prefixes.iter().find(used).map_or("", String::as_str)
}

/// The names with the prefix under which all of them are in the file.
fn there(family: &Family, names: &[String], file: &Weighty<f32>) -> Option<Vec<String>> {
    let prefixes = family.prefixes.iter().map(String::as_str).chain([""]);
    let with = |prefix: &str| names.iter().map(|name| format!("{prefix}{name}")).collect::<Vec<_>>();
    prefixes.map(with).find(|all| !all.is_empty() && all.iter().all(|name| file.info(name).is_some()))
}

/// The rewrites of a rule as numbers.
fn rewrites(
    values: &Values,
    at: &str,
    rewrites: &[RewriteExpr],
    with: &[(&str, usize)],
    from: &[String],
    file: &Weighty<f32>,
) -> Result<Vec<Rewrite>, Msg> {
    let dims = from.first().and_then(|name| file.info(name)).map_or(&[][..], |info| info.dims.as_slice());
    let count = |expr: &Expr| values.count(at, expr, with).map(|n| n.unwrap_or(0));
    let mut made: Vec<Rewrite> = Vec::new();
    for rewrite in rewrites {
        let next = match rewrite {
            RewriteExpr::Transpose => Rewrite::Transpose,
            RewriteExpr::Slice { axis, from, to, step } => {
                let axis = count(axis)?;
                let end = || Plan::new(dims, &made).ok().and_then(|p| p.dims().get(axis).copied()).unwrap_or(0);
                let to = match to {
                    Some(to) => count(to)?,
                    None => end(),
                };
                Rewrite::Slice { axis, from: count(from)?, to, step: count(step)? }
            }
            RewriteExpr::Parts { groups, of, from, count: n } => {
                Rewrite::Parts { groups: count(groups)?, of: count(of)?, from: count(from)?, count: count(n)? }
            }
            RewriteExpr::Halves(heads) => Rewrite::Halves(count(heads)?),
            RewriteExpr::Pairs(heads) => Rewrite::Pairs(count(heads)?),
            RewriteExpr::Reshape(dims) => Rewrite::Reshape(dims.iter().map(count).collect::<Result<_, _>>()?),
            RewriteExpr::Add(x) => Rewrite::Add(values.number(at, x, with)?),
            RewriteExpr::Multiply(x) => Rewrite::Multiply(values.number(at, x, with)?),
        };
        made.push(next);
    }
    Ok(made)
}

/// Whether the tensors have the parameter's shape, as far as axes of length 1 do not matter.
fn fits(family: &Family, spec: &ParamSpec, mut found: Found, stacked: bool, file: &Weighty<f32>) -> Result<Found, Msg> {
    let each = if stacked { &spec.shape.dims()[spec.shape.dims().len().min(1)..] } else { spec.shape.dims() };
    let long = |dims: &[usize]| dims.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
    let wrong = |name: &str, dims: &[usize], why: &'static str| {
        Msg::new(why)
            .arg("path", escape(&spec.path))
            .arg("wanted", shape(spec.shape.dims()))
            .arg("name", escape(name))
            .arg("found", shape(dims))
            .arg("family", escape(&family.file))
    };
    let mut reshaped = false;
    for name in &found.from {
        let dims = file.info(name).map_or(&[][..], |info| info.dims.as_slice());
        let plan = Plan::new(dims, &found.with).map_err(|unfit| {
            wrong(name, dims, "checkpoint.rewrite").arg("rewrite", unfit.rewrite).arg("shape", unfit.shape)
        })?;
        if plan.dims() != each {
            if long(plan.dims()) != long(each) {
                let key = if found.with.is_empty() { "checkpoint.shape" } else { "checkpoint.rewritten_shape" };
                return Err(wrong(name, dims, key).arg("rewritten", shape(plan.dims())));
            }
            reshaped = true;
        }
    }
    if stacked && spec.shape.dims().first() != Some(&found.from.len()) {
        let name = found.from.first().cloned().unwrap_or_default();
        return Err(wrong(&name, &[found.from.len()], "checkpoint.shape"));
    }
    if reshaped {
        found.with.push(Rewrite::Reshape(each.to_vec()));
    }
    Ok(found)
}

/// Tensors that no parameter needs and that the family does not know as such.
fn surplus(family: &Family, values: &Values, file: &Weighty<f32>, used: &BTreeSet<String>) -> Result<Vec<Msg>, Msg> {
    let ignored = ignored(family, values)?;
    let ignored: Vec<GlobMatcher> = ignored.iter().filter_map(|pattern| glob(pattern)).collect();
    let is_ignored = |name: &str| {
        let bare = family.prefixes.iter().filter_map(|p| name.strip_prefix(p.as_str()));
        bare.chain([name]).any(|name| ignored.iter().any(|g| g.is_match(name)))
    };
    let left = file.names().filter(|name| !used.contains(*name) && !is_ignored(name));
    let surplus = |name: &str| {
        let dims = file.info(name).map_or(&[][..], |info| info.dims.as_slice());
        Msg::new("checkpoint.surplus")
            .arg("name", escape(name))
            .arg("found", shape(dims))
            .arg("family", escape(&family.file))
    };
    Ok(left.map(surplus).collect())
}

/// The patterns of what may be left over.
pub fn ignored(family: &Family, values: &Values) -> Result<Vec<String>, Msg> {
    let mut all = Vec::new();
    for (pattern, when) in &family.ignore.0 {
        if values.holds(&format!("ignore.\"{pattern}\""), when, &[])? {
            all.push(pattern.clone());
        }
    }
    Ok(all)
}

fn glob(pattern: &str) -> Option<GlobMatcher> {
    Some(GlobBuilder::new(pattern).literal_separator(false).build().ok()?.compile_matcher())
}

/// What a scenario says of a file of weights, of which every parameter was found.
pub fn weight_file(path: String, found: &[Found], unused: Vec<String>) -> WeightFile {
    let mut names = BTreeMap::new();
    let mut made = BTreeMap::new();
    for f in found {
        match (f.from.as_slice(), f.with.is_empty()) {
            ([name], true) => drop(names.insert(f.path.clone(), name.clone())),
            (from, _) => drop(made.insert(f.path.clone(), Made { from: from.to_vec(), with: f.with.clone() })),
        }
    }
    WeightFile { path, prefix: String::new(), names, made, ignore: unused }
}
