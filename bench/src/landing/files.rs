//! Files: a sync per group of rows against a sync per row.

use semel_landing::{FileSettings, FileSink};

use super::{GROUP_ROWS, Groups};
use crate::disk;
use crate::report::{Group, Row, Target};
use crate::rounds::{Contender, Pace, rounds};

pub(crate) async fn measure(pace: Pace) -> anyhow::Result<Group> {
    let (one, other) = (disk::directory()?, disk::directory()?);
    let open = |dir: &tempfile::TempDir| FileSink::open(FileSettings::new(dir.path()));
    let contenders: [(&'static str, Box<dyn Contender>); 2] = [
        (
            "a sync per group",
            Box::new(Groups::of(open(&one)?, GROUP_ROWS)),
        ),
        ("a sync per row", Box::new(Groups::of(open(&other)?, 1))),
    ];
    let [groups, single] = rounds(contenders, pace).await?;
    let row = Row::rate(format!("rows, a sync per {GROUP_ROWS}"), &groups);
    Ok(Group {
        title: "Landing in files",
        conditions: vec!["Rows of 1 KiB as JSON lines, on the disk of the project.".into()],
        rows: vec![
            row.beside("a sync per row", &single)
                .judged(Target::RatioAtLeast(20.0)),
        ],
    })
}
