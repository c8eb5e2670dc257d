//! Counting letters: grouped by route, reason and cause. The cause stands in the kept delivery, so each letter is read
//! once and its cause remembered.

use super::PAGE_ITEMS;
use crate::label::cut;
use crate::letters::StoredDelivery;
use crate::operate::LETTERS_COUNTED_MAX;
use semel::clock::Time;
use semel::letter::{LetterHead, LetterId, Reason};
use semel::store::Letters;
use semel::{Error, Fingerprint};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many groups are told apart; what is over goes to one group of its route and reason.
const GROUPS_MAX: usize = 200;

/// The longest cause that is told apart.
const CAUSE_BYTES_MAX: usize = 300;

/// A kept delivery that is larger is not read for its cause alone.
const READ_BYTES_MAX: u64 = 1024 * 1024;

const OTHER_CAUSES: &str = "other causes";
const TOO_LARGE: &str = "not read for this list: the delivery is larger than 1 MiB";
const UNREADABLE: &str = "its delivery cannot be read";

/// What a walk through all letters found.
#[derive(Clone, Debug, Default)]
pub(crate) struct LetterCensus {
    /// When it ended, and how long it took.
    pub(crate) at: Time,
    pub(crate) took: Duration,
    /// How many there are, at least.
    pub(crate) total: usize,
    /// Whether there are more than were counted.
    pub(crate) more: bool,
    /// The largest first.
    pub(crate) groups: Vec<LetterGroup>,
}

/// Letters that were kept at one route for one reason and cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LetterGroup {
    /// Names it in addresses and forms.
    pub(crate) id: String,
    pub(crate) route: String,
    pub(crate) reason: Reason,
    pub(crate) cause: Arc<str>,
    pub(crate) count: usize,
    pub(crate) bytes: u64,
    pub(crate) oldest: Time,
    /// How many of them were redriven before.
    pub(crate) redriven: usize,
    /// Number of them that only an operator can finish.
    pub(crate) for_operator: usize,
}

/// The causes of letters that were read. Bounded by the number of letters that are counted.
#[derive(Debug, Default)]
pub(super) struct Causes(Mutex<HashMap<LetterId, Arc<str>>>);

/// Walks through all letters, up to [`LETTERS_COUNTED_MAX`].
///
/// # Errors
/// Those of the store.
pub(super) async fn walk(letters: &dyn Letters, causes: &Causes) -> Result<LetterCensus, Error> {
    let (heads, more) = all(letters).await?;
    let mut groups: BTreeMap<String, LetterGroup> = BTreeMap::new();
    let mut seen = HashMap::with_capacity(heads.len());
    for head in &heads {
        let cause = causes.of(letters, head).await?;
        seen.insert(head.id, Arc::clone(&cause));
        let mut id = group_of(head, &cause);
        let mut cause = cause;
        if groups.len() >= GROUPS_MAX && !groups.contains_key(&id) {
            cause = OTHER_CAUSES.into();
            id = group_of(head, OTHER_CAUSES);
        }
        let group = groups
            .entry(id)
            .or_insert_with_key(|id| LetterGroup::new(id.clone(), head, cause));
        group.add(head);
    }
    causes.keep(seen);
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by(|a, b| b.count.cmp(&a.count).then(a.oldest.cmp(&b.oldest)));
    Ok(LetterCensus {
        total: heads.len(),
        more,
        groups,
        ..LetterCensus::default()
    })
}

/// The letters of the groups that are meant.
///
/// # Errors
/// Those of the store.
pub(super) async fn of_groups(
    letters: &dyn Letters,
    causes: &Causes,
    shown: &LetterCensus,
    is_meant: impl Fn(&str) -> bool,
) -> Result<Vec<LetterHead>, Error> {
    let (heads, _) = all(letters).await?;
    let own: HashSet<_> = shown.groups.iter().map(|it| it.id.as_str()).collect();
    let mut found = Vec::new();
    for head in heads {
        let cause = causes.of(letters, &head).await?;
        let group = group_of(&head, &cause);
        // What has no group of its own is in the one of other causes, and nowhere else.
        let is_other = !own.contains(group.as_str()) && own.len() >= GROUPS_MAX;
        if is_meant(&group) || (is_other && is_meant(&group_of(&head, OTHER_CAUSES))) {
            found.push(head);
        }
    }
    Ok(found)
}

/// The name of the group that a letter belongs to.
fn group_of(head: &LetterHead, cause: &str) -> String {
    let text = format!("{}\0{}\0{cause}", head.route, head.reason.word());
    let digest = Fingerprint::of(text.as_bytes()).to_string();
    digest.get(..16).unwrap_or_default().to_owned()
}

async fn all(letters: &dyn Letters) -> Result<(Vec<LetterHead>, bool), Error> {
    let (mut heads, mut after) = (Vec::new(), None);
    loop {
        let page = Letters::list(letters, after.as_ref(), PAGE_ITEMS).await?;
        heads.extend(page.items);
        match page.next {
            Some(_) if heads.len() >= LETTERS_COUNTED_MAX => return Ok((heads, true)),
            Some(next) => after = Some(next),
            None => return Ok((heads, false)),
        }
        tokio::task::yield_now().await;
    }
}

// === impl Causes ===

impl Causes {
    async fn of(&self, letters: &dyn Letters, head: &LetterHead) -> Result<Arc<str>, Error> {
        if let Some(cause) = self.lock().get(&head.id) {
            return Ok(Arc::clone(cause));
        }
        if head.bytes > READ_BYTES_MAX {
            return Ok(TOO_LARGE.into());
        }
        let cause: Arc<str> = match letters.get(&head.id).await {
            Ok(Some(letter)) => match StoredDelivery::decode(&letter.delivery) {
                Ok(kept) => cut(&kept.head.why, CAUSE_BYTES_MAX).into(),
                Err(_) => UNREADABLE.into(),
            },
            Ok(None) => "closed meanwhile".into(),
            Err(error @ (Error::Unavailable(_) | Error::Denied(_))) => return Err(error),
            Err(Error::Corrupt(_) | Error::Invalid(_) | Error::Bug(_)) => UNREADABLE.into(),
        };
        self.lock().insert(head.id, Arc::clone(&cause));
        Ok(cause)
    }

    /// Forgets those that are gone.
    fn keep(&self, seen: HashMap<LetterId, Arc<str>>) {
        *self.lock() = seen;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<LetterId, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl LetterCensus ===

impl LetterCensus {
    /// Number of letters that only an operator can finish.
    pub(crate) fn for_operator(&self) -> u64 {
        let counts = self.groups.iter().map(|group| group.for_operator as u64);
        counts.sum()
    }
}

// === impl LetterGroup ===

impl LetterGroup {
    fn new(id: String, head: &LetterHead, cause: Arc<str>) -> Self {
        Self {
            id,
            route: head.route.clone(),
            reason: head.reason,
            cause,
            count: 0,
            bytes: 0,
            oldest: head.created_at,
            redriven: 0,
            for_operator: 0,
        }
    }

    fn add(&mut self, head: &LetterHead) {
        self.count += 1;
        self.bytes += head.bytes;
        self.oldest = self.oldest.min(head.created_at);
        self.redriven += usize::from(head.redriven);
        self.for_operator += usize::from(head.is_for_operator());
    }
}
