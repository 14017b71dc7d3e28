//! Chat templates: what a user says as the text that a model was trained to answer. A template is Jinja, in the dialect that
//! `apply_chat_template` of transformers reads.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, ErrorKind};
use regex::Regex;
use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Value as Json, json};
use time::format_description::parse_strftime_owned;

use super::json;
use crate::source::{Gguf, Tokenizer};
use crate::text::{Msg, escape};

/// Steps that a template may take.
const FUEL: u64 = 10_000_000;

/// Tokens that a template may name.
const SPECIAL: [&str; 7] = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// A template, and the tokens that it names.
#[derive(Clone, Debug)]
pub struct Chat {
    template: String,
    /// What the template is in, for messages.
    file: String,
    tokens: Map<String, Json>,
    /// What a template that writes the date takes for now.
    date: Option<SystemTime>,
}

impl Chat {
    /// The template of a checkpoint: `chat_template.jinja`, `chat_template` of `tokenizer_config.json`, or that of a GGUF
    /// file.
    ///
    /// # Errors
    /// Where there is none, or it cannot be read.
    pub fn open(source: &Path) -> Result<Self, Msg> {
        if !source.is_dir() {
            let file = crate::source::TensorFile::open(source)?;
            return match &file.gguf {
                Some(header) => Self::of_gguf(header, source),
                None => Err(none(source)),
            };
        }
        let there = |name: &str| -> Option<PathBuf> {
            let path = source.join(name);
            path.symlink_metadata().is_ok().then_some(path)
        };
        let config = there("tokenizer_config.json").map(|path| json::object(&path)).transpose()?.unwrap_or_default();
        let content = |name: &str| match config.get(name)? {
            Json::Object(token) => token.get("content").cloned(),
            token => Some(token.clone()),
        };
        let tokens = SPECIAL.iter().filter_map(|name| Some(((*name).to_owned(), content(name)?)));
        let tokens = tokens.filter(|(_, token)| token.is_string()).collect();
        let (file, template) = if let Some(path) = there("chat_template.jinja") {
            let template = json::text(&path)?;
            (path, template)
        } else {
            let template = config.get("chat_template").and_then(default).ok_or_else(|| none(source))?;
            (source.join("tokenizer_config.json"), template.to_owned())
        };
        Ok(Self { template, file: file.to_string_lossy().into_owned(), tokens, date: None })
    }

    fn of_gguf(header: &Gguf, source: &Path) -> Result<Self, Msg> {
        let text = |key: &str| header.get(key).and_then(|value| value.text());
        let template = text("tokenizer.chat_template").ok_or_else(|| none(source))?.to_owned();
        let file = source.to_string_lossy().into_owned();
        let tokenizer = Tokenizer::of_gguf(header, &file)?;
        let token = |name: &str| {
            // GGUF calls them `bos_token_id`, and two of them in full.
            let key = match name {
                "unk_token" => "tokenizer.ggml.unknown_token_id".to_owned(),
                "sep_token" => "tokenizer.ggml.seperator_token_id".to_owned(),
                "pad_token" => "tokenizer.ggml.padding_token_id".to_owned(),
                _ => format!("tokenizer.ggml.{name}_id"),
            };
            tokenizer.token(u32::try_from(header.get(&key)?.int()?).ok()?)
        };
        let tokens = SPECIAL.iter().filter_map(|name| Some(((*name).to_owned(), Json::from(token(name)?))));
        Ok(Self { template, tokens: tokens.collect(), file, date: None })
    }

    /// The same on another date than today's, which is that of UTC.
    #[must_use]
    pub fn on(mut self, date: SystemTime) -> Self {
        self.date = Some(date);
        self
    }

    /// The text of a conversation in which `user` was said after the instructions `system`, up to where the answer begins.
    ///
    /// # Errors
    /// What the template refuses, or what is wrong with it.
    ///
    /// # Panics
    /// Never: the marks and patterns are fixed.
    pub fn render(&self, system: Option<&str>, user: &str) -> Result<String, Msg> {
        let mut env = Environment::new();
        env.set_fuel(Some(FUEL));
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        env.set_syntax(syntax.expect("the usual marks"));
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.add_function("raise_exception", |why: String| -> Result<(), Error> {
            Err(Error::new(ErrorKind::InvalidOperation, why))
        });
        let date = time::OffsetDateTime::from(self.date.unwrap_or_else(SystemTime::now));
        env.add_function("strftime_now", move |format: &str| -> Result<String, Error> {
            let wrong = |why: String| Error::new(ErrorKind::InvalidOperation, why);
            let format = parse_strftime_owned(format).map_err(|e| wrong(e.to_string()))?;
            date.format(&format).map_err(|e| wrong(e.to_string()))
        });
        env.add_filter("tojson", |value: Value| python_json(&value));
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let mut messages: Vec<Json> = system.map(|text| message("system", text)).into_iter().collect();
        messages.push(message("user", user));
        let mut names = self.tokens.clone();
        names.insert("messages".to_owned(), messages.into());
        names.insert("add_generation_prompt".to_owned(), true.into());
        // Marks around what an assistant said, for training, are blocks that change nothing.
        let mark = |name: &str| Regex::new(&format!(r"\{{%([-+]?)\s*{name}\s*([-+]?)%\}}")).expect("a pattern");
        let begun = mark("generation").replace_all(&self.template, "{%$1 if true $2%}");
        let template = mark("endgeneration").replace_all(&begun, "{%$1 endif $2%}");
        let said = env.template_from_str(&template).and_then(|t| t.render(Value::from(Serde(&names))));
        said.map_err(|e| {
            let why = e.detail().map_or_else(|| e.kind().to_string(), str::to_owned);
            Msg::new("chat.template")
                .arg("file", escape(&self.file))
                .arg("line", e.line().unwrap_or(1))
                .arg("why", escape(&why))
        })
    }
}

fn none(source: &Path) -> Msg {
    Msg::new("chat.none").arg("source", escape(&source.to_string_lossy()))
}

/// The template itself; of several with names, the one called `default`, else the first.
fn default(template: &Json) -> Option<&str> {
    let Json::Array(all) = template else {
        return template.as_str();
    };
    let called = |t: &&Json| t.get("name").and_then(Json::as_str) == Some("default");
    all.iter().find(called).or(all.first())?.get("template")?.as_str()
}

/// JSON as Python writes it: a space after each comma and colon.
fn python_json(value: &Value) -> Result<Value, Error> {
    struct Spaced;
    impl Formatter for Spaced {
        fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
            if first { Ok(()) } else { out.write_all(b", ") }
        }
        fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
            if first { Ok(()) } else { out.write_all(b", ") }
        }
        fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
            out.write_all(b": ")
        }
    }
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Spaced);
    let wrong = |why: String| Error::new(ErrorKind::BadSerialization, why);
    value.serialize(&mut serializer).map_err(|e| wrong(e.to_string()))?;
    let text = String::from_utf8(out).map_err(|e| wrong(e.to_string()))?;
    Ok(Value::from_safe_string(text))
}
