//! Expressions of a family file, evaluated over a configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value as Json, json};

use super::family::{Expr, Family};
use crate::scenario::files::Weighty;
use crate::text::{Msg, escape};

/// Numbers of a tensor that is a setting, at most.
const LONGEST: usize = 4096;

/// Steps that one expression may take.
const FUEL: u64 = 100_000;

/// The names that expressions may use: the keys of the configuration, defaults for those it lacks, the family's values.
#[derive(Debug)]
pub struct Values {
    env: Environment<'static>,
    file: String,
    names: BTreeMap<String, Value>,
}

impl Values {
    /// Of a configuration; `tensors` are the names in the file.
    ///
    /// # Errors
    /// An expression of the family that is none.
    pub fn new(family: &Family, config: &Map<String, Json>, file: &Arc<Weighty<f32>>) -> Result<Self, Msg> {
        let mut env = Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Chainable);
        env.set_fuel(Some(FUEL));
        env.add_function("sqrt", |x: f64| x.sqrt());
        env.add_function("int", |x: f64| x as i64);
        env.add_function("len", |x: Value| x.len().unwrap_or(0));
        env.add_function("min", |a: Value, b: Value| a.min(b));
        env.add_function("max", |a: Value, b: Value| a.max(b));
        env.add_function("activation_of", |name: String| activation_of(&name));
        let prefixes = family.prefixes.clone();
        let tensor = move |file: &Weighty<f32>, name: String| -> Option<String> {
            let all = prefixes.iter().map(|p| format!("{p}{name}")).chain([name.clone()]);
            all.into_iter().find(|name| file.info(name).is_some())
        };
        let (looked, read) = (Arc::clone(file), Arc::clone(file));
        let find = tensor.clone();
        env.add_function("has_tensor", move |name: String| tensor(&looked, name).is_some());
        env.add_function("numbers_of", move |name: String| -> Result<Value, Error> {
            let wrong = |why: &str| Error::new(ErrorKind::InvalidOperation, why.to_owned());
            let found = find(&read, name).ok_or_else(|| wrong("the file has no such tensor"))?;
            let len = read.info(&found).map_or(0, |info| info.dims.iter().product::<usize>());
            if len > LONGEST {
                return Err(wrong("the tensor is too long to be a setting"));
            }
            let numbers = read.numbers(&found).ok_or_else(|| wrong("the tensor has no numbers"))?;
            Ok(numbers.into_iter().map(f64::from).collect())
        });
        let mut names: BTreeMap<String, Value> = BTreeMap::new();
        for (key, value) in config {
            names.insert(key.clone(), Value::from(Serde(value)));
        }
        names.insert("config".into(), Value::from(Serde(config)));
        names.insert("rope".into(), Value::from(Serde(rope(config))));
        let mut values = Self { env, file: family.file.clone(), names };
        for (key, expr) in &family.defaults.0 {
            if !config.contains_key(key) {
                let value = values.value(&format!("defaults.{key}"), expr, &[])?;
                values.names.insert(key.clone(), value);
            }
        }
        for (key, expr) in &family.values.0 {
            let value = values.value(&format!("values.{key}"), expr, &[])?;
            values.names.insert(key.clone(), value);
        }
        Ok(values)
    }

    /// The value of an expression; `at` is where it is written, `with` further names.
    ///
    /// # Errors
    /// Where it is none, or cannot be evaluated.
    pub fn value(&self, at: &str, expr: &Expr, with: &[(&str, usize)]) -> Result<Value, Msg> {
        let wrong = |e: &Error| {
            let why = e.detail().map_or_else(|| e.kind().to_string(), |d| format!("{}: {d}", e.kind()));
            Msg::new("family.expression")
                .arg("file", escape(&self.file))
                .arg("at", escape(at))
                .arg("expression", escape(&expr.0))
                .arg("why", escape(&why))
        };
        let compiled = self.env.compile_expression(&expr.0).map_err(|e| wrong(&e))?;
        let mut names = self.names.clone();
        names.extend(with.iter().map(|(name, n)| ((*name).to_owned(), Value::from(*n))));
        compiled.eval(Value::from(names)).map_err(|e| wrong(&e))
    }

    /// The value as plain data; `None` where the expression has no value.
    ///
    /// # Errors
    /// As [`Values::value`].
    pub fn json(&self, at: &str, expr: &Expr, with: &[(&str, usize)]) -> Result<Option<Json>, Msg> {
        let value = self.value(at, expr, with)?;
        if value.is_undefined() || value.is_none() {
            return Ok(None);
        }
        let json = serde_json::to_value(&value).unwrap_or(Json::Null);
        Ok((!json.is_null()).then_some(json))
    }

    /// A whole number from 0 on; `None` where the expression has no value.
    ///
    /// # Errors
    /// Where it is another value.
    pub fn count(&self, at: &str, expr: &Expr, with: &[(&str, usize)]) -> Result<Option<usize>, Msg> {
        let Some(value) = self.json(at, expr, with)? else {
            return Ok(None);
        };
        let whole = value.as_u64().or_else(|| {
            // 16.0 is what a division gives.
            value.as_f64().filter(|x| *x >= 0.0 && x.fract() == 0.0 && *x < 2f64.powi(53)).map(|x| x as u64)
        });
        whole.map(|n| Some(n as usize)).ok_or_else(|| self.no_number("family.count", at, expr, &value))
    }

    /// A finite number.
    ///
    /// # Errors
    /// Where it is another value, or none.
    pub fn number(&self, at: &str, expr: &Expr, with: &[(&str, usize)]) -> Result<f64, Msg> {
        let value = self.json(at, expr, with)?.unwrap_or(Json::Null);
        value.as_f64().filter(|x| x.is_finite()).ok_or_else(|| self.no_number("family.number", at, expr, &value))
    }

    fn no_number(&self, key: &'static str, at: &str, expr: &Expr, value: &Json) -> Msg {
        Msg::new(key)
            .arg("file", escape(&self.file))
            .arg("at", escape(at))
            .arg("expression", escape(&expr.0))
            .arg("value", escape(&value.to_string()))
    }

    /// Whether a condition holds.
    ///
    /// # Errors
    /// As [`Values::value`].
    pub fn holds(&self, at: &str, expr: &Expr, with: &[(&str, usize)]) -> Result<bool, Msg> {
        Ok(self.value(at, expr, with)?.is_true())
    }
}

