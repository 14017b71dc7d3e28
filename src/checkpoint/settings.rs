//! From a configuration to a model: the settings that a family's expressions give.

use serde::Deserialize as _;
use serde_json::{Map, Value as Json};

use super::family::{Expr, Family, Ordered, Stack};
use super::values::Values;
use crate::model::config::ModelConfig;
use crate::text::{Msg, escape};

/// Most layers of a stack: a configuration that says more is not gone through.
const MAX_LAYERS: usize = 10_000;

/// A model and the sizes of its vocabularies.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its settings.
    pub config: ModelConfig,
    /// Words that it reads.
    pub source_words: usize,
    /// Words that it writes.
    pub target_words: usize,
    /// Layers of the encoder and of the decoder.
    pub layers: (usize, usize),
    /// Experts of a layer.
    pub experts: usize,
}

/// The model that `values` mean in a family.
///
/// # Errors
/// Where an expression gives no setting of ours, or a condition of the family does not hold.
pub fn model(family: &Family, values: &Values) -> Result<Model, Msg> {
    for (condition, why) in &family.require.0 {
        if !values.holds("require", &Expr(condition.clone()), &[])? {
            return Err(Msg::new("family.require")
                .arg("family", escape(&family.name))
                .arg("condition", escape(condition))
                .arg("why", escape(why)));
        }
    }
    let mut tree = Map::new();
    fill(&mut tree, family, "model", &family.model, values, &[])?;
    let mut layers = (0, 0);
    for (name, stack, count) in
        [("encoder", &family.encoder, &mut layers.0), ("decoder", &family.decoder, &mut layers.1)]
    {
        if let Some(stack) = stack
            && let Some((made, n)) = self::stack(family, name, stack, values)?
        {
            tree.insert(name.to_owned(), made);
            *count = n;
        }
    }
    let vocab_size = Expr("vocab_size".into());
    let words = |field: &str, expr: &Expr| -> Result<usize, Msg> {
        values.count(field, expr, &[])?.ok_or_else(|| {
            Msg::new("family.no_value").arg("file", escape(&family.file)).arg("at", field).arg("expression", &expr.0)
        })
    };
    let source_words = words("vocabulary", family.vocabulary.as_ref().unwrap_or(&vocab_size))?;
    let target_words = match &family.target_vocabulary {
        Some(expr) => words("target_vocabulary", expr)?,
        None => source_words,
    };
    let experts = match &family.experts {
        Some(expr) => values.count("experts", expr, &[])?.unwrap_or(0),
        None => 0,
    };
    if experts > MAX_EXPERTS {
        let msg = Msg::new("family.experts").arg("file", escape(&family.file));
        return Err(msg.arg("value", experts).arg("most", MAX_EXPERTS));
    }
    let tree = Json::Object(tree);
    let config = ModelConfig::deserialize(&tree).map_err(|e| {
        let at = culprit(&tree, &e.to_string());
        let all = family.model.0.iter();
        // Longest path first: the setting itself, not the group it is in.
        let written = all.filter(|(path, _)| at.starts_with(path.as_str())).max_by_key(|(path, _)| path.len());
        Msg::new("family.setting")
            .arg("file", escape(&family.file))
            .arg("at", escape(&at))
            .arg("expression", escape(written.map_or("", |(_, e)| e.0.as_str())))
            .arg("why", escape(&e.to_string()))
    })?;
    Ok(Model { config, source_words, target_words, layers, experts })
}

/// The setting that the error `why` is about: without it, the rest reads or fails otherwise. Empty where there is none.
fn culprit(tree: &Json, why: &str) -> String {
    let fails = |at: &str, change: &dyn Fn(&mut Json)| {
        let mut rest = tree.clone();
        rest.pointer_mut(at).map(change);
        ModelConfig::deserialize(&rest).is_err_and(|e| e.to_string() == why)
    };
    let mut at = String::new();
    loop {
        let inside = match tree.pointer(&at) {
            Some(Json::Object(fields)) => {
                let innocent = |name: &str| {
                    fails(&at, &|group| {
                        group.as_object_mut().map(|group| group.shift_remove(name));
                    })
                };
                fields.keys().find(|name| !innocent(name)).cloned()
            }
            // Layers: the first that the error comes with.
            Some(Json::Array(all)) => {
                let early = |layer: &usize| {
                    !fails(&at, &|list| {
                        if let Some(list) = list.as_array_mut() {
                            list.truncate(layer + 1);
                        }
                    })
                };
                let first = (0..all.len()).collect::<Vec<_>>().partition_point(early);
                (first < all.len()).then(|| first.to_string())
            }
            _ => None,
        };
        match inside {
            Some(name) => at = format!("{at}/{name}"),
            None => return at.trim_start_matches('/').replace('/', "."),
        }
    }
}

