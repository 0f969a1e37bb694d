//! The rows a fold works on: loaded by key, changed in memory, written back as one set ([`stored`]).

mod stored;

use std::collections::{HashMap, HashSet};
use std::fmt::{Debug, Display};
use std::hash::Hash;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::text::Column;

/// A row of a read table: a plain struct whose fields are the table's columns.
pub trait Row: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// What identifies a row.
    type Key: Key;
    /// The table's name, without its generation.
    const TABLE: &'static str;
    /// The key's columns.
    const KEY: &'static [&'static str];
    /// Columns (comma-separated) of further indexes, each maybe followed by ` include ` and columns that are only read in it.
    const INDEXES: &'static [&'static str] = &[];
    /// Whether old versions of a row are kept, by position: the columns `valid_from` and `valid_to`.
    const VERSIONED: bool = false;

    /// The column that holds a number to which changes are added, see [`Table::add`]: such rows are written blindly.
    const TALLY: Option<&'static str> = None;

    /// The columns, in the order of the struct's fields.
    fn columns() -> Vec<Column>;
    /// This row's key.
    fn key(&self) -> Self::Key;
    /// The project whose visibility this row follows, and where that is kept.
    fn access(&mut self) -> Option<Access<'_>> {
        None
    }
    /// The number in the column [`Row::TALLY`].
    fn tally(&mut self) -> Option<&mut i64> {
        None
    }
    /// `valid_from` and `valid_to`, where versions are kept.
    fn validity(&mut self) -> Option<(&mut i64, &mut Option<i64>)> {
        None
    }
}

/// A row's key: one part, or several, in the order of [`Row::KEY`].
pub trait Key: Clone + Eq + Hash + Debug + Send + Sync {
    /// The text of each part.
    fn parts(&self) -> Vec<String>;
}

impl Key for String {
    fn parts(&self) -> Vec<String> {
        vec![self.clone()]
    }
}

macro_rules! key_of_parts {
    ($($part:ident $name:ident),*) => {
        impl<$($part: Clone + Eq + Hash + Debug + Display + Send + Sync),*> Key for ($($part,)*) {
            fn parts(&self) -> Vec<String> {
                let ($($name,)*) = self;
                vec![$($name.to_string()),*]
            }
        }
    };
}
key_of_parts!(A a, B b);
key_of_parts!(A a, B b, C c);
key_of_parts!(A a, B b, C c, D d);
key_of_parts!(A a, B b, C c, D d, E e, F f);

/// The part of a row that says who may see it.
#[derive(Debug)]
pub struct Access<'a> {
    /// The organisation.
    pub org: &'a str,
    /// The project.
    pub project_code: &'a str,
    /// The word that is in force.
    pub visibility: &'a mut String,
}

/// Where a table's rows stand while events are folded.
#[derive(Debug)]
pub struct Table<R: Row> {
    columns: Vec<Column>,
    rows: HashMap<R::Key, Slot<R>>,
    wanted: HashSet<R::Key>,
    closed: Vec<R>,
    access_changes: Vec<AccessChange>,
    complete: bool,
}

#[derive(Debug)]
struct Slot<R> {
    row: Option<R>,
    dirty: bool,
}

#[derive(Debug, Clone)]
struct AccessChange {
    org: String,
    project_code: String,
    visibility: String,
}

impl<R: Row> Default for Table<R> {
    fn default() -> Self {
        Self {
            columns: R::columns(),
            rows: HashMap::new(),
            wanted: HashSet::new(),
            closed: Vec::new(),
            access_changes: Vec::new(),
            complete: false,
        }
    }
}

impl<R: Row> Table<R> {
    /// Says that the fold will look at this row.
    pub fn want(&mut self, key: R::Key) {
        if !self.complete && !self.rows.contains_key(&key) {
            self.wanted.insert(key);
        }
    }

    /// The row, if there is one.
    pub fn get(&self, key: &R::Key) -> Option<&R> {
        debug_assert!(self.complete || self.rows.contains_key(key), "{}: {key:?} was not wanted", R::TABLE);
        self.rows.get(key)?.row.as_ref()
    }

    /// The row, where it is loaded already: for finding the keys of further rows.
    pub fn loaded(&self, key: &R::Key) -> Option<&R> {
        self.rows.get(key)?.row.as_ref()
    }

    /// The row, to be changed by the event at `position`. Where versions are kept, the row as it was is closed there.
    pub fn get_mut(&mut self, key: &R::Key, position: i64) -> Option<&mut R> {
        let slot = self.rows.get_mut(key)?;
        let row = slot.row.as_mut()?;
        slot.dirty = true;
        if R::VERSIONED {
            close_version(row, position, &mut self.closed);
        }
        Some(row)
    }

    /// The row, to be changed by the event at `position`, which makes it where there is none.
    pub fn get_mut_or_put(&mut self, key: R::Key, position: i64, new: impl FnOnce() -> R) -> &mut R {
        if self.get(&key).is_none() {
            self.put(new(), position);
        }
        self.get_mut(&key, position).expect("put there, if it was not")
    }

    /// Puts a row in place, whether or not there was one.
    pub fn put(&mut self, mut row: R, position: i64) {
        let key = row.key();
        if R::VERSIONED {
            if let Some(old) = self.rows.get_mut(&key).and_then(|slot| slot.row.as_mut()) {
                close_version(old, position, &mut self.closed);
            }
            if let Some((from, to)) = row.validity() {
                *from = position;
                *to = None;
            }
        }
        self.rows.insert(key, Slot { row: Some(row), dirty: true });
    }

    /// Adds to the number in the row with this row's key; makes it with that number where there is none. Nothing is
    /// loaded for it: what is held are the changes since the last write.
    pub fn add(&mut self, row: R, by: i64) {
        let slot = self.rows.entry(row.key()).or_insert(Slot { row: None, dirty: true });
        slot.dirty = true;
        if let Some(number) = slot.row.get_or_insert(row).tally() {
            *number += by;
        }
    }

    /// Ends the row's last version at `position`: from there on there is no such row.
    pub fn close(&mut self, key: &R::Key, position: i64) {
        let Some(slot) = self.rows.get_mut(key) else { return };
        let Some(mut row) = slot.row.take() else { return };
        slot.dirty = false;
        let mut ended = None;
        if let Some((from, to)) = row.validity() {
            *to = Some(position);
            ended = Some(*from < position);
        }
        // A row that the same event made and ended never was.
        if ended == Some(true) {
            self.closed.push(row);
        }
    }

    /// A project's visibility changed: every row of it follows, old versions too.
    pub fn set_visibility(&mut self, org: &str, project_code: &str, visibility: &str) {
        let of_project = |row: &mut R| {
            if let Some(access) = row.access()
                && access.org == org
                && access.project_code == project_code
            {
                *access.visibility = visibility.to_owned();
            }
        };
        self.rows.values_mut().filter_map(|slot| slot.row.as_mut()).for_each(of_project);
        self.closed.iter_mut().for_each(of_project);
        self.access_changes.push(AccessChange {
            org: org.to_owned(),
            project_code: project_code.to_owned(),
            visibility: visibility.to_owned(),
        });
    }
}

fn close_version<R: Row>(row: &mut R, position: i64, closed: &mut Vec<R>) {
    let Some((from, _)) = row.validity() else { return };
    if *from == position {
        return;
    }
    let mut old = row.clone();
    if let Some((_, to)) = old.validity() {
        *to = Some(position);
    }
    closed.push(old);
    if let Some((from, to)) = row.validity() {
        *from = position;
        *to = None;
    }
}
