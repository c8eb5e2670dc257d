//! A query, to PostgreSQL or to a SQLite file.

use super::ProbeKind;
use crate::world::protocol::Protocol;
use crate::world::sqlite::Access;

pub(super) const SQL: ProbeKind = ProbeKind {
    name: "sql",
    given: |effect| effect.sql.as_ref(),
    on: Some(Protocol::Postgres),
    check: |_, _| Ok(()),
    rows: |world, asked| {
        Box::pin(async move {
            let variables = world.variables.clone();
            let rows = world.sql(asked.on, asked.text, &variables, Access::Read);
            rows.await
        })
    },
};