/// Most experts of a layer.
const MAX_EXPERTS: usize = 1 << 12;

/// The layers of a stack, equal neighbours together, and how many there are.
fn stack(family: &Family, name: &str, stack: &Stack, values: &Values) -> Result<Option<(Json, usize)>, Msg> {
    let at = format!("{name}.layers");
    let count = match &stack.layers {
        Some(expr) => values.count(&at, expr, &[])?,
        None => None,
    };
    let Some(count) = count else {
        return Ok(None);
    };
    if count > MAX_LAYERS {
        return Err(Msg::new("config.layers").arg("value", count).arg("most", MAX_LAYERS));
    }
    let mut made = Map::new();
    fill(&mut made, family, name, &stack.settings, values, &[])?;
    let mut groups: Vec<(Map<String, Json>, usize)> = Vec::new();
    if stack.each.0.is_empty() {
        groups.push((Map::new(), count));
    } else {
        for layer in 0..count {
            let mut own = Map::new();
            fill(&mut own, family, name, &stack.each, values, &[("L", layer)])?;
            match groups.last_mut() {
                Some((same, n)) if *same == own => *n += 1,
                _ => groups.push((own, 1)),
            }
        }
    }
    let layers = groups.into_iter().map(|(mut own, n)| {
        own.insert("repeat".to_owned(), n.into());
        Json::Object(own)
    });
    made.insert("layers".to_owned(), layers.collect());
    Ok(Some((Json::Object(made), count)))
}

/// Puts each setting that has a value at its path.
fn fill(
    tree: &mut Map<String, Json>,
    family: &Family,
    at: &str,
    settings: &Ordered<Expr>,
    values: &Values,
    with: &[(&str, usize)],
) -> Result<(), Msg> {
    for (path, expr) in &settings.0 {
        let at = format!("{at}.{path}");
        if let Some(value) = values.json(&at, expr, with)? {
            put(tree, path, value).ok_or_else(|| {
                Msg::new("family.two_values").arg("file", escape(&family.file)).arg("at", escape(&at))
            })?;
        }
    }
    Ok(())
}

/// `None` where a part of the path has a value already that is no group of settings.
fn put(tree: &mut Map<String, Json>, path: &str, value: Json) -> Option<()> {
    match path.split_once('.') {
        None => {
            tree.insert(path.to_owned(), value);
            Some(())
        }
        Some((first, rest)) => {
            let inside = tree.entry(first).or_insert_with(|| Json::Object(Map::new()));
            put(inside.as_object_mut()?, rest, value)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_setting_that_does_not_fit_is_found_wherever_it_is() {
        let layers = |eps: Json| json!([{"repeat": 2}, {"norm": {"eps": 1e-5}}, {"norm": {"eps": eps}}, {"repeat": 1}]);
        let tree = |scale: Json, eps: Json| {
            json!({"d_model": 8, "heads": 2, "d_ff": 16, "attention": {"causal": true, "scale": scale},
                "encoder": {"layers": layers(eps)}})
        };
        let at = |tree: &Json| culprit(tree, &ModelConfig::deserialize(tree).unwrap_err().to_string());
        assert!(ModelConfig::deserialize(&tree(json!("SqrtDk"), json!(1e-5))).is_ok());
        assert_eq!(at(&tree(json!({"By": "half"}), json!(1e-5))), "attention.scale.By");
        assert_eq!(at(&tree(json!("Half"), json!(1e-5))), "attention.scale");
        assert_eq!(at(&tree(json!("SqrtDk"), json!("small"))), "encoder.layers.2.norm.eps");
        // The first of two.
        assert_eq!(at(&tree(json!(3), json!("small"))), "attention.scale");
        assert_eq!(at(&json!({"d_model": 8, "nothing": 1})), "nothing");
    }
}
