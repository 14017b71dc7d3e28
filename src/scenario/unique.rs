//! Maps in which no key may be twice: the second would silently replace the first.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// Begins the error of a key that is repeated; the key follows.
pub const TWICE: &str = "key twice: ";

/// Reads a map; a key that is repeated is an error.
///
/// # Errors
/// As any map, and where a key is repeated.
pub fn map<'de, V: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, V>, D::Error> {
    struct Unique<V>(PhantomData<V>);

    impl<'de, V: Deserialize<'de>> Visitor<'de> for Unique<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some(key) = entries.next_key::<String>()? {
                if map.contains_key(&key) {
                    return Err(A::Error::custom(format_args!("{TWICE}{key}")));
                }
                map.insert(key, entries.next_value()?);
            }
            Ok(map)
        }
    }

    from.deserialize_map(Unique(PhantomData))
}
