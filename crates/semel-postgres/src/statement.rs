//! The statements, by name. Their text is in `sql/`.

use crate::settings::PostgresSettings;
use semel::protocol::Claim;
use std::sync::LazyLock;
use tokio_postgres::types::Type;

/// How long a claim waits for another one in flight, behind a pooler; a session has it as a setting.
const CLAIM_WAIT: &str = "50ms";

/// The same for claims that are made one by one because their group had to wait too long.
const CLAIM_WAIT_BRIEF: &str = "10ms";

/// Where a claim's text takes settings for its own transaction.
const LOCAL_SETTINGS: &str = "/* local settings */";

/// Where a claim's text takes the part that keeps its label; one without this place is an insert and nothing more.
const LABEL_PART: &str = "/* label */";

/// Where a statement that supersedes an attempt takes how the locked record stands, and the part that keeps it.
const WAS_PART: &str = "/* was */";
const HISTORY_PART: &str = "/* history */";

/// A statement and the types of its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) types: &'static [Type],
}

/// The statements that claim, with what holds for their own transaction; those that keep labels are apart, so that claims
/// without one cost what they did.
#[derive(Clone, Debug)]
pub(crate) struct ClaimStatements {
    plain: ClaimForms,
    labelled: ClaimForms,
}

/// The forms of a claim. All take the same parameters, the label last, and those without labels do not take the last.
#[derive(Clone, Debug)]
pub(crate) struct ClaimForms {
    pub(crate) fresh_one: Statement,
    pub(crate) fresh_many: Statement,
    pub(crate) one: Statement,
    pub(crate) one_brief: Statement,
    pub(crate) many: Statement,
}

macro_rules! statement {
    ($($name:ident = $file:literal ($($type:ident),*);)*) => {$(
        pub(crate) static $name: LazyLock<Statement> = LazyLock::new(|| Statement {
            text: bare($file, include_str!(concat!("sql/", $file, ".sql"))),
            types: &[$(Type::$type),*],
        });
    )*};
}

statement! {
    CLAIM_FRESH = "claim_fresh" (BYTEA, BYTEA, UUID, INTERVAL, INTERVAL, INTERVAL);
    CLAIM_FRESH_BATCH = "claim_fresh_batch" (BYTEA_ARRAY, BYTEA_ARRAY, UUID_ARRAY, INTERVAL_ARRAY, INTERVAL_ARRAY, INTERVAL_ARRAY);
    CLAIM = "claim" (BYTEA, BYTEA, UUID, INTERVAL, INTERVAL, INTERVAL);
    CLAIM_BATCH = "claim_batch" (BYTEA_ARRAY, BYTEA_ARRAY, UUID_ARRAY, INTERVAL_ARRAY, INTERVAL_ARRAY, INTERVAL_ARRAY);
    LABEL = "label" (BYTEA, BYTEA, UUID, INTERVAL, INTERVAL, INTERVAL, BYTEA);
    LABEL_BATCH = "label_batch" (BYTEA_ARRAY, BYTEA_ARRAY, UUID_ARRAY, INTERVAL_ARRAY, INTERVAL_ARRAY, INTERVAL_ARRAY, BYTEA_ARRAY);
    TAKEOVER = "takeover" (BYTEA_ARRAY, BYTEA_ARRAY, UUID_ARRAY, INTERVAL_ARRAY, INTERVAL_ARRAY, INTERVAL_ARRAY, BYTEA_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, INT8_ARRAY, BYTEA_ARRAY);
    RENEW_BATCH = "renew_batch" (BYTEA_ARRAY, INT8_ARRAY, UUID_ARRAY, INTERVAL_ARRAY, INTERVAL_ARRAY);
    COMPLETE = "complete" (BYTEA, INT8, UUID, BYTEA, INTERVAL);
    COMPLETE_BATCH = "complete_batch" (BYTEA_ARRAY, INT8_ARRAY, UUID_ARRAY, BYTEA_ARRAY, INTERVAL_ARRAY);
    COMPLETE_CAREFUL = "complete_careful" (BYTEA_ARRAY, INT8_ARRAY, UUID_ARRAY, BYTEA_ARRAY, INTERVAL_ARRAY);
    COMPLETE_IN = "complete_in" (BYTEA, INT8, UUID, BYTEA);
    FAIL_BATCH = "fail_batch" (BYTEA_ARRAY, INT8_ARRAY, UUID_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT8_ARRAY, INT8_ARRAY, INTERVAL_ARRAY, INTERVAL_ARRAY, BYTEA_ARRAY);
    RELEASE = "release" (BYTEA, INT8, UUID, INT8);
    LOOK = "look" (BYTEA);
    STEP_BEGIN = "step_begin" (BYTEA, INT8, UUID, TEXT);
    STEP_RESTART = "step_restart" (BYTEA, INT8, UUID, TEXT);
    STEP_COMPLETE = "step_complete" (BYTEA, INT8, UUID, TEXT, BYTEA);
    RESOLVE = "resolve" (BYTEA, INT2, BYTEA, INT8, BYTEA);
    REDRIVE = "redrive" (BYTEA, BYTEA);
    RETAIN = "retain" (BYTEA, INTERVAL);
    RELEASE_BY_OPERATOR = "release_by_operator" (BYTEA, BYTEA);
    FORGET = "forget" (BYTEA);
    LIST = "list" (BYTEA, INT8, INT2, INT8);
    SWEEP = "sweep" (TID, TID, INTERVAL);
    SWEEP_STEPS = "sweep_steps" (TID, TID);
    SWEEP_RENEWALS = "sweep_renewals" (TID, TID);
    SWEEP_LABELS = "sweep_labels" (TID, TID);
    SWEEP_HISTORY = "sweep_history" (TID, TID);
    SWEEP_INDEX = "sweep_index" (TID, TID);
    STEPS = "steps" (BYTEA, INT8, INT4);
    INDEX = "index" (BYTEA_ARRAY, BYTEA, INTERVAL);
    FIND = "find" (BYTEA, INT8);
    READY = "ready" ();
    ROOM = "room" ();
    LETTER_PUT = "letter_put" (BYTEA, BYTEA, TEXT, INT2, INT8, INT8, BOOL, BOOL, BYTEA);
    LETTER_LOOK = "letter_look" (BYTEA);
    LETTER_LIST = "letter_list" (TIMESTAMPTZ, BYTEA, INT8);
    LETTER_GET = "letter_get" (BYTEA);
    LETTER_MARK = "letter_mark" (BYTEA, INT2);
    LETTER_SWEEP = "letter_sweep" (INT8);
}

