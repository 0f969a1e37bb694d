//! A table's rows in the database: loaded, upserted, copied.

use futures::future::BoxFuture;
use sqlx::{PgConnection, Row as _};

use super::{Key, Row, Slot, Table};
use crate::projections::any_table::{AnyTable, StoreError, relation};
use crate::projections::text::{Column, copy_line, fields};

/// Rows written by one statement. Larger arrays cost more than they save.
const ROWS_A_STATEMENT: usize = 1500;

impl<R: Row> Table<R> {
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
        let (keyed, matches) = self.keyed();
        let live = if R::VERSIONED { " and t.valid_to is null" } else { "" };
        let table = Self::relation(generation);
        let sql = format!("select row_to_json(t)::text from {table} t join {keyed} on {matches}{live}");
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
        for column in parts(&keys) {
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

    /// The keys of a statement, `k`, of which each part is bound as one array, and the condition that a row `t` has one.
    fn keyed(&self) -> (String, String) {
        let arrays: Vec<String> = (1..=R::KEY.len()).map(|n| format!("${n}::text[]")).collect();
        let names: Vec<String> = (1..=R::KEY.len()).map(|n| format!("k{n}")).collect();
        let matches: Vec<String> = R::KEY
            .iter()
            .zip(&names)
            .map(|(column, name)| format!("t.{column} = k.{name}::{}", self.kind_sql(column)))
            .collect();
        (format!("unnest({}) as k({})", arrays.join(", "), names.join(", ")), matches.join(" and "))
    }

    /// Removes the rows with these keys that count nothing any more: what was and went leaves no trace.
    async fn remove_empty(
        &self,
        conn: &mut PgConnection,
        generation: i32,
        tally: &str,
        keys: &[R::Key],
    ) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        let (keyed, matches) = self.keyed();
        let table = Self::relation(generation);
        let sql = format!("delete from {table} t using {keyed} where {matches} and t.{tally} = 0");
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
        for column in parts(keys) {
            query = query.bind(column);
        }
        query.execute(conn).await?;
        Ok(())
    }

    /// Forgets the tallies that come to nothing. Gives the keys of those that go down.
    fn settle_tallies(&mut self) -> Vec<R::Key> {
        let mut down = Vec::new();
        if R::TALLY.is_some() {
            self.rows.retain(|key, slot| {
                let change = slot.row.as_mut().and_then(R::tally).copied().unwrap_or_default();
                if change < 0 {
                    down.push(key.clone());
                }
                change != 0
            });
        }
        down
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

/// The parts of keys, each part's texts together.
fn parts<K: Key>(keys: &[K]) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    for key in keys {
        for (nth, part) in key.parts().into_iter().enumerate() {
            if parts.len() <= nth {
                parts.push(Vec::with_capacity(keys.len()));
            }
            parts[nth].push(part);
        }
    }
    parts
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
            let down = self.settle_tallies();
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
            if let Some(tally) = R::TALLY {
                self.remove_empty(conn, generation, tally, &down).await?;
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
            self.settle_tallies();
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
