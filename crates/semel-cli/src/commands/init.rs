//! `semel init`: a first configuration to edit.

use crate::args::InitArgs;
use crate::config;
use crate::out::to_stdout;
use anyhow::Context;
use std::io::Write;

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<()> {
    if args.docs {
        return to_stdout(&config::page());
    }
    let path = args.path.display();
    let mut file = std::fs::File::create_new(&args.path)
        .with_context(|| format!("{path} was not written; what was there is as it was"))?;
    file.write_all(config::commented_file().as_bytes())
        .with_context(|| format!("{path} is incomplete: remove it before you try again"))?;
    to_stdout(&format!(
        "{path} written: edit it, then run `semel check`\n"
    ))
}
