//! The few queries: documents of a collection in the order of their names, or of one field.

use crate::client::Client;
use crate::names::Collection;
use crate::proto::structured_query::field_filter::Operator;
use crate::proto::structured_query::filter::FilterType;
use crate::proto::structured_query::{
    CollectionSelector, FieldFilter, FieldReference, Filter, Order, Projection,
};
use crate::proto::{Cursor, StructuredQuery, Value};
use crate::value::reference;

/// The order that every query ends with.
const NAME: &str = "__name__";

/// Documents in the order of their names, after the one named, with these fields; no field is the name alone.
pub(crate) fn by_name(
    client: &Client,
    collection: Collection,
    select: &[&str],
    after: Option<&str>,
    limit: u32,
) -> StructuredQuery {
    StructuredQuery {
        order_by: vec![order(NAME)],
        start_at: after.map(|name| from(vec![reference(name)], false)),
        ..of(client, collection, select, limit)
    }
}

/// The same, of those whose field has this value.
pub(crate) fn with_value(query: StructuredQuery, name: &str, value: Value) -> StructuredQuery {
    StructuredQuery {
        r#where: Some(Filter {
            filter_type: Some(FilterType::FieldFilter(FieldFilter {
                field: Some(field(name)),
                op: Operator::Equal.into(),
                value: Some(value),
            })),
        }),
        ..query
    }
}

/// Documents whose names begin so, with these fields.
pub(crate) fn beginning_with(
    client: &Client,
    collection: Collection,
    name: &str,
    select: &[&str],
    limit: u32,
) -> StructuredQuery {
    // Ids are ASCII: nothing that begins so is above this.
    let beyond = format!("{name}~");
    StructuredQuery {
        order_by: vec![order(NAME)],
        start_at: Some(from(vec![reference(name)], true)),
        end_at: Some(from(vec![reference(beyond)], true)),
        ..of(client, collection, select, limit)
    }
}

/// Documents in the order of a field and their names, after that place; those without the field are left out.
pub(crate) fn by_field(
    client: &Client,
    collection: Collection,
    name: &str,
    select: &[&str],
    after: Option<[Value; 2]>,
    limit: u32,
) -> StructuredQuery {
    StructuredQuery {
        order_by: vec![order(name), order(NAME)],
        start_at: after.map(|values| from(values.into(), false)),
        ..of(client, collection, select, limit)
    }
}

fn of(client: &Client, collection: Collection, select: &[&str], limit: u32) -> StructuredQuery {
    let select = if select.is_empty() { &[NAME] } else { select };
    StructuredQuery {
        select: Some(Projection {
            fields: select.iter().map(|name| field(name)).collect(),
        }),
        from: vec![CollectionSelector {
            collection_id: client.names.collection(collection),
        }],
        r#where: None,
        order_by: Vec::new(),
        start_at: None,
        end_at: None,
        limit: Some(i32::try_from(limit).unwrap_or(i32::MAX)),
    }
}

const fn from(values: Vec<Value>, before: bool) -> Cursor {
    Cursor { values, before }
}

fn order(name: &str) -> Order {
    Order {
        field: Some(field(name)),
    }
}

fn field(name: &str) -> FieldReference {
    FieldReference {
        field_path: name.to_owned(),
    }
}
