//! Reads a definition: types are known by their names as they come.

use super::{Field, Name, Type, TypeId};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// What is read so far.
#[derive(Debug, Default)]
pub(super) struct Parser {
    pub(super) types: Vec<Type>,
    named: HashMap<String, TypeId>,
    /// The fields that have a default, which is looked at when every type is known.
    pub(super) defaults: Vec<Default>,
}

#[derive(Debug)]
pub(super) struct Default {
    pub(super) field: String,
    pub(super) kind: TypeId,
    pub(super) value: Value,
}

// === impl Parser ===

impl Parser {
    /// Reads a type; names without a namespace are of `namespace`.
    pub(super) fn parse(&mut self, value: &Value, namespace: &str) -> Result<TypeId, String> {
        match value {
            Value::String(name) => self.reference(name, namespace),
            Value::Array(branches) => self.union(branches, namespace),
            Value::Object(object) => match object.get("type") {
                Some(Value::String(name)) => self.complex(name, object, namespace),
                Some(_) => Err("the \"type\" of a type is its name".into()),
                None => Err("a type has no \"type\"".into()),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                Err(format!("{value} is not a type"))
            }
        }
    }

    fn reference(&mut self, name: &str, namespace: &str) -> Result<TypeId, String> {
        if let Some(primitive) = Type::primitive(name) {
            return Ok(self.add(primitive));
        }
        let full = full_name(name, namespace);
        let found = self.named.get(&full).or_else(|| self.named.get(name));
        found
            .copied()
            .ok_or_else(|| format!("no type is called {name}"))
    }

    fn union(&mut self, branches: &[Value], namespace: &str) -> Result<TypeId, String> {
        let mut ids = Vec::new();
        let mut names = HashSet::new();
        for branch in branches {
            let id = self.parse(branch, namespace)?;
            let kind = self.types.get(id).unwrap_or(&Type::Null);
            if matches!(kind, Type::Union(_)) {
                return Err("a union holds another union".into());
            }
            if !names.insert(kind.name().to_owned()) {
                return Err(format!("a union holds {} twice", kind.name()));
            }
            ids.push(id);
        }
        Ok(self.add(Type::Union(ids)))
    }

    fn complex(
        &mut self,
        kind: &str,
        object: &Map<String, Value>,
        namespace: &str,
    ) -> Result<TypeId, String> {
        let inner = |name: &str| {
            object
                .get(name)
                .ok_or_else(|| format!("{kind} has no \"{name}\""))
        };
        match kind {
            "array" => {
                let items = self.parse(inner("items")?, namespace)?;
                Ok(self.add(Type::Array(items)))
            }
            "map" => {
                let values = self.parse(inner("values")?, namespace)?;
                Ok(self.add(Type::Map(values)))
            }
            "record" | "error" => self.record(object, namespace),
            "enum" => {
                let symbols = inner("symbols")?
                    .as_array()
                    .ok_or("\"symbols\" is a list")?;
                let symbols: Option<Vec<_>> = symbols.iter().map(Value::as_str).collect();
                let symbols = symbols.ok_or("a symbol is a name")?;
                let symbols = unique(&symbols)?;
                if let Some(default) = object.get("default")
                    && !symbols.iter().any(|symbol| default == symbol)
                {
                    return Err(format!(
                        "{default} is the default of an enum, and none of its symbols"
                    ));
                }
                let has_default = object.contains_key("default");
                self.define(object, namespace, |name| Type::Enum {
                    name,
                    symbols,
                    has_default,
                })
            }
            "fixed" => {
                let bytes = inner("size")?
                    .as_u64()
                    .and_then(|it| usize::try_from(it).ok());
                let bytes = bytes.ok_or("\"size\" is a number")?;
                self.define(object, namespace, |name| Type::Fixed { name, bytes })
            }
            name => self.reference(name, namespace),
        }
    }

