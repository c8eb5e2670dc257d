//! Where the databases differ.

use super::{Dialect, Kind, ORDER, VERSION};

/// Batches are read by time. Rows arrive in about that order, so this index is small.
const BY_TIME: &str = ";
CREATE INDEX IF NOT EXISTS {index} ON {landing} USING brin (received_at)";

/// DuckDB and BigQuery share most statements.
const MERGE: &str = include_str!("merge.sql");
const VIEW: &str = include_str!("view.sql");

/// The batch's own times, less and more the horizon: computed before the merge, as values, so that it reads only those
/// partitions. A pause makes a batch span days, so `now()` would be a wrong end.
const BOUNDS_DUCKDB: &str = "\
SET VARIABLE oldest = (SELECT min(published_at) - INTERVAL {horizon} SECOND FROM {landing} WHERE received_at >= {since});
SET VARIABLE newest = (SELECT max(published_at) + INTERVAL {horizon} SECOND FROM {landing} WHERE received_at >= {since});
";
const BOUNDS_BIGQUERY: &str = "\
DECLARE oldest TIMESTAMP DEFAULT (SELECT TIMESTAMP_SUB(MIN(published_at), INTERVAL {horizon} SECOND) FROM {landing} WHERE received_at >= {since});
DECLARE newest TIMESTAMP DEFAULT (SELECT TIMESTAMP_ADD(MAX(published_at), INTERVAL {horizon} SECOND) FROM {landing} WHERE received_at >= {since});
";

// === impl Dialect ===

impl Dialect {
    /// The default names of the two tables.
    pub(super) fn tables(self) -> (&'static str, &'static str) {
        match self {
            Self::Postgres | Self::Duckdb => ("landing", "effects"),
            Self::Bigquery => ("semel.landing", "semel.effects"),
        }
    }

