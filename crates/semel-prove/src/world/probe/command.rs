//! A program that prints lines of an id and a count.

use super::ProbeKind;
use crate::world::World;
use crate::world::connections::Rows;

pub(super) const COMMAND: ProbeKind = ProbeKind {
    name: "command",
    given: |effect| effect.command.as_ref(),
    on: None,
    check: |_, _| Ok(()),
    rows: |world, asked| Box::pin(printed(world, asked.text)),
};

async fn printed(world: &World<'_>, line: &str) -> Result<Rows, String> {
    let printed = world.output(line, &world.variables).await?;
    let lines = printed.lines().map(str::split_whitespace);
    let rows = lines.map(|words| words.map(str::to_owned).collect());
    Ok(rows.filter(|row: &Vec<String>| !row.is_empty()).collect())
}
