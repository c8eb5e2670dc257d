//! Names in a start-up file: whole ones, or the last part of one.

use super::Mistake;
use toml::Spanned;

/// What short names are completed with.
#[derive(Debug)]
pub(super) struct NameDefaults {
    pub(super) project: Option<String>,
    pub(super) location: Option<String>,
}

// === impl NameDefaults ===

impl NameDefaults {
    /// The full name of a queue.
    pub(super) fn of_queue(&self, name: &Spanned<String>) -> Result<String, Mistake> {
        let text = name.get_ref();
        if !text.contains('/') {
            let project = given("project", self.project.as_ref(), name)?;
            let location = given("location", self.location.as_ref(), name)?;
            return Ok(format!(
                "projects/{project}/locations/{location}/queues/{text}"
            ));
        }
        let parts: Vec<_> = text.split('/').collect();
        match *parts {
            ["projects", _, "locations", _, "queues", _] => Ok(text.clone()),
            _ => Err(wrong(name, "projects/P/locations/L/queues/Q")),
        }
    }

    /// The full name of a topic or a subscription.
    pub(super) fn of(&self, collection: &str, name: &Spanned<String>) -> Result<String, Mistake> {
        let text = name.get_ref();
        if !text.contains('/') {
            let project = given("project", self.project.as_ref(), name)?;
            return Ok(format!("projects/{project}/{collection}/{text}"));
        }
        let parts: Vec<_> = text.split('/').collect();
        match *parts {
            ["projects", _, middle, _] if middle == collection => Ok(text.clone()),
            _ => Err(wrong(name, &format!("projects/P/{collection}/NAME"))),
        }
    }
}

fn given<'a>(
    key: &str,
    value: Option<&'a String>,
    name: &Spanned<String>,
) -> Result<&'a String, Mistake> {
    value.ok_or_else(|| {
        let why = format!("a short name needs {key} = \"…\" at the top of the file");
        (name.span(), why)
    })
}

fn wrong(name: &Spanned<String>, form: &str) -> Mistake {
    let text = name.get_ref();
    (name.span(), format!("{text:?} is not of the form {form}"))
}
