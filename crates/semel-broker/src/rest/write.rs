//! Messages to JSON: fields in the order of their numbers, and only those that are set.

use prost_reflect::{DynamicMessage, SerializeOptions};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use std::io::{Result, Write};

/// How JSON is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// With line breaks, and two spaces per level.
    pub(crate) pretty: bool,
    pub(crate) enums_as_numbers: bool,
}

/// As Google writes numbers: a whole one has no fraction, whatever its type.
#[derive(Debug)]
struct WholeNumbers<F>(F);

/// The JSON of a message.
pub(crate) fn json(message: &DynamicMessage, style: Style) -> serde_json::Result<Vec<u8>> {
    let options = SerializeOptions::new().use_enum_numbers(style.enums_as_numbers);
    let mut out = Vec::new();
    if style.pretty {
        let format = WholeNumbers(PrettyFormatter::new());
        let mut serializer = Serializer::with_formatter(&mut out, format);
        message.serialize_with_options(&mut serializer, &options)?;
        out.push(b'\n');
    } else {
        let format = WholeNumbers(CompactFormatter);
        let mut serializer = Serializer::with_formatter(&mut out, format);
        message.serialize_with_options(&mut serializer, &options)?;
    }
    Ok(out)
}

// === impl Style ===

impl Default for Style {
    fn default() -> Self {
        Self {
            pretty: true,
            enums_as_numbers: false,
        }
    }
}

// === impl WholeNumbers ===

impl<F: Formatter> Formatter for WholeNumbers<F> {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> Result<()> {
        write!(writer, "{value}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> Result<()> {
        self.0.end_object_value(writer)
    }
}
