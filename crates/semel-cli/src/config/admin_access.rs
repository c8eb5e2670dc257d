//! Who may ask at the admin address, and by which name.

use super::section::Section;
use super::tree::Value;
use super::values::{Read, Wrong, text};
use semel_gate::settings::{Secret, Settings};

/// A name as browsers send it, without what stands around it in an address.
pub(super) fn host_name(value: &Value) -> Read<String> {
    let name = text(value)?;
    let is_name = name
        .parse::<http::uri::Authority>()
        .is_ok_and(|it| it.host() == name);
    let says =
        || format!("{name:?} is not a name: write \"ops.example.com\", without https:// and port");
    Wrong::unless(value, is_name.then(|| name.clone()), says)
}

/// One token to act, and another one to look.
pub(super) fn view_token(section: &mut Section<'_>, settings: &Settings) {
    let name = "admin_view_token";
    let Some(Secret(view)) = &settings.admin_view_token else {
        return;
    };
    let act = settings.admin_token.as_ref().map(|Secret(act)| act);
    let empty = "`admin_view_token` is empty: write a long random text";
    section.refuse_if(view.is_empty(), name, empty);
    let alone = "`admin_view_token` needs `admin_token`: without it everybody may act";
    section.refuse_if(act.is_none(), name, alone);
    let same = "`admin_view_token` and `admin_token` are the same: whoever may look could act";
    section.refuse_if(act == Some(view), name, same);
}
