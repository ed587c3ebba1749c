//! What is here already, as far as an import has to know it: which records, from where, and what was
//! forgotten.

use std::collections::{HashMap, HashSet};

use crate::model::Kind;
use crate::store::{Buried, compact, foreign_entries, text_field};

use super::super::{Engine, Error};
use super::ids::Taken;

/// The field of a renamed record that says where it came from.
pub(in crate::engine) const FROM: &str = "imported_from";

/// A record that is here.
pub(super) struct Known {
    pub(super) digest: u128,
    pub(super) created: String,
    /// Whether the caller may know that it is here.
    pub(super) is_visible: bool,
}

/// Everything that is here.
pub(super) struct Here {
    pub(super) known: HashMap<(Kind, String), Known>,
    /// Records without an id.
    pub(super) bare: HashSet<(Kind, u128)>,
    /// Where renamed records came from, and their ids here.
    pub(super) origins: HashMap<(Kind, Origin), String>,
    pub(super) taken: Taken,
    pub(super) buried: Buried,
}

/// Where a record came from: workspace, id and birth there.
pub(super) type Origin = (String, String, String);

impl Here {
    pub(super) fn read(engine: &Engine) -> Result<Self, Error> {
        let store = &engine.store;
        let mut here = Self {
            known: HashMap::new(),
            bare: HashSet::new(),
            origins: HashMap::new(),
            taken: Taken::default(),
            buried: store.all_buried()?,
        };
        for kind in Kind::ALL {
            // Ids are taken, whoever may see what has them.
            let (entries, _) = foreign_entries(store.directory(), kind)?;
            for entry in entries {
                let text = String::from_utf8_lossy(&entry.text);
                if entry.id.is_empty() {
                    here.bare.insert((kind, digest(&text)));
                    continue;
                }
                let is_visible = store.covers(kind, &entry.text);
                if let Some(origin) = origin_of(&text).filter(|_| is_visible) {
                    here.origins.insert((kind, origin), entry.id.clone());
                }
                here.taken.take(kind, &entry.id);
                let known = Known {
                    digest: digest(&text),
                    created: created(kind, &text),
                    is_visible,
                };
                here.known.insert((kind, entry.id), known);
            }
            for id in here.buried.ids(kind) {
                here.taken.take(kind, id);
            }
        }
        Ok(here)
    }
}

/// Where a renamed record says that it came from.
fn origin_of(text: &str) -> Option<Origin> {
    // Most records have no such field, and need no look.
    if !text.contains(FROM) {
        return None;
    }
    let entry: serde_json::Value = serde_json::from_str(text).ok()?;
    let part = |name: &str| Some(entry.get(FROM)?.get(name)?.as_str()?.to_owned());
    Some((part("workspace")?, part("id")?, part("created")?))
}

/// When a record was made, as its file says.
pub(in crate::engine) fn created(kind: Kind, text: &str) -> String {
    let field = match kind {
        Kind::Execution | Kind::Correction => "timestamp",
        _ => "created_at",
    };
    text_field(text.as_bytes(), field).unwrap_or_default()
}

/// The same for two texts that differ in nothing but white space.
pub(in crate::engine) fn digest(text: &str) -> u128 {
    xxhash_rust::xxh3::xxh3_128(compact(text).as_bytes())
}
