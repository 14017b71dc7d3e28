//! The table of views: one line each. Everything else that knows all views is made from it: names, keys, titles,
//! states ([`super::views::Views`]) and drawings (`tui::views`).

/// Hands the table to macro `$then`: variant, module in `app::views` and `tui::views` (its name and the title's
/// key are made of it), and keys.
macro_rules! view_table {
    ($then:ident) => {
        $then! {
            Step step ["1"],
            Heads heads ["2"],
            Layers layers ["3"],
            Probs probs ["4"],
            Costs costs ["5"],
            Positions positions ["6"],
            Token token ["7"],
            Log log ["8"],
            Compare compare ["9"],
            Debug debug ["0"],
            Stages stages ["@", "g b"],
            Teacher teacher ["] @", "g f"],
            Cache cache ["[ @", "g k"],
            Side side ["~", "g s"],
            Training training ["f12", "g t"],
            Map map ["shift-f1", "g m"],
            Counts counts ["shift-f2", "g c"],
            Lens lens ["] #", "g l"],
        }
    };
}
pub(crate) use view_table;

macro_rules! define_views {
    ($first:ident $first_module:ident [$($first_key:literal),*], $($view:ident $module:ident [$($key:literal),*],)*) => {
        /// What the main area shows.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::VariantArray)]
        pub enum View {
            #[doc = concat!("See `app::views::", stringify!($first_module), "`.")]
            #[default]
            $first,
            $(#[doc = concat!("See `app::views::", stringify!($module), "`.")] $view,)*
        }

        impl View {
            /// All views, in the order in which `v` goes through them.
            pub const ALL: &[View] = <Self as strum::VariantArray>::VARIANTS;
            /// How their names are written as an argument.
            pub const USAGE: &str = concat!(stringify!($first_module), $(" | ", stringify!($module)),*);

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    View::$first => stringify!($first_module),
                    $(View::$view => stringify!($module),)*
                }
            }

            /// Catalogue key of its title.
            pub fn key(self) -> &'static str {
                match self {
                    View::$first => concat!("tui.view.", stringify!($first_module)),
                    $(View::$view => concat!("tui.view.", stringify!($module)),)*
                }
            }

            /// The keys that show it.
            pub fn keys(self) -> &'static [&'static str] {
                match self {
                    View::$first => &[$($first_key),*],
                    $(View::$view => &[$($key),*],)*
                }
            }
        }
    };
}
view_table!(define_views);

impl View {
    /// The view after (or before) this one, around.
    #[must_use]
    pub fn step(self, forward: bool) -> Self {
        let at = Self::ALL.iter().position(|v| *v == self).unwrap_or(0);
        let n = Self::ALL.len();
        Self::ALL[(at + if forward { 1 } else { n - 1 }) % n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_has_a_title_and_a_key() {
        for &view in View::ALL {
            assert!(crate::text::catalogue::has(view.key()), "{}", view.key());
            assert!(!view.keys().is_empty(), "{}", view.name());
        }
    }
}
