//! YAML as a list of its scalars, each with the names that lead to it: more is not asked of it here.

use saphyr_parser::{Event, Parser, ScanError};

/// One document of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    scalars: Vec<Scalar>,
}

#[derive(Clone, Debug)]
struct Scalar {
    path: Vec<String>,
    /// Which item of the outermost sequence it is in.
    item: usize,
    text: String,
}

/// A mapping or sequence that is being read.
#[derive(Debug)]
enum Open {
    /// With the name whose value comes next.
    Mapping(Option<String>),
    /// With the number of items before this one.
    Sequence(usize),
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
                Event::SequenceStart(..) => open.push(Open::Sequence(0)),
                Event::MappingEnd | Event::SequenceEnd => {
                    open.pop();
                    value_ended(&mut open);
                }
                // What an alias stands for is not looked up: it is not there.
                Event::Alias(_) => value_ended(&mut open),
                Event::Scalar(text, ..) => match open.last_mut() {
                    Some(Open::Mapping(name @ None)) => *name = Some(text.into_owned()),
                    Some(Open::Mapping(Some(_)) | Open::Sequence(_)) | None => {
                        if let Some(document) = documents.last_mut() {
                            document.scalars.push(Scalar {
                                path: names(&open),
                                item: item(&open),
                                text: text.into_owned(),
                            });
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
        self.all_at(names.to_vec()).next()
    }

    /// All that stands there, where some of the names are `[]`: of whichever item of a sequence.
    pub(super) fn all_at(&self, names: Vec<&str>) -> impl Iterator<Item = &str> {
        self.items_at(names).map(|(_, text)| text)
    }

    /// The same, each with the number of the item of the outermost sequence that it is in.
    pub(super) fn items_at(&self, names: Vec<&str>) -> impl Iterator<Item = (usize, &str)> {
        let scalars = self.scalars.iter();
        let found = scalars.filter(move |scalar| scalar.path == names);
        found.map(|scalar| (scalar.item, scalar.text.as_str()))
    }

    /// The values that follow a `name` of this text, as in the `env` of a container.
    pub(super) fn values_of(&self, name: &str) -> impl Iterator<Item = &str> {
        self.scalars.windows(2).filter_map(move |pair| match pair {
            [named, value] if named.text == name => {
                let is_pair = named.path.last().is_some_and(|it| it == "name")
                    && value.path.last().is_some_and(|it| it == "value")
                    && named.path.len() == value.path.len();
                is_pair.then_some(value.text.as_str())
            }
            _ => None,
        })
    }
}

fn value_ended(open: &mut [Open]) {
    match open.last_mut() {
        Some(Open::Mapping(name)) => *name = None,
        Some(Open::Sequence(items)) => *items += 1,
        None => {}
    }
}

fn item(open: &[Open]) -> usize {
    let outermost = open.iter().find_map(|it| match it {
        Open::Mapping(_) => None,
        Open::Sequence(items) => Some(*items),
    });
    outermost.unwrap_or(0)
}

fn names(open: &[Open]) -> Vec<String> {
    let name = |it: &Open| match it {
        Open::Mapping(name) => name.clone().unwrap_or_default(),
        Open::Sequence(_) => "[]".into(),
    };
    open.iter().map(name).collect()
}
