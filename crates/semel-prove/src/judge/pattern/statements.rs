//! What statements, commands and requests mean, as far as their words tell.

/// Changes something, apart from ending a transaction.
pub(super) fn writes(said: &str) -> bool {
    let upper = said.to_uppercase();
    let starts = [
        "INSERT", "UPDATE", "DELETE", "POST /", "PUT /", "SET ", "HSET ", "INCR", "LPUSH ",
        "RPUSH ",
    ];
    starts.iter().any(|start| upper.starts_with(start))
}

/// `x = x + …` in any spelling, and Redis's own counters.
pub(super) fn adds(said: &str) -> bool {
    let upper = said.to_uppercase();
    if ["INCR", "DECR", "HINCRBY", "ZINCRBY"]
        .iter()
        .any(|start| upper.starts_with(start))
    {
        return true;
    }
    let Some((_, set)) = upper.split_once(" SET ") else {
        return false;
    };
    set.split(',').any(|assignment| {
        let Some((to, from)) = assignment.split_once('=') else {
            return false;
        };
        let name = to.trim().rsplit('.').next().unwrap_or_default();
        let first = from
            .trim()
            .split([' ', '+', '-'])
            .next()
            .unwrap_or_default();
        let rest = from
            .trim()
            .get(first.len()..)
            .unwrap_or_default()
            .trim_start();
        first.rsplit('.').next() == Some(name) && rest.starts_with(['+', '-'])
    })
}

/// Whether it looks for something before it writes for the first time.
pub(super) fn checks_first(said: &[String]) -> bool {
    let before = said.iter().take_while(|said| !writes(said));
    let first = said.iter().find(|said| writes(said));
    // A key that decides is looked for by the write itself.
    let decides = first.is_some_and(|said| {
        let upper = said.to_uppercase();
        upper.contains("ON CONFLICT") || upper.contains(" NX") || upper.starts_with("SETNX")
    });
    decides || before.into_iter().any(|said| looks(said))
}

fn looks(said: &str) -> bool {
    let upper = said.to_uppercase();
    let starts = [
        "SELECT",
        "WITH",
        "GET",
        "HGET",
        "EXISTS",
        "HEXISTS",
        "SISMEMBER",
        "ZSCORE",
        "HEAD /",
        "EVAL",
        "FCALL",
    ];
    starts.iter().any(|start| upper.starts_with(start))
}
