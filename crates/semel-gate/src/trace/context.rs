//! Trace contexts, in the form of the W3C: `traceparent` and `tracestate`.

use std::fmt;

/// The bit of the flags that says that spans of this trace are recorded.
const SAMPLED: u8 = 1;

/// The place of a span in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
    pub(crate) flags: u8,
    /// What others wrote beside it.
    pub(crate) state: Option<String>,
}

// === impl TraceContext ===

impl TraceContext {
    /// Reads `00-` trace id `-` span id `-` flags, in lower-case hex digits. What has not this form may be anything, and
    /// neither it nor the state beside it is handed on.
    pub(crate) fn read(traceparent: &str, state: Option<&str>) -> Option<Self> {
        let parts: Vec<_> = traceparent.split('-').collect();
        let [version, trace_id, span_id, flags] = parts.as_slice() else {
            return None;
        };
        if *version == "ff" || hex(version, 2).is_none() {
            return None;
        }
        Some(Self {
            trace_id: hex(trace_id, 32).filter(|id| *id != 0)?,
            span_id: u64::try_from(hex(span_id, 16)?)
                .ok()
                .filter(|id| *id != 0)?,
            flags: u8::try_from(hex(flags, 2)?).ok()?,
            state: state.filter(|text| is_header_text(text)).map(str::to_owned),
        })
    }

    /// The first span of a new trace.
    #[allow(clippy::disallowed_methods, reason = "a new trace has a random id")]
    pub(crate) fn root() -> Self {
        Self {
            trace_id: rand::random::<u128>().max(1),
            span_id: random_span(),
            flags: SAMPLED,
            state: None,
        }
    }

    /// Another span of the same trace.
    pub(crate) fn child(&self) -> Self {
        Self {
            span_id: random_span(),
            ..self.clone()
        }
    }

    pub(crate) const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The same, recorded or not.
    pub(crate) const fn sampled(mut self, is_sampled: bool) -> Self {
        self.flags = if is_sampled {
            self.flags | SAMPLED
        } else {
            self.flags & !SAMPLED
        };
        self
    }
}

/// The header `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trace_id,
            span_id,
            flags,
            state: _,
        } = self;
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
    }
}

#[allow(clippy::disallowed_methods, reason = "a new span has a random id")]
fn random_span() -> u64 {
    rand::random::<u64>().max(1)
}

fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let fits = text.len() == digits && text.bytes().all(is_digit);
    fits.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// A sender's text that goes on as a header's value; the specification asks for at least 512 characters.
fn is_header_text(text: &str) -> bool {
    const STATE_BYTES_MAX: usize = 512;
    let visible = |byte| matches!(byte, b' '..=b'~');
    !text.is_empty() && text.len() <= STATE_BYTES_MAX && text.bytes().all(visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_read_is_written_alike() {
        for text in [TRACE, &TRACE.replace("-01", "-00")] {
            assert_eq!(TraceContext::read(text, None).unwrap().to_string(), text);
        }
        let state = TraceContext::read(TRACE, Some("vendor=1")).unwrap().state;
        assert_eq!(state.as_deref(), Some("vendor=1"));
        assert!(TraceContext::read(TRACE, None).unwrap().is_sampled());
    }

    #[test]
    fn what_is_no_trace_context_is_not_read() {
        let zero_trace = TRACE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32));
        let zero_span = TRACE.replace("b7ad6b7169203331", &"0".repeat(16));
        for bad in [
            "",
            "00-abc",
            "00-\u{e9}",
            &TRACE.to_uppercase(),
            &TRACE.replace('a', "\n"),
            &TRACE.replacen("00", "ff", 1),
            &zero_trace,
            &zero_span,
        ] {
            assert_eq!(TraceContext::read(bad, None), None, "{bad:?}");
        }
        for bad in ["", "a\nb", "\u{e9}", &"x".repeat(600)] {
            assert_eq!(TraceContext::read(TRACE, Some(bad)).unwrap().state, None);
        }
    }

    #[test]
    fn a_child_is_another_span_of_the_same_trace() {
        let parent = TraceContext::read(TRACE, Some("a=1")).unwrap();
        let child = parent.child().sampled(false);
        assert_eq!(
            (child.trace_id, &child.state),
            (parent.trace_id, &parent.state)
        );
        assert_ne!(child.span_id, parent.span_id);
        assert!(!child.is_sampled() && parent.is_sampled());
        assert_ne!(TraceContext::root().trace_id, TraceContext::root().trace_id);
    }
}
