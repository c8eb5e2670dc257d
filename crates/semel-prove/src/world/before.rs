//! Makes a world ready, once or for each delivery, as `[[before]]` says. Probes ask the same servers.

use super::World;
use super::connections::Rows;
use super::protocol::Protocol;
use super::sqlite::{self, Access};
use crate::error::Error;
use crate::scenario::Before;
use crate::scenario::endpoint::find;
use crate::scenario::template::Variables;

// === impl World ===

impl World<'_> {
    /// Makes the world ready: once, or for one delivery.
    pub(crate) async fn prepare(
        &mut self,
        before: &Before,
        variables: &Variables,
    ) -> Result<(), Error> {
        self.run(before, variables).await.map_err(Error::Before)
    }

    async fn run(&mut self, before: &Before, variables: &Variables) -> Result<(), String> {
        let on = before.on.as_deref();
        if let Some(sql) = &before.sql {
            let sql = variables.expand(sql);
            self.sql(on, &sql, variables, Access::Change).await?;
        }
        if let Some(line) = &before.redis {
            let line = variables.expand_command(line)?;
            let url = self.redis_url(on)?;
            let answered = self.connections.redis::<redis::Value>(&url, &line);
            answered.await?;
        }
        if let Some(line) = &before.command {
            self.output(line, variables).await?;
        }
        Ok(())
    }

    /// What a command prints.
    pub(super) async fn output(&self, line: &str, with: &Variables) -> Result<String, String> {
        let printed = self.commands.output(&with.expand_command(line)?).await;
        printed.map_err(|why| why.to_string())
    }

    /// What statements find, in PostgreSQL or in a SQLite file.
    pub(super) async fn sql(
        &mut self,
        on: Option<&str>,
        sql: &str,
        variables: &Variables,
        access: Access,
    ) -> Result<Rows, String> {
        match find(on, Protocol::Postgres, &self.endpoints)? {
            Some((_, endpoint)) => self.connections.sql(&endpoint.url, sql, access).await,
            None => {
                let file = on.unwrap_or_default().trim_start_matches("sqlite:");
                sqlite::run(&variables.expand(file), sql, access, &self.commands).await
            }
        }
    }

    pub(super) fn redis_url(&self, on: Option<&str>) -> Result<String, String> {
        let found = find(on, Protocol::Redis, &self.endpoints)?;
        Ok(found.map_or_else(String::new, |(_, endpoint)| endpoint.url.clone()))
    }
}
