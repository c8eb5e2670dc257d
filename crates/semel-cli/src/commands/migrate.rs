//! `semel migrate`: bring a database to this version's tables and functions.

use crate::args::MigrateArgs;
use crate::out::{to_stderr, to_stdout};
use crate::store_url::StoreUrl;
use semel_postgres::{Migrated, PostgresSettings};

pub(crate) async fn run(args: &MigrateArgs) -> anyhow::Result<()> {
    match &args.store {
        StoreUrl::Postgres(url) => {
            let migrated = semel_postgres::migrate(&PostgresSettings::new(url)).await?;
            to_stdout(&format!("{}\n", line(&migrated)))?;
            if !migrated.handler_role {
                to_stderr(
                    "semel: this user may not create roles, so handlers that log in as somebody else cannot call \
                     semel.complete and semel.once yet; let an administrator create the role semel_handler, then repeat\n",
                );
            }
            Ok(())
        }
        StoreUrl::Embedded(_) | StoreUrl::Redis(_) | StoreUrl::Firestore(_) => {
            to_stdout("nothing to migrate: only PostgreSQL has tables\n")
        }
    }
}

fn line(migrated: &Migrated) -> String {
    let Migrated { from, to, .. } = migrated;
    if from == to {
        format!("schema semel is at version {to}, nothing to do")
    } else {
        format!("schema semel migrated from version {from} to {to}")
    }
}
