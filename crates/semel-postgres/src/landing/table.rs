//! The table that rows land in: its name, and whether it is as it must be.

use crate::errors::invalid;
use crate::server::Session;
use semel::Error;
use std::fmt;
use std::str::FromStr;
use tokio_postgres::types::Type;

/// The longest name that leaves room for `_faults` in what PostgreSQL keeps of one.
const NAME_BYTES_MAX: usize = 56;

const FAULTS: &str = "_faults";

/// What is there under a name: its kind, whether a part of it is lost in a crash, its columns and their types, those that
/// must be given, and whether it may be written.
const ASK: &str = "SELECT c.relkind::text, \
     EXISTS (SELECT FROM pg_class p WHERE p.relpersistence <> 'p' AND (p.oid = c.oid OR p.oid IN \
             (SELECT relid FROM pg_partition_tree(c.oid)))), \
     ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum), \
     ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped \
           AND attnotnull AND NOT atthasdef AND attidentity = ''), \
     has_table_privilege(c.oid, 'INSERT'), \
     ARRAY(SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum), \
     row_security_active(c.oid) \
     FROM pg_class c WHERE c.oid = to_regclass($1)";

/// A table, with or without its schema.
///
/// ```
/// use semel_postgres::Table;
///
/// let table: Table = "shop.landing".parse().unwrap();
/// assert_eq!(table.to_string(), "shop.landing");
/// assert!("landing; DROP TABLE orders".parse::<Table>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    schema: Option<String>,
    name: String,
}

/// A name that no table has here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a table is named by small letters, digits and underscores, 56 of them at the most, as landing or shop.landing"
)]
pub struct TableNameError;

// === impl Table ===

impl Table {
    /// As statements name it.
    pub(super) fn quoted(&self) -> String {
        match &self.schema {
            Some(schema) => format!("\"{schema}\".\"{}\"", self.name),
            None => format!("\"{}\"", self.name),
        }
    }

    /// The table beside it for what cannot stand in it.
    pub(super) fn faults(&self) -> Self {
        Self {
            schema: self.schema.clone(),
            name: format!("{}{FAULTS}", self.name),
        }
    }
}

impl FromStr for Table {
    type Err = TableNameError;

    fn from_str(text: &str) -> Result<Self, TableNameError> {
        let (schema, name) = match text.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, text),
        };
        if !is_name(name) || !schema.is_none_or(is_name) {
            return Err(TableNameError);
        }
        Ok(Self {
            schema: schema.map(str::to_owned),
            name: name.into(),
        })
    }
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins_well = !text.starts_with(|c: char| c.is_ascii_digit());
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && begins_well && text.bytes().all(plain)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        f.write_str(&self.name)
    }
}

/// The types that keep what is given to a column as it is.
fn types_of(column: &str, columns: &[&str]) -> &'static [&'static str] {
    let of_faults = columns.contains(&"fault");
    match column {
        "published_at" | "received_at" => &["timestamp with time zone"],
        "attempt" | "version" => &["bigint", "numeric"],
        "answer_status" => &["integer", "bigint", "numeric"],
        "payload" | "answer" if of_faults => &["bytea"],
        _ => &["text", "character varying"],
    }
}

/// Refuses a table that rows could not land in, or would be lost from.
pub(super) async fn check(
    session: &Session,
    table: &str,
    columns: &[&str],
    answers: bool,
) -> Result<(), Error> {
    let asked = session
        .client
        .query_typed(ASK, &[(&table, Type::TEXT)])
        .await;
    let asked = asked.map_err(|error| session.start_error(error))?;
    let flag = if answers { " --answer" } else { "" };
    let make =
        &format!("make it as `semel warehouse sql --dialect postgres --part ddl{flag}` prints it");
    let refuse = |what: String, to_do: &str| Err(invalid(session.place(), &what, to_do));
    let Some(found) = asked.first() else {
        return refuse(format!("there is no table {table}"), make);
    };
    let (kind, lossy): (&str, bool) = (found.get(0), found.get(1));
    if !["r", "p"].contains(&kind) {
        return refuse(format!("{table} is not a table"), make);
    }
    if lossy {
        let what =
            format!("{table} or a part of it is UNLOGGED or temporary, so a crash empties it");
        return refuse(what, "ALTER TABLE … SET LOGGED");
    }
    if found.get(6) {
        let what =
            format!("{table} has row-level security, under which nothing can be copied into it");
        return refuse(
            what,
            "ALTER TABLE … DISABLE ROW LEVEL SECURITY, or let the user of the URL bypass it",
        );
    }
    let (has, needs): (Vec<&str>, Vec<&str>) = (found.get(2), found.get(3));
    let missing: Vec<_> = columns
        .iter()
        .copied()
        .filter(|it| !has.contains(it))
        .collect();
    if !missing.is_empty() {
        return refuse(format!("{table} lacks {}", missing.join(", ")), make);
    }
    let types: Vec<&str> = found.get(5);
    for (column, found) in has.iter().zip(types).filter(|(it, _)| columns.contains(it)) {
        let allowed = types_of(column, columns);
        if !allowed.contains(&found) {
            let what = format!(
                "{table} has {column} as {found}, which must be {}",
                allowed.join(" or ")
            );
            return refuse(what, make);
        }
    }
    let unknown: Vec<_> = needs
        .into_iter()
        .filter(|it| !columns.contains(it))
        .collect();
    if !unknown.is_empty() {
        let what = format!("{table} needs {}, which nobody gives", unknown.join(", "));
        return refuse(what, "give a default, or drop NOT NULL");
    }
    if !found.get::<_, bool>(4) {
        let to_do = "GRANT INSERT on it to the user of the URL";
        return refuse(format!("{table} may not be written"), to_do);
    }
    Ok(())
}