    /// Names are ordered by their bytes: that is BigQuery's and DuckDB's way, and PostgreSQL's if told so.
    pub(super) fn type_of(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::Postgres, Kind::Name) => "text COLLATE \"C\"",
            (Self::Postgres, Kind::Text) => "text",
            (Self::Postgres, Kind::Bytes) => "bytea",
            (Self::Postgres, Kind::Time) => "timestamptz",
            (Self::Postgres, Kind::Integer) => "bigint",
            (Self::Postgres, Kind::Status) => "integer",
            (Self::Duckdb, Kind::Name | Kind::Text) => "VARCHAR",
            (Self::Duckdb, Kind::Bytes) => "BLOB",
            (Self::Duckdb, Kind::Time) => "TIMESTAMPTZ",
            (Self::Duckdb, Kind::Integer) => "BIGINT",
            (Self::Duckdb, Kind::Status) => "INTEGER",
            (Self::Bigquery, Kind::Name | Kind::Text) => "STRING",
            (Self::Bigquery, Kind::Bytes) => "BYTES",
            (Self::Bigquery, Kind::Time) => "TIMESTAMP",
            (Self::Bigquery, Kind::Integer | Kind::Status) => "INT64",
        }
    }

    pub(super) fn layout(self) -> [(&'static str, String); 5] {
        let key = ",\n  PRIMARY KEY (event_id)";
        let [schema, key, landing, effects] = match self {
            Self::Postgres => ["", key, BY_TIME, ""],
            Self::Duckdb => ["", key, "", ""],
            // Its primary keys are not enforced.
            Self::Bigquery => [
                "CREATE SCHEMA IF NOT EXISTS semel;\n\n",
                "",
                "\nPARTITION BY DATE(received_at)",
                "\nPARTITION BY DATE(published_at) CLUSTER BY event_id",
            ],
        };
        let faults = match self {
            Self::Postgres | Self::Duckdb => "",
            Self::Bigquery => landing,
        };
        [
            ("{schema}", schema.into()),
            ("{faults_layout}", faults.into()),
            ("{primary_key}", key.into()),
            ("{landing_layout}", landing.into()),
            ("{effects_layout}", effects.into()),
        ]
    }

    pub(super) fn merge(self) -> &'static str {
        match self {
            Self::Postgres => include_str!("merge.postgres.sql"),
            Self::Duckdb | Self::Bigquery => MERGE,
        }
    }

    pub(super) fn view(self) -> &'static str {
        match self {
            Self::Postgres => include_str!("view.postgres.sql"),
            Self::Duckdb | Self::Bigquery => VIEW,
        }
    }

    /// What a merge calls the row that comes in; the one that is there is `t`.
    pub(super) fn incoming(self) -> &'static str {
        match self {
            Self::Postgres => "excluded",
            Self::Duckdb | Self::Bigquery => "s",
        }
    }

    pub(super) fn since(self) -> &'static str {
        match self {
            Self::Postgres => ":'since'",
            Self::Duckdb => {
                "coalesce(getvariable('since'), error('first: SET VARIABLE since = …'))"
            }
            Self::Bigquery => "@since",
        }
    }

    /// What `since` is, where the statement does not say it.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "",
            Self::Duckdb => "a variable (SET VARIABLE since = …)",
            Self::Bigquery => "a parameter of the query",
        }
    }

    /// Whether the row that comes in precedes the one that is there.
    pub(super) fn precedes(self) -> String {
        let new = self.incoming();
        match self {
            // Swapped for the version, because there the greater one wins.
            Self::Postgres | Self::Duckdb => {
                let side = |first: &str, rest: &str| {
                    let rest = ORDER.map(|name| format!("{rest}.{name}"));
                    format!("({first}.{VERSION}, {})", rest.join(", "))
                };
                format!("{}\n     < {}", side("t", new), side(new, "t"))
            }
            // It compares no tuples.
            Self::Bigquery => {
                let names = ORDER.iter().rev();
                let nested = names.fold(String::new(), |rest, name| {
                    let less = format!("{new}.{name} < t.{name}");
                    if rest.is_empty() {
                        return less;
                    }
                    format!("{less} OR ({new}.{name} = t.{name} AND (\n  {rest}))")
                });
                format!(
                    "({new}.{VERSION} > t.{VERSION} OR ({new}.{VERSION} = t.{VERSION} AND (\n  {nested})))"
                )
            }
        }
    }

    pub(super) fn bounds(self, horizon: u128) -> String {
        let template = match self {
            Self::Postgres => "",
            Self::Duckdb => BOUNDS_DUCKDB,
            Self::Bigquery => BOUNDS_BIGQUERY,
        };
        template.replace("{horizon}", &horizon.to_string())
    }

    pub(super) fn within(self) -> &'static str {
        match self {
            Self::Postgres => "",
            Self::Duckdb => {
                " AND t.published_at BETWEEN getvariable('oldest') AND getvariable('newest')"
            }
            Self::Bigquery => " AND t.published_at BETWEEN oldest AND newest",
        }
    }

    /// The report's words for days, differences of times and percentiles.
    pub(super) fn times(self) -> Vec<(&'static str, String)> {
        let since_first = "min(published_at) OVER (PARTITION BY event_id)";
        let day = match self {
            Self::Postgres | Self::Duckdb => "CAST(published_at AT TIME ZONE 'UTC' AS date)",
            Self::Bigquery => "DATE(published_at)",
        };
        let between = |from: &str, to: &str| match self {
            Self::Postgres => {
                format!("CAST(trunc(extract(epoch FROM {to} - {from}) * 1000) AS bigint)")
            }
            Self::Duckdb => format!("date_sub('millisecond', {from}, {to})"),
            Self::Bigquery => format!("TIMESTAMP_DIFF({to}, {from}, MILLISECOND)"),
        };
        let percentile = |hundredths: u8| match self {
            Self::Postgres | Self::Duckdb => {
                format!("percentile_disc(0.{hundredths}) WITHIN GROUP (ORDER BY delay_ms)")
            }
            Self::Bigquery => format!("APPROX_QUANTILES(delay_ms, 100)[OFFSET({hundredths})]"),
        };
        vec![
            ("{day}", day.into()),
            ("{delay_ms}", between("published_at", "received_at")),
            ("{repeat_ms}", between(since_first, "published_at")),
            ("{p50}", percentile(50)),
            ("{p99}", percentile(99)),
        ]
    }

    /// The function that reads a payload's version, and this path in its words.
    pub(super) fn version(self, names: &[String]) -> (&'static str, String) {
        match self {
            Self::Postgres => (
                include_str!("version.postgres.sql"),
                format!("{{{}}}", names.join(",")),
            ),
            Self::Duckdb => (
                include_str!("version.duckdb.sql"),
                format!("/{}", names.join("/")),
            ),
            Self::Bigquery => (
                include_str!("version.bigquery.sql"),
                format!("$.{}", names.join(".")),
            ),
        }
    }

    pub(super) fn key(self) -> String {
        match self {
            Self::Postgres => {
                include_str!("key.postgres.sql").to_owned() + semel_postgres::KEY_FUNCTIONS
            }
            Self::Duckdb => include_str!("key.duckdb.sql").to_owned(),
            Self::Bigquery => include_str!("key.bigquery.sql").to_owned(),
        }
    }
}
