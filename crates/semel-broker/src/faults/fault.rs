//! One fault as it is written: `KIND=RATE[:ARGUMENT][@RESOURCE]`.

use crate::duration;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Delivered once more after the first delivery succeeded.
    Duplicate,
    /// Delivered twice at the same time.
    DuplicateAtOnce,
    /// Delivered later, by a span.
    Delay,
    /// Overtaken by the next one.
    Reorder,
    /// The handler's answer, or the acknowledgement, is ignored.
    LoseAnswer,
    /// The connection breaks after so many bytes of the request's body.
    Cut,
    /// Taken for late after a span, and delivered again while the first still runs.
    Overlap,
}

/// A fault, how often it strikes, and where.
///
/// ```
/// use semel_broker::Fault;
///
/// let fault: Fault = "delay=0.1:500ms@orders".parse().unwrap();
/// assert_eq!(fault.to_string(), "delay=0.1:500ms@orders");
/// assert!("duplicate=2".parse::<Fault>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    kind: Kind,
    rate: f64,
    argument: Argument,
    /// A full name, or the last part of one; nothing means everywhere.
    resource: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Argument {
    None,
    Span(Duration),
    Bytes(usize),
}

/// A fault that was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a fault: {why}. Write KIND=RATE[:ARGUMENT][@RESOURCE], as in duplicate=0.05 or delay=0.1:500ms@orders"
)]
pub struct BadFault {
    text: String,
    why: String,
}

const SPAN_DEFAULT: Duration = Duration::from_secs(1);

// === impl Kind ===

impl Kind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Duplicate,
        Self::DuplicateAtOnce,
        Self::Delay,
        Self::Reorder,
        Self::LoseAnswer,
        Self::Cut,
        Self::Overlap,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::DuplicateAtOnce => "duplicate-at-once",
            Self::Delay => "delay",
            Self::Reorder => "reorder",
            Self::LoseAnswer => "lose-answer",
            Self::Cut => "cut",
            Self::Overlap => "overlap",
        }
    }

    fn argument(self, text: Option<&str>) -> Result<Argument, String> {
        let argument = match self {
            Self::Delay | Self::Overlap => {
                let span = text.map_or(Some(SPAN_DEFAULT), duration::parse_whole);
                let span = span.ok_or("its argument is a duration like 500ms or 2s")?;
                Argument::Span(span)
            }
            Self::Cut => {
                let bytes = text.map_or(Ok(0), str::parse);
                Argument::Bytes(bytes.map_err(|_| "its argument is a number of bytes")?)
            }
            Self::Duplicate | Self::DuplicateAtOnce | Self::Reorder | Self::LoseAnswer => {
                match text {
                    Some(_) => return Err(format!("{} takes no argument", self.name())),
                    None => Argument::None,
                }
            }
        };
        Ok(argument)
    }
}

// === impl Fault ===

impl Fault {
    /// What goes wrong.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How often, from 0 to 1.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    pub(crate) fn span(&self) -> Duration {
        match self.argument {
            Argument::Span(span) => span,
            Argument::None | Argument::Bytes(_) => SPAN_DEFAULT,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self.argument {
            Argument::Bytes(bytes) => bytes,
            Argument::None | Argument::Span(_) => 0,
        }
    }

    pub(crate) fn is_for_all(&self) -> bool {
        self.resource.is_none()
    }

    /// Whether it is meant for this resource, by its full name or the last part of it.
    pub(crate) fn names(&self, full_name: &str) -> bool {
        self.resource.as_deref().is_some_and(|resource| {
            resource == full_name || Some(resource) == full_name.rsplit('/').next()
        })
    }
}

impl FromStr for Fault {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, BadFault> {
        parse(text).map_err(|why| BadFault {
            text: text.into(),
            why,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind.name(), self.rate)?;
        match self.argument {
            Argument::None => {}
            Argument::Span(span) => write!(f, ":{}ms", span.as_millis())?,
            Argument::Bytes(bytes) => write!(f, ":{bytes}")?,
        }
        match &self.resource {
            Some(resource) => write!(f, "@{resource}"),
            None => Ok(()),
        }
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let (fault, resource) = match text.split_once('@') {
        Some((_, "")) => return Err("no resource is named after the @".into()),
        Some((fault, resource)) => (fault, Some(resource.to_owned())),
        None => (text, None),
    };
    let (name, rest) = fault.split_once('=').ok_or("it has no rate")?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name).join(", ");
        format!("there is no kind {name:?}, but {names}")
    })?;
    let (rate, argument) = match rest.split_once(':') {
        Some((rate, argument)) => (rate, Some(argument)),
        None => (rest, None),
    };
    let rate = rate.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
    Ok(Fault {
        kind,
        rate: rate.ok_or("its rate is a number from 0 to 1")?,
        argument: kind.argument(argument)?,
        resource,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "duplicate=0.05",
            "duplicate-at-once=1",
            "delay=0.5:1000ms@orders",
            "cut=1:512@projects/p/topics/t",
        ] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("duplicate", "no rate"),
            ("duplicate=x", "from 0 to 1"),
            ("duplicate=1.5", "from 0 to 1"),
            ("duplicate=NaN", "from 0 to 1"),
            ("explode=1", "no kind \"explode\""),
            ("delay=1:soon", "a duration"),
            ("reorder=1:2s", "takes no argument"),
            ("cut=1:2s", "number of bytes"),
            ("duplicate=1@", "no resource"),
        ] {
            let error = text.parse::<Fault>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
