//! YAML as a list of its scalars, each with the names that lead to it: more is not asked of it here.

use saphyr_parser::{Event, Parser, ScanError};

/// One document of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    scalars: Vec<(Vec<String>, String)>,
}

/// A mapping or sequence that is being read.
#[derive(Debug)]
enum Open {
    /// With the name whose value comes next.
    Mapping(Option<String>),
    Sequence,
}

// === impl Document ===

impl Document {
    /// All documents of a file.
    pub(super) fn all(text: &str) -> Result<Vec<Self>, ScanError> {
        let (mut documents, mut open) = (Vec::new(), Vec::new());
        for event in Parser::new_from_str(text) {
            match event?.0 {
                Event::DocumentStart(_) => documents.push(Self::default()),
                Event::MappingStart(..) => open.push(Open::Mapping(None)),
                Event::SequenceStart(..) => open.push(Open::Sequence),
                Event::MappingEnd | Event::SequenceEnd => {
                    open.pop();
                    value_ended(&mut open);
                }
                // What an alias stands for is not looked up: it is not there.
                Event::Alias(_) => value_ended(&mut open),
                Event::Scalar(text, ..) => match open.last_mut() {
                    Some(Open::Mapping(name @ None)) => *name = Some(text.into_owned()),
                    Some(Open::Mapping(Some(_)) | Open::Sequence) | None => {
                        if let Some(document) = documents.last_mut() {
                            document.scalars.push((names(&open), text.into_owned()));
                        }
                        value_ended(&mut open);
                    }
                },
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            }
        }
        Ok(documents)
    }

    /// What stands at the end of these names.
    pub(super) fn get(&self, names: &[&str]) -> Option<&str> {
        self.all_at(names).next()
    }

    /// All that stands there, where some of the names are `[]`: of whichever item of a sequence.
    pub(super) fn all_at(&self, names: &[&str]) -> impl Iterator<Item = &str> {
        let scalars = self.scalars.iter();
        let found = scalars.filter(move |(path, _)| path == names);
        found.map(|(_, text)| text.as_str())
    }
}

fn value_ended(open: &mut [Open]) {
    if let Some(Open::Mapping(name)) = open.last_mut() {
        *name = None;
    }
}

fn names(open: &[Open]) -> Vec<String> {
    let name = |it: &Open| match it {
        Open::Mapping(name) => name.clone().unwrap_or_default(),
        Open::Sequence => "[]".into(),
    };
    open.iter().map(name).collect()
}
