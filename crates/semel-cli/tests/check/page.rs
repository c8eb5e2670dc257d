//! Who may look, and what is shown: what cannot be meant is refused.

use super::{Says, check, check_with, in_route, on_top};

#[test]
fn tokens_and_names_of_the_page_are_checked() {
    for (lines, says) in [
        (
            "admin_view_token = \"look\"",
            "needs `admin_token`: without it everybody may act",
        ),
        (
            "admin_token = \"a\"\nadmin_view_token = \"\"",
            "`admin_view_token` is empty",
        ),
        (
            "admin_token = \"a\"\nadmin_view_token = \"a\"",
            "are the same: whoever may look could act",
        ),
        (
            "admin_hosts = [\"https://ops.example.com\"]",
            "without https:// and port",
        ),
        ("admin_hosts = [\"ops:81\"]", "without https:// and port"),
        ("name = \"\"", "`name` must have 1 to"),
        ("index = 1", "index"),
    ] {
        check(&on_top(lines)).refused().has(says);
    }
    let both = "admin_token = \"a\"\nadmin_view_token = \"b\"\nadmin_hosts = [\"ops.example.com\"]";
    check(&on_top(both)).good();
}

#[test]
fn private_routes_need_a_key_and_keep_no_payload() {
    check(&in_route("private = true"))
        .refused()
        .has("`private` needs a `label_key` above the first [[route]]");
    let key = "label_key = \"env:LABEL_KEY\"\n";
    let private = |line: &str| format!("{key}{}", in_route(line));
    let with = |toml: &str| {
        check_with(
            toml,
            "",
            &[("LABEL_KEY", "0123456789abcdef0123456789abcdef")],
        )
    };
    with(&private("private = true")).good();
    check_with(&private("private = true"), "", &[("LABEL_KEY", "hunter2")])
        .refused()
        .has("`label_key` has fewer than 16 bytes");
    with(&private("private = true\nkeep_payload = true"))
        .refused()
        .has("shows in clear what `private` hides");
    check(&private("private = true"))
        .refused()
        .has("the variable LABEL_KEY is not set");
    check(&on_top("label_key = \"s3cret\""))
        .refused()
        .has("a secret does not stand in the file itself");
}
