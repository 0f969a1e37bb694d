//! The rows a fold works on: loaded by key, changed in memory, written back as one set.

use std::collections::{HashMap, HashSet};
use std::fmt::{Debug, Display};
use std::hash::Hash;

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::{PgConnection, Row as _};

use super::any_table::{AnyTable, StoreError, relation};
use super::text::{Column, copy_line, fields};

/// Rows written by one statement. Larger arrays cost more than they save.
const ROWS_A_STATEMENT: usize = 1500;

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

    fn relation(generation: i32) -> String {
        relation(R::TABLE, generation)
    }

    fn column_list(&self) -> String {
        self.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    async fn load_wanted(&mut self, conn: &mut PgConnection, generation: i32) -> Result<bool, StoreError> {
        if self.wanted.is_empty() {
            return Ok(false);
        }
        let keys: Vec<R::Key> = self.wanted.drain().collect();
        let mut parts: Vec<Vec<String>> = vec![Vec::with_capacity(keys.len()); R::KEY.len()];
        for key in &keys {
            for (column, part) in parts.iter_mut().zip(key.parts()) {
                column.push(part);
            }
        }
        let arrays: Vec<String> = (1..=parts.len()).map(|n| format!("${n}::text[]")).collect();
        let names: Vec<String> = (1..=parts.len()).map(|n| format!("k{n}")).collect();
        let matches: Vec<String> = R::KEY
            .iter()
            .zip(&names)
            .map(|(column, name)| format!("t.{column} = k.{name}::{}", self.kind_sql(column)))
            .collect();
        let live = if R::VERSIONED { " and t.valid_to is null" } else { "" };
        let sql = format!(
            "select row_to_json(t)::text from {} t join unnest({}) as k({}) on {}{live}",
            Self::relation(generation),
            arrays.join(", "),
            names.join(", "),
            matches.join(" and "),
        );
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
        for column in parts {
            query = query.bind(column);
        }
        let found = query.fetch_all(conn).await?;
        for key in keys {
            self.rows.entry(key).or_insert(Slot { row: None, dirty: false });
        }
        for row in found {
            let json: String = row.try_get(0)?;
            let row: R = serde_json::from_str(&json).map_err(|e| StoreError::shape(R::TABLE, &e))?;
            self.rows.insert(row.key(), Slot { row: Some(row), dirty: false });
        }
        Ok(true)
    }

    fn kind_sql(&self, column: &str) -> &'static str {
        self.columns.iter().find(|c| c.name == column).map_or("text", |c| c.kind.sql())
    }

    async fn apply_access_changes(
        &mut self,
        conn: &mut PgConnection,
        generation: i32,
    ) -> Result<(), StoreError> {
        for change in self.access_changes.drain(..) {
            if !self.columns.iter().any(|c| c.name == "visibility") {
                continue;
            }
            let sql = format!(
                "update {} set visibility = $3 where org = $1 and project_code = $2",
                Self::relation(generation)
            );
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(change.org)
                .bind(change.project_code)
                .bind(change.visibility)
                .execute(&mut *conn)
                .await?;
        }
        Ok(())
    }

    /// What must be written, as text; leaves nothing dirty.
    fn take_dirty(&mut self) -> Result<Vec<Vec<Option<String>>>, StoreError> {
        let mut out = Vec::new();
        for row in self.closed.drain(..) {
            out.push(fields(&row, &self.columns)?);
        }
        for slot in self.rows.values_mut().filter(|slot| slot.dirty) {
            slot.dirty = false;
            if let Some(row) = &slot.row {
                out.push(fields(row, &self.columns)?);
            }
        }
        Ok(out)
    }

    fn upsert_sql(&self, generation: i32) -> String {
        let arrays: Vec<String> = (1..=self.columns.len()).map(|n| format!("unnest(${n}::text[])")).collect();
        let names: Vec<String> = (1..=self.columns.len()).map(|n| format!("c{n}")).collect();
        let casts: Vec<String> =
            self.columns.iter().zip(&names).map(|(c, name)| format!("u.{name}::{}", c.kind.sql())).collect();
        let mut key: Vec<&str> = R::KEY.to_vec();
        if R::VERSIONED {
            key.push("valid_from");
        }
        let sets: Vec<String> = self
            .columns
            .iter()
            .filter(|c| !key.contains(&c.name.as_str()))
            .map(|c| match R::TALLY == Some(c.name.as_str()) {
                true => format!("{0} = t.{0} + excluded.{0}", c.name),
                false => format!("{0} = excluded.{0}", c.name),
            })
            .collect();
        format!(
            "insert into {} as t ({}) select {} from rows from ({}) as u({}) on conflict ({}) do update set {}",
            Self::relation(generation),
            self.column_list(),
            casts.join(", "),
            arrays.join(", "),
            names.join(", "),
            key.join(", "),
            sets.join(", "),
        )
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

impl<R: Row> AnyTable for Table<R> {
    fn name(&self) -> &'static str {
        R::TABLE
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn primary_key(&self) -> Vec<&'static str> {
        let mut key = R::KEY.to_vec();
        if R::VERSIONED {
            key.push("valid_from");
        }
        key
    }

    fn indexes(&self) -> &'static [&'static str] {
        R::INDEXES
    }

    fn versioned(&self) -> bool {
        R::VERSIONED
    }

    fn load<'a>(
        &'a mut self,
        conn: &'a mut PgConnection,
        generation: i32,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.load_wanted(conn, generation))
    }

    fn flush<'a>(
        &'a mut self,
        conn: &'a mut PgConnection,
        generation: i32,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.apply_access_changes(conn, generation).await?;
            let mut rows = self.take_dirty()?;
            let sql = if rows.is_empty() { String::new() } else { self.upsert_sql(generation) };
            while !rows.is_empty() {
                let rest =
                    if rows.len() > ROWS_A_STATEMENT { rows.split_off(ROWS_A_STATEMENT) } else { Vec::new() };
                let mut arrays: Vec<Vec<Option<String>>> =
                    vec![Vec::with_capacity(rows.len()); self.columns.len()];
                for row in rows {
                    for (array, field) in arrays.iter_mut().zip(row) {
                        array.push(field);
                    }
                }
                let mut query = sqlx::query(sqlx::AssertSqlSafe(sql.clone()));
                for array in arrays {
                    query = query.bind(array);
                }
                query.execute(&mut *conn).await?;
                rows = rest;
            }
            if R::TALLY.is_some() {
                self.rows.clear();
            }
            Ok(())
        })
    }

    fn copy<'a>(
        &'a mut self,
        conn: &'a mut PgConnection,
        generation: i32,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.apply_access_changes(conn, generation).await?;
            let sql = format!("copy {} ({}) from stdin", Self::relation(generation), self.column_list());
            let mut copy = conn.copy_in_raw(&sql).await?;
            let mut buffer = Vec::with_capacity(1 << 20);
            for row in self.closed.drain(..) {
                copy_line(&fields(&row, &self.columns)?, &mut buffer);
                if buffer.len() > 1 << 19 {
                    copy.send(std::mem::take(&mut buffer)).await?;
                }
            }
            for slot in self.rows.values_mut().filter(|slot| slot.dirty) {
                slot.dirty = false;
                if let Some(row) = &slot.row {
                    copy_line(&fields(row, &self.columns)?, &mut buffer);
                }
                if buffer.len() > 1 << 19 {
                    copy.send(std::mem::take(&mut buffer)).await?;
                }
            }
            copy.send(buffer).await?;
            copy.finish().await?;
            Ok(())
        })
    }

    fn rows(&self) -> Result<Vec<serde_json::Value>, StoreError> {
        let rows = self.rows.values().filter_map(|slot| slot.row.as_ref());
        rows.map(|row| serde_json::to_value(row).map_err(|e| StoreError::shape(R::TABLE, &e))).collect()
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.wanted.clear();
        self.closed.clear();
        self.access_changes.clear();
    }

    fn set_complete(&mut self, complete: bool) {
        self.complete = complete;
    }

    fn held(&self) -> usize {
        self.rows.len() + self.closed.len()
    }
}
