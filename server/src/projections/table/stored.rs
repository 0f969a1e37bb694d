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