    /// The name is known before the fields are read: they may hold it.
    fn record(&mut self, object: &Map<String, Value>, namespace: &str) -> Result<TypeId, String> {
        let empty = |name| Type::Record {
            name,
            fields: Vec::new(),
        };
        let id = self.define(object, namespace, empty)?;
        let Some(Type::Record { name, .. }) = self.types.get(id).cloned() else {
            return Err("a record is none".into());
        };
        let within = name.full.rsplit_once('.').map_or("", |(within, _)| within);
        let listed = object.get("fields").and_then(Value::as_array);
        let listed = listed.ok_or_else(|| format!("record {} has no \"fields\"", name.full))?;
        let mut fields = Vec::new();
        for field in listed {
            let field_name = field
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let kind = field.get("type");
            let kind =
                kind.ok_or_else(|| format!("field {}.{field_name} has no \"type\"", name.full))?;
            let kind = self.parse(kind, within)?;
            check_order(field)?;
            let aliases = aliases(field.get("aliases"))?;
            if let Some(value) = field.get("default") {
                self.defaults.push(Default {
                    field: format!("{}.{field_name}", name.full),
                    kind,
                    value: value.clone(),
                });
            }
            fields.push(Field {
                name: field_name.into(),
                kind,
                has_default: field.get("default").is_some(),
                aliases,
            });
        }
        let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
        unique(&names)?;
        if let Some(place) = self.types.get_mut(id) {
            *place = Type::Record { name, fields };
        }
        Ok(id)
    }

    fn define(
        &mut self,
        object: &Map<String, Value>,
        namespace: &str,
        kind: impl FnOnce(Name) -> Type,
    ) -> Result<TypeId, String> {
        let name = object.get("name").and_then(Value::as_str);
        let name = name.ok_or("a record, enum or fixed has no \"name\"")?;
        if Type::primitive(name).is_some() {
            return Err(format!("{name} is a type of Avro's own"));
        }
        let aliases = aliases(object.get("aliases"))?;
        let own = object.get("namespace").and_then(Value::as_str);
        let name = full_name(name, own.unwrap_or(namespace));
        if !name.split('.').all(is_name) {
            return Err(format!("{name:?} is not a name"));
        }
        let within = name.rsplit_once('.').map_or("", |(within, _)| within);
        let aliases = aliases.iter().map(|alias| full_name(alias, within));
        let id = self.add(kind(Name {
            full: name.clone(),
            aliases: aliases.collect(),
        }));
        match self.named.insert(name.clone(), id) {
            None => Ok(id),
            Some(_) => Err(format!("{name} is defined twice")),
        }
    }

    fn add(&mut self, kind: Type) -> TypeId {
        self.types.push(kind);
        self.types.len() - 1
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    match name.contains('.') || namespace.is_empty() {
        true => name.into(),
        false => format!("{namespace}.{name}"),
    }
}

fn check_order(field: &Value) -> Result<(), String> {
    match field.get("order") {
        None => Ok(()),
        Some(order)
            if ["ascending", "descending", "ignore"]
                .iter()
                .any(|it| order == it) =>
        {
            Ok(())
        }
        Some(order) => Err(format!("{order} is not an order")),
    }
}

fn aliases(listed: Option<&Value>) -> Result<Vec<String>, String> {
    let Some(listed) = listed else {
        return Ok(Vec::new());
    };
    let texts = |all: &Vec<Value>| {
        let texts = all.iter().map(|it| it.as_str().map(str::to_owned));
        texts.collect::<Option<Vec<_>>>()
    };
    let aliases = listed.as_array().and_then(texts);
    aliases.ok_or_else(|| format!("{listed} is not a list of aliases"))
}

fn is_name(name: &str) -> bool {
    let begins = |it: char| it.is_ascii_alphabetic() || it == '_';
    name.starts_with(begins) && name.chars().all(|it| begins(it) || it.is_ascii_digit())
}

/// Names, each once.
fn unique(names: &[&str]) -> Result<Vec<String>, String> {
    let mut seen = HashSet::new();
    for name in names {
        if !is_name(name) {
            return Err(format!("{name:?} is not a name"));
        }
        if !seen.insert(*name) {
            return Err(format!("{name} is there twice"));
        }
    }
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}
