//! What statements, commands and requests mean, as far as their words tell.

/// What changes something, apart from ending a transaction or giving back a lock, begins with one of these.
const WRITES: [&str; 22] = [
    "INSERT", "UPDATE", "DELETE", "MERGE", "POST /", "PUT /", "PATCH /", "SET ", "SETNX ",
    "SETEX ", "GETSET ", "APPEND ", "HSET ", "HSETNX ", "HINCRBY ", "INCR", "DECR", "LPUSH ",
    "RPUSH ", "SADD ", "ZADD ", "XADD ",
];
/// Of these the answer says whether it was there before.
const DECIDES: [&str; 3] = ["SETNX ", "HSETNX ", "SADD "];
/// Redis's own counters begin with one of these.
const COUNTERS: [&str; 4] = ["INCR", "DECR", "HINCRBY", "ZINCRBY"];
/// What looks for something begins with one of these.
const LOOKS: &str = "SELECT WITH GET HGET EXISTS HEXISTS SISMEMBER ZSCORE HEAD EVAL FCALL";

pub(super) fn writes(said: &str) -> bool {
    // A pipeline, or statements in one message.
    said.split("; ").any(|one| begins(one, WRITES))
}

/// Whether it looks for something, or decides by what it finds.
pub(super) fn looks(said: &str) -> bool {
    begins(said, LOOKS.split(' ')) || decides(said)
}

/// `x = x + …` in any spelling, and Redis's own counters.
pub(super) fn adds(said: &str) -> bool {
    if begins(said, COUNTERS) {
        return true;
    }
    let upper = said.to_uppercase();
    let Some((_, set)) = upper.split_once(" SET ") else {
        return false;
    };
    set.split(',').any(|assignment| {
        let Some((to, from)) = assignment.split_once('=') else {
            return false;
        };
        let name = to.trim().rsplit('.').next().unwrap_or_default();
        let from = from.trim();
        let end = from.find([' ', '+', '-']).unwrap_or(from.len());
        let (first, rest) = from.split_at(end);
        let adds = rest.trim_start().starts_with(['+', '-']);
        first.rsplit('.').next() == Some(name) && adds
    })
}

/// Whether it looks for something before it writes for the first time.
pub(super) fn checks_first(said: &[String]) -> bool {
    let before = said.iter().take_while(|said| !writes(said));
    let first = said.iter().find(|said| writes(said));
    first.is_some_and(|said| decides(said)) || before.into_iter().any(|said| looks(said))
}

/// A key that decides is looked for by the write itself.
fn decides(said: &str) -> bool {
    let upper = said.to_uppercase();
    let unless = writes(said) && upper.contains("NOT EXISTS");
    unless || upper.contains("ON CONFLICT") || upper.contains(" NX") || begins(said, DECIDES)
}

fn begins<'a>(said: &str, starts: impl IntoIterator<Item = &'a str>) -> bool {
    let upper = said.to_uppercase();
    starts.into_iter().any(|start| upper.starts_with(start))
}
