//! Named points on the way of a group, where a proof may end the process or let what comes next fail. Without the feature `failpoints` nobody can
//! listen, and passing one costs nothing.

use std::io;

/// A point on the way of a group, in the order they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// The group is taken, and nothing of it is written.
    BeforeWrite,
    /// It is written, and not durable yet.
    Written,
    /// It is durable, and nobody has heard so.
    Durable,
    /// A file is full or old, and still has its first name.
    BeforeRename,
}

// === impl Point ===

impl Point {
    /// Every point.
    pub const ALL: [Self; 4] = [
        Self::BeforeWrite,
        Self::Written,
        Self::Durable,
        Self::BeforeRename,
    ];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::BeforeWrite => "land_before_write",
            Self::Written => "land_written",
            Self::Durable => "land_durable",
            Self::BeforeRename => "land_before_rename",
        }
    }
}

/// Tells whoever tests this process.
#[cfg(feature = "failpoints")]
pub fn pass(point: Point) {
    semel_rig::failpoint::pass(point.word());
}

/// Nobody can listen.
#[cfg(not(feature = "failpoints"))]
pub const fn pass(_point: Point) {}

/// Instead of what comes after a point.
///
/// # Errors
/// When whoever tests this process says so.
#[cfg(feature = "failpoints")]
pub fn judge(point: Point) -> io::Result<()> {
    semel_rig::failpoint::judge(point.word())
}

/// Nobody can say so.
///
/// # Errors
/// None.
#[cfg(not(feature = "failpoints"))]
pub const fn judge(_point: Point) -> io::Result<()> {
    Ok(())
}
