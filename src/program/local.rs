//! Names as calls of the builder give them: what is added to the name of the current scope.

use smallvec::SmallVec;

use super::name::{Name, Role, Site, Step, Within};

/// A name as a call of the builder gives it: what is added to the name of the current scope.
///
/// Typed parts are made from a [`Role`], a [`Step`], a [`Site`], a call or tuples of them. A text is read as the end
/// of a path; programs of tests and recordings use it.
#[derive(Clone, Debug)]
pub enum Local {
    /// A whole name, whatever the scope.
    Absolute(Name),
    /// In the scope.
    Parts {
        /// Another site.
        site: Option<Site>,
        /// One of several alike.
        within: Option<Within>,
        /// Roles, from the outer to the inner.
        roles: SmallVec<[Role; 2]>,
    },
    /// A decoding call, and a site in it.
    Call(u32, Site, Role),
    /// The end of a path.
    Text(Box<str>),
}

impl Local {
    fn parts(site: Option<Site>, within: Option<Within>, roles: impl IntoIterator<Item = Role>) -> Self {
        Local::Parts { site, within, roles: roles.into_iter().collect() }
    }

    /// The same with a suffix to its last role.
    #[must_use]
    pub fn suffixed(&self, suffix: &str) -> Self {
        let mut next = self.clone();
        match &mut next {
            Local::Absolute(name) => {
                let last = name.last_mut();
                *last = last.suffixed(suffix);
            }
            Local::Parts { roles, .. } => match roles.last_mut() {
                Some(last) => *last = last.suffixed(suffix),
                None => roles.push(Role::parse(suffix)),
            },
            Local::Call(_, _, role) => *role = role.suffixed(suffix),
            Local::Text(text) => *text = format!("{text}{suffix}").into(),
        }
        next
    }

    /// The same with a role inside its last.
    #[must_use]
    pub fn then(&self, role: impl Into<Role>) -> Self {
        let role = role.into();
        match self {
            Local::Absolute(name) => Local::Absolute(name.then(role)),
            Local::Parts { site, within, roles } => {
                Self::parts(*site, *within, roles.iter().cloned().chain([role]).filter(|r| *r != Role::Whole))
            }
            Local::Call(n, site, Role::Whole) => Local::Call(*n, *site, role),
            Local::Call(n, site, outer) => {
                let name = Name { call: Some(*n), site: *site, role: outer.clone(), ..Name::default() };
                Local::Absolute(name.then(role))
            }
            Local::Text(text) if text.is_empty() => Local::parts(None, None, [role]),
            Local::Text(text) => Local::Text(format!("{text}.{role}").into()),
        }
    }
}

impl From<Name> for Local {
    fn from(name: Name) -> Self {
        Local::Absolute(name)
    }
}

impl From<&Name> for Local {
    fn from(name: &Name) -> Self {
        Local::Absolute(name.clone())
    }
}

impl From<&Local> for Local {
    fn from(local: &Local) -> Self {
        local.clone()
    }
}

impl From<Site> for Local {
    fn from(site: Site) -> Self {
        Local::parts(Some(site), None, [])
    }
}

impl From<Within> for Local {
    fn from(within: Within) -> Self {
        Local::parts(None, Some(within), [])
    }
}

impl From<Role> for Local {
    fn from(role: Role) -> Self {
        Local::parts(None, None, [role])
    }
}

impl From<Step> for Local {
    fn from(step: Step) -> Self {
        Local::from(Role::Step(step))
    }
}

impl<A: Into<Role>> From<(Site, A)> for Local {
    fn from((site, a): (Site, A)) -> Self {
        Local::parts(Some(site), None, [a.into()])
    }
}

impl<A: Into<Role>, B: Into<Role>> From<(Site, A, B)> for Local {
    fn from((site, a, b): (Site, A, B)) -> Self {
        Local::parts(Some(site), None, [a.into(), b.into()])
    }
}

impl<A: Into<Role>> From<(Site, Within, A)> for Local {
    fn from((site, within, a): (Site, Within, A)) -> Self {
        Local::parts(Some(site), Some(within), [a.into()])
    }
}

impl<A: Into<Role>, B: Into<Role>> From<(Site, Within, A, B)> for Local {
    fn from((site, within, a, b): (Site, Within, A, B)) -> Self {
        Local::parts(Some(site), Some(within), [a.into(), b.into()])
    }
}

impl<B: Into<Role>> From<(Role, B)> for Local {
    fn from((a, b): (Role, B)) -> Self {
        Local::parts(None, None, [a, b.into()])
    }
}

impl From<&str> for Local {
    fn from(text: &str) -> Self {
        Local::Text(text.into())
    }
}

impl From<String> for Local {
    fn from(text: String) -> Self {
        Local::Text(text.into())
    }
}

impl From<&String> for Local {
    fn from(text: &String) -> Self {
        Local::Text(text.as_str().into())
    }
}

impl Name {
    /// The name that `local` has in the scope of this name.
    #[must_use]
    pub fn with(&self, local: &Local) -> Self {
        match local {
            Local::Absolute(name) => name.clone(),
            Local::Call(call, site, role) => {
                Self { pass: self.pass.clone(), call: Some(*call), site: *site, role: role.clone(), ..Self::default() }
            }
            Local::Text(text) => self.joined(text),
            Local::Parts { site, within, roles } => {
                let mut name = self.clone();
                if let Some(site) = site {
                    name = Self { pass: name.pass, call: name.call, site: *site, ..Self::default() };
                }
                name.within = within.or(name.within);
                for role in roles {
                    name.push(role.clone());
                }
                name
            }
        }
    }
}