/// Our name of an activation, by the name that configurations use.
fn activation_of(name: &str) -> Result<&'static str, Error> {
    Ok(match name {
        "relu" => "Relu",
        "relu2" | "relu_squared" => "ReluSquared",
        "gelu" | "gelu_python" => "Gelu",
        "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" | "gelu_python_tanh" | "gelu_accurate" => "GeluTanh",
        "quick_gelu" => "QuickGelu",
        "silu" | "swish" => "Silu",
        "sigmoid" => "Sigmoid",
        "tanh" => "Tanh",
        _ => {
            let known = "relu, relu2, gelu, gelu_new, gelu_pytorch_tanh, quick_gelu, silu, swish, sigmoid, tanh";
            return Err(Error::new(ErrorKind::InvalidOperation, format!("activation `{name}` is none of {known}")));
        }
    })
}

/// Settings of rotary positions in one spelling: those of transformers 5, or made of those of transformers 4. Where
/// layers of different kinds have settings of their own, they are by that kind.
fn rope(config: &Map<String, Json>) -> Json {
    let object = |key: &str| config.get(key).and_then(Json::as_object);
    let longest = config.get("max_position_embeddings").or(config.get("n_positions")).and_then(Json::as_f64);
    if let Some(new) = object("rope_parameters").filter(|new| new.values().any(Json::is_object)) {
        let mut kinds = new.clone();
        for rope in kinds.values_mut().filter_map(Json::as_object_mut) {
            rope.insert("scaling".to_owned(), scaling(rope, longest));
        }
        return Json::Object(kinds);
    }
    let mut rope = Map::new();
    for key in ["rope_scaling", "rope_parameters"] {
        rope.extend(object(key).into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
    }
    for key in ["rope_theta", "partial_rotary_factor", "original_max_position_embeddings"] {
        if let (Some(value), false) = (config.get(key).filter(|v| !v.is_null()), rope.contains_key(key)) {
            rope.insert(key.to_owned(), value.clone());
        }
    }
    if !rope.contains_key("rope_type") {
        let old = rope.get("type").cloned().unwrap_or_else(|| json!("default"));
        rope.insert("rope_type".to_owned(), old);
    }
    rope.insert("scaling".to_owned(), scaling(&rope, longest));
    Json::Object(rope)
}

/// Our setting for the scaling of rotary positions, with what transformers assumes where something is not given; null
/// where there is none.
fn scaling(rope: &Map<String, Json>, longest: Option<f64>) -> Json {
    let number = |key: &str| rope.get(key).and_then(Json::as_f64);
    let original = number("original_max_position_embeddings").or(longest);
    let stretched = longest.zip(original).map(|(longest, original)| longest / original);
    let whole = |x: Option<f64>| x.map_or(Json::Null, |x| json!(x as u64));
    let given = |keys: &[(&str, &str)]| -> Map<String, Json> {
        let value = |key: &str| rope.get(key).filter(|v| !v.is_null()).cloned();
        keys.iter().filter_map(|(ours, theirs)| Some(((*ours).to_owned(), value(theirs)?))).collect()
    };
    match rope.get("rope_type").and_then(Json::as_str).unwrap_or("default") {
        "default" => Json::Null,
        "linear" => json!({ "Linear": given(&[("factor", "factor")]) }),
        "dynamic" => {
            let mut made = given(&[("factor", "factor")]);
            made.insert("original".to_owned(), whole(longest));
            json!({ "Dynamic": made })
        }
        "llama3" => {
            let mut made = given(&[
                ("factor", "factor"),
                ("low_freq_factor", "low_freq_factor"),
                ("high_freq_factor", "high_freq_factor"),
            ]);
            made.insert("original".to_owned(), whole(original));
            json!({ "Llama3": made })
        }
        "yarn" => {
            let mut made = given(&[
                ("factor", "factor"),
                ("beta_fast", "beta_fast"),
                ("beta_slow", "beta_slow"),
                ("attention_factor", "attention_factor"),
                ("mscale", "mscale"),
                ("mscale_all_dim", "mscale_all_dim"),
                ("truncate", "truncate"),
            ]);
            made.insert("original".to_owned(), whole(original));
            if !made.contains_key("factor") {
                made.insert("factor".to_owned(), json!(stretched));
            }
            json!({ "Yarn": made })
        }
        "longrope" | "su" => {
            let mut made = given(&[("short", "short_factor"), ("long", "long_factor")]);
            made.insert("original".to_owned(), whole(original));
            let factor = stretched.filter(|f| *f > 1.0).or_else(|| number("factor")).unwrap_or(1.0);
            let usual = match original {
                Some(original) if factor > 1.0 => (1.0 + factor.ln() / original.ln()).sqrt(),
                _ => 1.0,
            };
            made.insert("attention_factor".to_owned(), json!(number("attention_factor").unwrap_or(usual)));
            json!({ "LongRope": made })
        }
        // The model has no such setting, and its error says which there are.
        other => json!({ other: {} }),
    }
}
