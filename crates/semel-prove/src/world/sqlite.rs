//! Asks a SQLite file by the program `sqlite3` or, where that is missing, by Python.

use crate::world::command::{CommandError, CommandRunner};
use crate::world::connections::Rows;

/// A script is committed as it goes on, as by `sqlite3`; a single statement would not be.
const PYTHON: &str = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=5)
for row in db.execute(sys.argv[2]) if sys.argv[3] == 'rows' else db.executescript(sys.argv[2]): print(*row, sep='\\t')";

/// What is wanted of a file.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    Rows,
    Change,
}

/// What a query finds. A file that is not there is not made: it would be an empty database, in which nothing happened.
pub(crate) async fn rows(file: &str, sql: &str, commands: &CommandRunner) -> Result<Rows, String> {
    let path = commands.directory().join(file);
    if !path.exists() {
        return Err(format!("there is no file {}", path.display()));
    }
    let printed = ask(file, sql, commands, Wanted::Rows).await?;
    Ok(printed
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect())
}

/// Statements that make a file ready, also one that is not there yet.
pub(crate) async fn change(file: &str, sql: &str, commands: &CommandRunner) -> Result<(), String> {
    ask(file, sql, commands, Wanted::Change).await.map(drop)
}

async fn ask(
    file: &str,
    sql: &str,
    commands: &CommandRunner,
    wanted: Wanted,
) -> Result<String, String> {
    let path = commands.directory().join(file).display().to_string();
    let how = match wanted {
        Wanted::Rows => "rows",
        Wanted::Change => "change",
    };
    let sqlite = [
        "sqlite3",
        "-batch",
        "-cmd",
        ".timeout 5000",
        "-separator",
        "\t",
        &path,
        sql,
    ];
    let python = ["python3", "-c", PYTHON, &path, sql, how];
    let printed = match commands.ask(&sqlite.map(str::to_owned)).await {
        Err(CommandError::NotFound(_)) => commands.ask(&python.map(str::to_owned)).await,
        Ok(printed) => Ok(printed),
        Err(CommandError::Failed(why)) => Err(CommandError::Failed(why)),
    };
    printed.map_err(|why| why.to_string())
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
        change("shop.db", sql, &commands).await.unwrap();
        change("shop.db", "INSERT INTO t VALUES ('b', 2)", &commands)
            .await
            .unwrap();
        let found = rows("shop.db", "SELECT id, n FROM t ORDER BY id", &commands)
            .await
            .unwrap();
        assert_eq!(found, [["a", "1"], ["b", "2"]]);
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
        let said = rows("shop.db", "SELECT 1, 1", &commands).await.unwrap_err();
        assert!(said.contains("there is no file"), "{said}");
        assert!(!dir.path().join("shop.db").exists());
    }
}