/// `look.sql`, the label as its fifteenth column, and the columns of its history, each an array or null. Whoever only
/// completes needs no right to read those.
pub(crate) static SHOW: LazyLock<Statement> = LazyLock::new(|| Statement {
    text: format!(
        "SELECT r.*, l.label, h.* FROM ({}) r LEFT JOIN semel.label l ON l.key = $1::bytea AND l.born = r.born \
         LEFT JOIN LATERAL ({}) h ON true",
        LOOK.text,
        bare("show_history", include_str!("sql/show_history.sql"))
    ),
    types: LOOK.types,
});

// === impl ClaimStatements ===

impl ClaimStatements {
    /// Claims that are durable when they are answered.
    pub(crate) fn durable(settings: &PostgresSettings) -> Self {
        Self::with(settings, None)
    }

    /// Claims that may be answered before they are on disk.
    pub(crate) fn relaxed(settings: &PostgresSettings) -> Self {
        Self::with(settings, Some(("synchronous_commit", "off")))
    }

    fn with(settings: &PostgresSettings, commit: Option<(&str, &str)>) -> Self {
        let wait = settings.pooler.then_some(("lock_timeout", CLAIM_WAIT));
        let ordinary: Vec<_> = wait.into_iter().chain(commit).collect();
        let brief: Vec<_> = [("lock_timeout", CLAIM_WAIT_BRIEF)]
            .into_iter()
            .chain(commit)
            .collect();
        let plain = ClaimForms {
            fresh_one: CLAIM_FRESH.with_local(&ordinary),
            fresh_many: CLAIM_FRESH_BATCH.with_local(&ordinary),
            one: CLAIM.with_local(&ordinary),
            one_brief: CLAIM.with_local(&brief),
            many: CLAIM_BATCH.with_local(&ordinary),
        };
        let labelled = ClaimForms {
            fresh_one: plain.fresh_one.with_label(&LABEL),
            fresh_many: plain.fresh_many.with_label(&LABEL_BATCH),
            one: plain.one.with_label(&LABEL),
            one_brief: plain.one_brief.with_label(&LABEL),
            many: plain.many.with_label(&LABEL_BATCH),
        };
        Self { plain, labelled }
    }

