//! How a name prints: its path.

use std::fmt;

use smallvec::SmallVec;

use super::name::{Block, Name, Pass, Role, Site, Within};

/// Writes parts with dots between them.
struct Joined<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    any: bool,
}

impl Joined<'_, '_> {
    fn part(&mut self, part: impl fmt::Display) -> fmt::Result {
        if std::mem::replace(&mut self.any, true) {
            self.f.write_str(".")?;
        }
        write!(self.f, "{part}")
    }

    fn site(&mut self, site: Site) -> fmt::Result {
        match site {
            Site::Root => Ok(()),
            Site::Vocabulary => self.part("vocabulary"),
            Site::Embedding(None) => self.part("embed"),
            Site::Embedding(Some(side)) => self.part(format_args!("embed.{}", side.name())),
            Site::EmbeddingNorm(side) => self.part(format_args!("embed.{}.norm", side.name())),
            Site::Stack(stack) => self.part(stack.as_str()),
            Site::Rotary(stack) => self.part(format_args!("{}.rotary", stack.as_str())),
            Site::FinalNorm(stack) => self.part(format_args!("{}.final_norm", stack.as_str())),
            Site::Layer(stack, layer, block) => {
                self.part(format_args!("{}.{layer}", stack.as_str()))?;
                match block {
                    Block::Layer => Ok(()),
                    Block::SelfAttention => self.part("self_attn"),
                    Block::CrossAttention => self.part("cross_attn"),
                    Block::FeedForward => self.part("ffn"),
                    Block::Norm(n) => self.part(format_args!("norm{n}")),
                    Block::PostNorm(n) => self.part(format_args!("post_norm{n}")),
                }
            }
            Site::Output => self.part("output"),
            Site::Pooler => self.part("pooler"),
            Site::Classifier => self.part("classifier"),
            Site::Loss => self.part("loss"),
            Site::Beam => self.part("beam"),
            Site::Next => self.part("next"),
            Site::Cache(None) => self.part("cache"),
            Site::Cache(Some(layer)) => self.part(format_args!("cache.{layer}")),
        }
    }

    fn name(&mut self, name: &Name) -> fmt::Result {
        let mut pass = &name.pass;
        let mut readers: SmallVec<[&Name; 1]> = SmallVec::new();
        loop {
            match pass {
                Pass::Forward => break,
                Pass::Update => {
                    self.part("update")?;
                    break;
                }
                Pass::Gradient(gradient) => {
                    self.part("grad")?;
                    readers.extend(&gradient.from);
                    pass = &gradient.of;
                }
            }
        }
        if let Some(call) = name.call {
            self.part(format_args!("gen.{call}"))?;
        }
        self.site(name.site)?;
        match name.within {
            None => {}
            Some(Within::Head(n)) => self.part(format_args!("heads.{n}"))?,
            Some(Within::Expert(n)) => self.part(format_args!("experts.{n}"))?,
            Some(Within::Tile(n, None)) => self.part(format_args!("tiles.{n}"))?,
            Some(Within::Tile(n, Some(keys))) => self.part(format_args!("tiles.{n}.{keys}"))?,
            Some(Within::Band(n)) => self.part(format_args!("bands.{n}"))?,
        }
        if name.role != Role::Whole {
            self.part(&name.role)?;
        }
        for role in &name.inner {
            self.part(role)?;
        }
        for reader in readers.into_iter().rev() {
            self.part("from")?;
            self.name(reader)?;
        }
        Ok(())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Joined { f, any: false }.name(self)
    }
}
