//! Characters that nobody sees: they give no reason for an act, and on a terminal they can turn a line around.

use std::ops::RangeInclusive;

/// Unicode's format characters (category Cf): marks of direction, joiners, tags and the like.
const FORMATS: [RangeInclusive<char>; 21] = [
    '\u{ad}'..='\u{ad}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{890}'..='\u{891}',
    '\u{8e2}'..='\u{8e2}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{2064}',
    '\u{2066}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff9}'..='\u{fffb}',
    '\u{110bd}'..='\u{110bd}',
    '\u{110cd}'..='\u{110cd}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0001}'..='\u{e0001}',
    '\u{e0020}'..='\u{e007f}',
];

/// Whether a character changes how text looks and does not look like anything itself: control and format characters,
/// and Unicode's own line and paragraph separators. Spaces are not among them.
#[must_use]
pub fn is_invisible(character: char) -> bool {
    let is_separator = matches!(character, '\u{2028}' | '\u{2029}');
    let is_format = || FORMATS.iter().any(|range| range.contains(&character));
    character.is_control() || is_separator || is_format()
}

/// Whether somebody who looks at this text sees anything.
#[must_use]
pub fn has_visible(text: &str) -> bool {
    text.chars()
        .any(|character| !character.is_whitespace() && !is_invisible(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_nobody_sees_are_told_from_text() {
        for hidden in [
            '\u{202e}',
            '\u{200b}',
            '\u{feff}',
            '\u{7}',
            '\u{9b}',
            '\u{2028}',
            '\u{e0041}',
        ] {
            assert!(is_invisible(hidden), "{hidden:?}");
        }
        for shown in ['a', ' ', 'ä', '\u{301}', '\u{a0}', '漢', '\u{fe0f}', '·'] {
            assert!(!is_invisible(shown), "{shown:?}");
        }
        assert!(has_visible(" .\u{200b}") && !has_visible(" \u{200b}\u{a0}\t") && !has_visible(""));
    }
}
