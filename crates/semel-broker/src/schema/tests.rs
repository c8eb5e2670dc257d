use super::*;

mod compatible;

const ORDER: &str = r#"{
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": null},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "PAID"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "sums", "type": {"type": "map", "values": "double"}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "parent", "type": ["null", "Order"]}
    ]
}"#;

const PROTO: &str = "syntax = 'proto3'; message State { string name = 1; repeated int32 codes = 2; Inner inner = 3; \
                     message Inner { bool flag = 1; } }";

fn compiled(kind: Type, definition: &str) -> Result<Definition, String> {
    Definition::compile(&Schema {
        r#type: kind.into(),
        definition: definition.into(),
        ..Schema::default()
    })
}

#[test]
fn avro_in_json_is_checked_by_the_specification() {
    let schema = compiled(Type::Avro, ORDER).unwrap();
    let rest = r#""note":null,"kind":"NEW","tags":[],"sums":{},"hash":"ab","parent":null"#;
    for (data, good) in [
        (
            format!(r#"{{"id":1,{rest}}}"#).replace(r#""note":null"#, r#""note":{"string":"x"}"#),
            true,
        ),
        (format!(r#"{{"id":1,{rest}}}"#), true),
        // A default is for readers: whoever writes, writes every field.
        (
            format!(r#"{{"id":1,{rest}}}"#).replace(r#""note":null,"#, ""),
            false,
        ),
        (
            format!(r#"{{"id":1,"note":"x",{rest}}}"#).replace(r#","note":null"#, ""),
            false,
        ),
        (format!(r#"{{"id":1.5,{rest}}}"#), false),
        (format!(r#"{{"id":"1",{rest}}}"#), false),
        (format!(r#"{{{rest}}}"#), false),
        (format!(r#"{{"id":1,"more":2,{rest}}}"#), true),
        (format!(r#"{{"id":1,{rest}}}"#).replace("NEW", "OLD"), false),
        (
            format!(r#"{{"id":1,{rest}}}"#).replace("\"ab\"", "\"abc\""),
            false,
        ),
        (format!(r#"{{"id":1,{rest}}}"#).replace("[]", "[1]"), false),
        (
            format!(r#"{{"id":1,{rest}}}"#).replace(
                r#""parent":null"#,
                &format!(r#""parent":{{"shop.Order":{{"id":2,{rest}}}}}"#),
            ),
            true,
        ),
        ("not json".into(), false),
    ] {
        let checked = schema.check(data.as_bytes(), Encoding::Json);
        assert_eq!(checked.is_ok(), good, "{data}: {checked:?}");
    }
}

#[test]
fn avro_in_binary_is_read_to_its_end() {
    let schema = compiled(Type::Avro, ORDER).unwrap();
    // id 1, note "x", PAID, tags ["t"], sums {"a": 0.0}, hash, no parent
    let good = [
        &[2, 2, 2, b'x', 2, 2, 2, b't', 0, 2, 2, b'a'][..],
        &[0; 8],
        &[0, b'h', b'h', 0],
    ]
    .concat();
    schema.check(&good, Encoding::Binary).unwrap();
    let more = [&good[..], &[0]].concat();
    let mut other_kind = good.clone();
    other_kind[4] = 4;
    for bad in [&good[..good.len() - 1], &more, &other_kind, b"", b"{}"] {
        assert!(schema.check(bad, Encoding::Binary).is_err(), "{bad:?}");
    }
}

#[test]
fn what_could_go_on_for_ever_is_refused() {
    let nulls = compiled(Type::Avro, r#"{"type":"array","items":"null"}"#).unwrap();
    let many = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0];
    assert!(nulls.check(&many, Encoding::Binary).is_err());
    let list = r#"{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}"#;
    let list = compiled(Type::Avro, list).unwrap();
    assert!(list.check(&[2; 1_000_000], Encoding::Binary).is_err());
    assert!(list.check(&[2, 2, 0], Encoding::Binary).is_ok());
    let deep = format!("message A {{{}", "message B {".repeat(10_000));
    assert!(compiled(Type::ProtocolBuffer, &deep).is_err());
}

#[test]
fn a_message_of_empty_values_is_soon_given_up() {
    let nulls = compiled(Type::Avro, r#"{"type":"array","items":"null"}"#).unwrap();
    let (thousand, million) = ([0xd0, 0x0f, 0], [0x80, 0x89, 0x7a, 0]);
    assert!(nulls.check(&thousand, Encoding::Binary).is_ok());
    assert!(nulls.check(&million, Encoding::Binary).is_err());
    // Records of two records of two records …: nothing of it takes a byte.
    let mut kind = r#"{"type":"record","name":"R0","fields":[]}"#.to_owned();
    for depth in 1..40 {
        kind = format!(
            r#"{{"type":"record","name":"R{depth}","fields":[{{"name":"a","type":{kind}}},{{"name":"b","type":"R{}"}}]}}"#,
            depth - 1
        );
    }
    let twins = compiled(Type::Avro, &kind).unwrap();
    assert!(twins.check(b"", Encoding::Binary).is_err());
}

#[test]
fn a_long_text_does_not_make_room_for_empty_items() {
    let empty = r#"{"type":"record","name":"Empty","fields":[]}"#;
    let kind = format!(
        r#"{{"type":"record","name":"R","fields":[{{"name":"s","type":"bytes"}},{{"name":"a","type":{{"type":"array","items":{empty}}}}}]}}"#
    );
    let schema = compiled(Type::Avro, &kind).unwrap();
    // 100 kB of bytes, then so many items, then the end.
    let data = |count: &[u8]| [&[0xc0, 0x9a, 0x0c][..], &[0; 100_000], count, &[0]].concat();
    let (ten_thousand, one_more) = ([0xa0, 0x9c, 0x01], [0xa2, 0x9c, 0x01]);
    schema
        .check(&data(&ten_thousand), Encoding::Binary)
        .unwrap();
    let why = schema.check(&data(&one_more), Encoding::Binary);
    assert!(why.unwrap_err().contains("more than 10000 items"));
}

#[test]
fn defaults_and_names_are_those_of_the_specification() {
    let field = |line: &str| {
        let text = format!(r#"{{"type":"record","name":"R","fields":[{{"name":"a",{line}}}]}}"#);
        compiled(Type::Avro, &text).map(drop)
    };
    for good in [
        r#""type":"int","default":1,"order":"ignore","aliases":["b"]"#,
        r#""type":["null","string"],"default":null"#,
        r#""type":["string","null"],"default":"x""#,
        r#""type":{"type":"enum","name":"E","symbols":["X"],"default":"X"}"#,
        r#""type":{"type":"record","name":"I","fields":[{"name":"b","type":"int","default":1}]},"default":{}"#,
    ] {
        field(good).unwrap_or_else(|why| panic!("{good}: {why}"));
    }
    for bad in [
        r#""type":"int","default":"x""#,
        r#""type":["string","null"],"default":null"#,
        r#""type":{"type":"enum","name":"E","symbols":["X"],"default":"Y"}"#,
        r#""type":"int","order":"sideways""#,
        r#""type":"int","aliases":"b""#,
        r#""type":{"type":"record","name":"int","fields":[]}"#,
        r#""type":{"type":{"type":"string"}}"#,
        r#""type":{"type":["null","string"]}"#,
    ] {
        assert!(field(bad).is_err(), "{bad}");
    }
}

#[test]
fn brackets_in_comments_and_texts_are_none() {
    let (comments, text) = ("// a <- b\n/* { */".repeat(70), r"[\'".repeat(70));
    let text = format!("{comments} message A {{ optional string a = 1 [default = '{text}']; }}");
    compiled(Type::ProtocolBuffer, &text).unwrap_or_else(|why| panic!("{text}: {why}"));
}

#[test]
fn options_of_its_own_do_not_lead_the_compiler_astray() {
    let path = vec!["a"; 20_000].join(".");
    let options = |name: &str| {
        format!("message {name} {{ optional {name} a=1; optional int32 b=2; option {path}.b=5; }}")
    };
    let options = options("MessageOptions");
    for text in [
        format!("package google.protobuf; {options}"),
        format!("package google; message protobuf {{ {options} }}"),
        format!("message google {{ message protobuf {{ {options} }} }}"),
    ] {
        let text = format!("syntax = 'proto2'; {text}");
        let why = compiled(Type::ProtocolBuffer, &text).err().unwrap();
        assert!(why.contains("Protocol Buffers' own"), "{why}");
    }
    let text = "syntax = 'proto3'; package google.events; message Order { string id = 1; }";
    assert!(compiled(Type::ProtocolBuffer, text).is_ok());
}

#[test]
fn definitions_that_mean_nothing_are_refused() {
    for (kind, definition) in [
        (Type::Avro, ""),
        (Type::Avro, "{"),
        (Type::Avro, r#"{"type":"record","name":"R"}"#),
        (
            Type::Avro,
            r#"{"type":"record","name":"R","fields":[{"name":"a"}]}"#,
        ),
        (Type::Avro, r#"{"type":"record","name":"1","fields":[]}"#),
        (
            Type::Avro,
            r#"{"type":"enum","name":"E","symbols":["A","A"]}"#,
        ),
        (Type::Avro, r#"["null",["null"]]"#),
        (Type::Avro, r#"["int","int"]"#),
        (Type::Avro, r#""Unknown""#),
        (Type::ProtocolBuffer, "not a definition"),
        (Type::ProtocolBuffer, "syntax = 'proto3';"),
        (
            Type::ProtocolBuffer,
            "message A { string a = 1; } message B {}",
        ),
        (Type::ProtocolBuffer, "import 'other.proto'; message A {}"),
        (Type::ProtocolBuffer, "message A { B b = 1; }"),
        (Type::Unspecified, "{}"),
    ] {
        assert!(compiled(kind, definition).is_err(), "{definition}");
    }
}

#[test]
fn protobuf_is_checked_in_both_encodings() {
    let schema = compiled(Type::ProtocolBuffer, PROTO).unwrap();
    for (data, good) in [
        (
            r#"{"name":"Utah","codes":[1,2],"inner":{"flag":true}}"#,
            true,
        ),
        (r#"{}"#, true),
        (r#"{"name":1}"#, false),
        (r#"{"nothing":1}"#, false),
        (r#"{"inner":{"flag":"x"}}"#, false),
        (r#"{} {}"#, false),
    ] {
        let checked = schema.check(data.as_bytes(), Encoding::Json);
        assert_eq!(checked.is_ok(), good, "{data}: {checked:?}");
    }
    assert!(schema.check(b"\x0a\x04Utah", Encoding::Binary).is_ok());
    assert!(schema.check(b"\x0a\x09Utah", Encoding::Binary).is_err());
    assert!(schema.check(b"\x50\x01", Encoding::Binary).is_err());
    let required = compiled(Type::ProtocolBuffer, "message A { required string a = 1; }").unwrap();
    assert!(required.check(b"", Encoding::Binary).is_err());
    assert!(required.check(b"\x0a\x01x", Encoding::Binary).is_ok());
}
