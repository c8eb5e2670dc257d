//! What of Google's interfaces is served: the options of `proto/semel/interface.proto`, set on the fields and methods of
//! the other `.proto` files. Requests are checked by them, and the tests and `docs/broker.md` go by the same.

mod check;
mod well_known;
mod refusal;
mod listing;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod tests;

pub(crate) use check::{CheckedCodec, RequestCheck};
pub(crate) use listing::{ListedService, services};
pub(crate) use refusal::{NotServed, Refusals, RefusalsShown, is_not_served};

use crate::proto::POOL;
use prost_reflect::{DynamicMessage, ExtensionDescriptor, FieldDescriptor, MethodDescriptor};
use std::sync::LazyLock;

/// How a field stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Served,
    /// It is kept and shown, and changes nothing.
    Kept(String),
    /// It is taken and forgotten.
    Ignored(String),
    /// Only answers have it.
    Output,
    Refused(String),
}

/// The options that say so.
struct Options {
    refused: ExtensionDescriptor,
    kept: ExtensionDescriptor,
    ignored: ExtensionDescriptor,
    output: ExtensionDescriptor,
    refused_method: ExtensionDescriptor,
}

static OPTIONS: LazyLock<Options> = LazyLock::new(|| {
    let option = |name: &str| {
        let option = POOL.get_extension_by_name(&format!("semel.{name}"));
        option.expect("semel/interface.proto has it")
    };
    Options {
        refused: option("refused"),
        kept: option("kept"),
        ignored: option("ignored"),
        output: option("output"),
        refused_method: option("refused_method"),
    }
});

// === impl Standing ===

impl Standing {
    pub(crate) fn of(field: &FieldDescriptor) -> Self {
        let options = field.options();
        let said = |option: &ExtensionDescriptor| text(&options, option);
        if let Some(why) = said(&OPTIONS.refused) {
            return Self::Refused(why);
        }
        if let Some(why) = said(&OPTIONS.kept) {
            return Self::Kept(why);
        }
        if let Some(why) = said(&OPTIONS.ignored) {
            return Self::Ignored(why);
        }
        match options.has_extension(&OPTIONS.output) {
            true => Self::Output,
            false => Self::Served,
        }
    }

    /// Why setting it is refused, if it is.
    pub(crate) fn refusal(field: &FieldDescriptor) -> Option<NotServed> {
        match Self::of(field) {
            Self::Refused(why) => Some(NotServed::field(field, why)),
            Self::Served | Self::Kept(_) | Self::Ignored(_) | Self::Output => None,
        }
    }
}

/// Why calling a method is refused, if it is.
fn refused_method(method: &MethodDescriptor) -> Option<NotServed> {
    let why = text(&method.options(), &OPTIONS.refused_method)?;
    Some(NotServed::method(method, why))
}

fn text(options: &DynamicMessage, option: &ExtensionDescriptor) -> Option<String> {
    let value = options
        .has_extension(option)
        .then(|| options.get_extension(option))?;
    value.as_str().map(str::to_owned)
}

/// Whether nothing is known of what a field holds.
pub(crate) fn is_not_served_type(field: &FieldDescriptor) -> bool {
    let kind = field.kind();
    kind.as_message()
        .is_some_and(|it| it.package_name() == "semel")
}

/// The methods that are refused, and why.
pub(crate) fn refused_methods() -> Vec<(MethodDescriptor, NotServed)> {
    let services: Vec<_> = POOL.services().collect();
    let methods = services.iter().flat_map(|service| service.methods());
    let refused = methods.filter_map(|method| Some((method.clone(), refused_method(&method)?)));
    refused.collect()
}
