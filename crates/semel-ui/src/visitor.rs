//! Who looks at a page.

use crate::Base;
use maud::{Markup, html};

/// What somebody may do. Whoever may act may view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look at everything, change nothing.
    View,
    /// Change things, too.
    Act,
}

/// Who looks, and from where: a part of every request that was let in (an extension).
#[derive(Clone, Debug)]
pub struct Visitor {
    /// What they may do.
    pub role: Role,
    /// What their forms must send back; nobody else can know it.
    pub csrf: String,
    /// Whether they signed in, and so can sign out.
    pub signed_in: bool,
    /// The way back to the page's root.
    pub base: Base,
    /// For the audit: the name they gave, if any, the role and the address that it comes from:
    /// `Ada (act from 127.0.0.1)`.
    pub who: String,
}

// === impl Role ===

impl Role {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::View, Self::Act];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Act => "act",
        }
    }
}

// === impl Visitor ===

impl Visitor {
    /// The hidden field that every form which acts must have.
    #[must_use]
    pub fn csrf_field(&self) -> Markup {
        html! { input type="hidden" name="csrf" value=(self.csrf); }
    }

    /// Whether they may change things.
    #[must_use]
    pub fn may_act(&self) -> bool {
        self.role == Role::Act
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Somebody who may act, at the root.
    pub(crate) fn anybody() -> Visitor {
        Visitor {
            role: Role::Act,
            csrf: "c5rf".into(),
            signed_in: true,
            base: Base::default(),
            who: "act from 127.0.0.1".into(),
        }
    }
}
