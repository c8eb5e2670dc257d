//! Asks a SQLite file by the program `sqlite3` or, where that is missing, by Python.

use super::command::CommandRunner;
use super::connections::Rows;
use std::io;

/// Lets a query change nothing.
const READ_ONLY: &str = "PRAGMA query_only = ON";

/// A script is committed as it goes on, as by `sqlite3`; a single statement would not be.
const PYTHON: &str = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=5)
if sys.argv[3] == 'rows': db.execute('PRAGMA query_only = ON')
for row in db.execute(sys.argv[2]) if sys.argv[3] == 'rows' else db.executescript(sys.argv[2]): print(*row, sep='\\t')";

/// What statements do to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// A query. A file that is not there is not made: it would be an empty database, in which nothing happened.
    Read,
    /// Statements that make a file ready, also one that is not there yet.
    Change,
}

/// What statements find in a file.
pub(crate) async fn run(
    file: &str,
    sql: &str,
    access: Access,
    commands: &CommandRunner,
) -> Result<Rows, String> {
    let path = commands.directory().join(file);
    let how = match access {
        Access::Read if !path.exists() => {
            return Err(format!("there is no file {}", path.display()));
        }
        Access::Read => "rows",
        Access::Change => "change",
    };
    let path = path.display().to_string();
    let printed = print(&path, sql, how, commands).await;
    let printed = printed.map_err(|why| why.to_string())?;
    let rows = printed.lines().map(|line| line.split('\t'));
    Ok(rows.map(|row| row.map(str::to_owned).collect()).collect())
}

async fn print(path: &str, sql: &str, how: &str, commands: &CommandRunner) -> io::Result<String> {
    let options = ["-batch", "-cmd", ".timeout 5000", "-separator", "\t"];
    let read_only: &[&str] = if how == "rows" {
        &["-cmd", READ_ONLY]
    } else {
        &[]
    };
    let sqlite = [&["sqlite3"], &options[..], read_only, &[path, sql]].concat();
    let python = ["python3", "-c", PYTHON, path, sql, how];
    match commands.output(&sqlite).await {
        Err(why) if why.kind() == io::ErrorKind::NotFound => commands.output(&python).await,
        printed => printed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::command::tests::commands;
    use std::os::unix::fs::PermissionsExt;

    /// A directory in which Python is the only program.
    fn only_python() -> tempfile::TempDir {
        let bin = tempfile::tempdir().unwrap();
        let python = testbed::python().unwrap();
        let script = format!("#!/bin/sh\nexec {} \"$@\"\n", python.display());
        let path = bin.path().join("python3");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        bin
    }

    async fn is_changed_and_asked(path: &str) {
        let (commands, _reaper, dir) = commands(path);
        let sql = "CREATE TABLE t (id text, n int); INSERT INTO t VALUES ('a', 1)";
        for sql in [sql, "INSERT INTO t VALUES ('b', 2)"] {
            let changed = run("shop.db", sql, Access::Change, &commands).await;
            changed.unwrap();
        }
        let sql = "SELECT id, n FROM t ORDER BY id";
        let found = run("shop.db", sql, Access::Read, &commands).await;
        let found = found.unwrap();
        assert_eq!(found, [["a", "1"], ["b", "2"]]);
        let write = "INSERT INTO t VALUES ('c', 3)";
        let refused = run("shop.db", write, Access::Read, &commands).await;
        let said = refused.unwrap_err();
        assert!(said.contains("readonly"), "{said}");
        assert!(dir.path().join("shop.db").exists());
    }

    #[tokio::test]
    async fn statements_are_kept_with_python_alone() {
        let bin = only_python();
        is_changed_and_asked(&bin.path().display().to_string()).await;
    }

    #[tokio::test]
    async fn relative_file_is_beside_the_scenario() {
        is_changed_and_asked("/usr/local/bin:/usr/bin:/bin").await;
    }

    #[tokio::test]
    async fn probe_makes_no_file() {
        let (commands, _reaper, dir) = commands("/usr/local/bin:/usr/bin:/bin");
        let found = run("shop.db", "SELECT 1, 1", Access::Read, &commands).await;
        let said = found.unwrap_err();
        assert!(said.contains("there is no file"), "{said}");
        assert!(!dir.path().join("shop.db").exists());
    }
}