    /// The statements for these claims.
    pub(crate) fn of(&self, claims: &[&Claim]) -> &ClaimForms {
        if claims.iter().all(|claim| claim.label.is_empty()) {
            &self.plain
        } else {
            &self.labelled
        }
    }
}

// === impl Statement ===

impl Statement {
    /// Those of a claim's parameters that it takes.
    pub(crate) fn taken<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        all.get(..self.types.len()).unwrap_or(all)
    }

    /// The statement with settings that hold for its own transaction only, also behind a pooler.
    fn with_local(&self, settings: &[(&str, &str)]) -> Self {
        if settings.is_empty() {
            return self.clone();
        }
        let set = |(name, value): &(&str, &str)| format!("set_config('{name}', '{value}', true)");
        let all: Vec<_> = settings.iter().map(set).collect();
        // OFFSET 0 keeps it a row of its own, which is made once and before anything is written.
        let all = format!("(SELECT {} OFFSET 0) AS local,", all.join(", "));
        Self {
            text: self.text.replace(LOCAL_SETTINGS, &all),
            types: self.types,
        }
    }

    /// The statement, and with each grant that begins an incarnation its label.
    fn with_label(&self, label: &Self) -> Self {
        let label_part = format!(", label AS ({})", label.text);
        let text = if self.text.contains(LABEL_PART) {
            self.text.replace(LABEL_PART, &label_part)
        } else {
            format!(
                "WITH win AS ({}){label_part} SELECT key, fence FROM win",
                self.text
            )
        };
        Self {
            text,
            types: label.types,
        }
    }
}

/// A file's text as it is sent: its name for whoever watches the server, and no comments, because
/// the whole text is hashed to find the prepared statement.
fn bare(name: &str, file: &'static str) -> String {
    let code = |line: &'static str| line.split("--").next().unwrap_or_default();
    let mut text = format!("/* semel {name} */");
    for word in file.lines().flat_map(|line| code(line).split_whitespace()) {
        text.push(' ');
        text.push_str(word);
    }
    if text.contains(HISTORY_PART) {
        let was = bare("was", include_str!("sql/was.sql"));
        let history = bare("history", include_str!("sql/history.sql"));
        text = text.replace(WAS_PART, &was).replace(HISTORY_PART, &history);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel::{Fingerprint, Key};

    #[test]
    fn statements_are_sent_without_comments() {
        assert_eq!(
            LETTER_LOOK.text,
            "/* semel letter_look */ SELECT expires_at IS NULL AS open FROM semel.letter WHERE id = $1::bytea"
        );
        assert!(CLAIM.text.contains(LOCAL_SETTINGS));
        assert!(!CLAIM.text.contains("--"));
    }

    #[test]
    fn claims_take_settings_of_their_own() {
        let mut settings = PostgresSettings::new("postgres://h/d");
        let direct = ClaimStatements::durable(&settings);
        let direct = direct.of(&[]);
        assert!(!direct.one.text.contains("set_config"));
        assert!(direct.one_brief.text.contains("'lock_timeout', '10ms'"));

        settings.pooler = true;
        let relaxed = ClaimStatements::relaxed(&settings);
        for forms in [&relaxed.plain, &relaxed.labelled] {
            for statement in [&forms.one, &forms.many, &forms.fresh_one, &forms.fresh_many] {
                assert!(statement.text.contains("'lock_timeout', '50ms'"));
                assert!(statement.text.contains("'synchronous_commit', 'off'"));
            }
        }
    }

    #[test]
    fn only_claims_with_a_label_are_sent_one() {
        let claim = Claim::new(Key::from_bytes([1; 32]), Fingerprint::off());
        let labelled = Claim {
            label: "order 7".into(),
            ..claim.clone()
        };
        let statements = ClaimStatements::durable(&PostgresSettings::new("postgres://h/d"));
        for (claims, keep) in [(vec![&claim], false), (vec![&claim, &labelled], true)] {
            let forms = statements.of(&claims);
            for statement in [
                &forms.one,
                &forms.one_brief,
                &forms.many,
                &forms.fresh_one,
                &forms.fresh_many,
            ] {
                assert_eq!(statement.text.contains("INTO semel.label"), keep);
                assert_eq!(statement.text.contains("$7"), keep);
                assert_eq!(statement.types.len(), if keep { 7 } else { 6 });
            }
        }
    }
}
