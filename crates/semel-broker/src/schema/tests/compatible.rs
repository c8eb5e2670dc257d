use super::*;

fn checked(kind: Type, new: &str, old: &str) -> Result<(), String> {
    let compiled = |it| compiled(kind, it).unwrap_or_else(|why| panic!("{it}: {why}"));
    compiled(new).compatible_with(&compiled(old))
}

fn avro(fields: &str) -> String {
    format!(r#"{{"type":"record","name":"R","fields":[{fields}]}}"#)
}

fn proto(body: &str) -> String {
    format!("syntax = 'proto3'; message A {{ {body} }}")
}

#[test]
fn revisions_of_avro_read_one_another() {
    let a = r#"{"name":"a","type":"string"}"#;
    let with = |more: &str| avro(&format!("{a},{more}"));
    let later = r#"{"name":"R","type":"record","namespace":"later","fields":[]}"#;
    for (new, old) in [
        (with(r#"{"name":"b","type":"int","default":0}"#), avro(a)),
        (avro(r#"{"name":"a","type":"bytes"}"#), avro(a)),
        (
            avro(r#"{"name":"c","aliases":["a"],"type":"string"}"#),
            avro(r#"{"name":"a","aliases":["c"],"type":"string"}"#),
        ),
        (avro(""), later.into()),
        (
            r#"{"type":"enum","name":"E","symbols":["X","Y"],"default":"X"}"#.into(),
            r#"{"type":"enum","name":"E","symbols":["X"],"default":"X"}"#.into(),
        ),
        (
            r#"{"type":"record","name":"N","aliases":["R"],"fields":[]}"#.into(),
            r#"{"type":"record","name":"R","aliases":["N"],"fields":[]}"#.into(),
        ),
        (r#"["null","string"]"#.into(), r#"["string","null"]"#.into()),
        (
            with(r#"{"name":"next","type":["null","R"]}"#),
            with(r#"{"name":"next","type":["null","R"]}"#),
        ),
    ] {
        for (new, old) in [(&new, &old), (&old, &new)] {
            checked(Type::Avro, new, old).unwrap_or_else(|why| panic!("{new} {old}: {why}"));
        }
    }
}

#[test]
fn revisions_of_avro_that_do_not_are_refused() {
    let field = |kind: &str| avro(&format!(r#"{{"name":"a","type":{kind}}}"#));
    let enumeration = |more: &str| format!(r#"{{"type":"enum","name":"E","symbols":["X"{more}]}}"#);
    let fixed = |bytes| format!(r#"{{"type":"fixed","name":"F","size":{bytes}}}"#);
    for (new, old) in [
        (field("\"string\""), avro("")),
        (field("\"string\""), field("\"int\"")),
        (field("\"long\""), field("\"int\"")),
        (field(r#"["null","string"]"#), field("\"string\"")),
        (field(&enumeration(r#","Y""#)), field(&enumeration(""))),
        (field(&fixed(2)), field(&fixed(3))),
        (
            field(r#"{"type":"array","items":"int"}"#),
            field(r#"{"type":"map","values":"int"}"#),
        ),
        (
            avro(""),
            r#"{"type":"record","name":"S","fields":[]}"#.into(),
        ),
    ] {
        for (new, old) in [(&new, &old), (&old, &new)] {
            assert!(checked(Type::Avro, new, old).is_err(), "{new} {old}");
        }
    }
}

#[test]
fn fields_of_protobuf_come_and_go_and_stay_what_they_are() {
    let old = proto("string a = 1; B b = 2; E e = 3; message B { int32 c = 1; } enum E { X = 0; }");
    for (from, to, fits) in [
        ("string a = 1;", "", true),
        ("", " string z = 9; repeated int32 y = 10;", true),
        ("int32 c = 1;", "int32 c = 1; B again = 2;", true),
        ("string a = 1;", "bytes a = 1;", false),
        ("string a = 1;", "string renamed = 1;", false),
        ("string a = 1;", "string a = 7;", false),
        ("string a = 1;", "optional string a = 1;", false),
        ("string a = 1;", "repeated string a = 1;", false),
        ("string a = 1;", "oneof choice { string a = 1; }", false),
        ("int32 c = 1;", "int64 c = 1;", false),
        ("X = 0;", "X = 0; Y = 1;", false),
        ("X = 0;", "Y = 0;", false),
        ("message A", "message Other", false),
    ] {
        let new = match from {
            "" => old.replace("enum E", &format!("{to} enum E")),
            from => old.replace(from, to),
        };
        for (new, old) in [(&new, &old), (&old, &new)] {
            let checked = checked(Type::ProtocolBuffer, new, old);
            assert_eq!(checked.is_ok(), fits, "{new} {old}: {checked:?}");
        }
    }
    let added = checked(
        Type::ProtocolBuffer,
        &old.replace("X = 0;", "X = 0; Y = 1;"),
        &old,
    );
    assert_eq!(added.unwrap_err(), "A.Y = 1 is missing in A.E");
    let required = "message A { required string a = 1; }";
    assert!(checked(Type::ProtocolBuffer, required, "message A {}").is_err());
    assert!(checked(Type::ProtocolBuffer, "message A {}", required).is_err());
}

#[test]
fn long_chains_of_types_are_compared_too() {
    let chain = |name: &str| {
        let record = |n: usize| {
            let inner = match n {
                0 => String::new(),
                n => format!(r#"{{"name":"f","type":"R{}"}}"#, n - 1),
            };
            let record = format!(r#"{{"type":"record","name":"R{n}","fields":[{inner}]}}"#);
            format!(r#"{{"name":"{name}{n}","type":["null",{record}],"default":null}}"#)
        };
        let fields: Vec<_> = (0..2000).map(record).collect();
        let last = r#"{"name":"last","type":"R1999"}"#;
        avro(&format!("{},{last}", fields.join(",")))
    };
    let deep = checked(Type::Avro, &chain("x"), &chain("y"));
    assert!(deep.unwrap_err().contains("nested deeper"));
    let messages = (0..5000).map(|n| format!("message M{n} {{ M{} m = 1; }}", n + 1));
    let messages = messages.collect::<String>();
    let messages = proto(&format!("M0 m = 1; {messages} message M5000 {{}}"));
    checked(Type::ProtocolBuffer, &messages, &messages).unwrap();
}

/// A union of records that all hold one of two thousand fields, and one more field of this type.
fn sharing(kind: &str) -> String {
    let fields: Vec<_> = (0..2000)
        .map(|n| format!(r#"{{"name":"f{n}","type":"int"}}"#))
        .collect();
    let shared = format!(
        r#"{{"type":"record","name":"Shared","fields":[{}]}}"#,
        fields.join(",")
    );
    let branches = (0..100).map(|n| {
        let shared = if n == 0 { &shared } else { "\"Shared\"" };
        // All have one short name, so that each is compared with each.
        format!(
            r#"{{"type":"record","name":"n{n}.R","fields":[{{"name":"s","type":{shared}}},{{"name":"t","type":"{kind}"}}]}}"#
        )
    });
    let branches: Vec<_> = branches.collect();
    format!("[{}]", branches.join(",")).replace("\"Shared\"", "\"all.Shared\"")
}

#[test]
fn what_branches_share_is_compared_once() {
    let why = checked(Type::Avro, &sharing("string"), &sharing("int")).unwrap_err();
    assert!(why.contains("is none of the union"), "{why}");
    let (text, bytes) = (sharing("string"), sharing("bytes"));
    checked(Type::Avro, &text, &bytes).unwrap();
}

#[test]
fn a_comparison_that_takes_too_long_is_given_up() {
    // The first branch that fits is the last, so each of one is compared with each of the other.
    let union = |first: &str, last: &str| {
        let branches = (0..1200).map(|n| {
            let kind = if n == 1199 { last } else { first };
            format!(
                r#"{{"type":"record","name":"n{n}.R","fields":[{{"name":"a","type":"{kind}"}}]}}"#
            )
        });
        let branches: Vec<_> = branches.collect();
        format!("[{}]", branches.join(","))
    };
    let why = checked(Type::Avro, &union("string", "int"), &union("int", "int")).unwrap_err();
    assert!(why.contains("takes more than 1000000 steps"), "{why}");
}

#[test]
fn what_holds_itself_is_not_taken_to_fit_by_a_part_that_fails() {
    // A holds B, which holds A again and fits only as long as A does.
    let of = |last: &str| {
        format!(
            r#"{{"type":"record","name":"A","fields":[
                {{"name":"b","type":{{"type":"record","name":"B","fields":[{{"name":"a","type":["null","A"]}}]}}}},
                {{"name":"c","type":["null",{{"type":"record","name":"C","fields":[{{"name":"b","type":"B"}}]}}]}},
                {{"name":"z","type":"{last}"}}
            ]}}"#
        )
    };
    checked(Type::Avro, &of("int"), &of("int")).unwrap();
    assert!(checked(Type::Avro, &of("int"), &of("string")).is_err());
    // The union has another branch: what its first one left behind must not count.
    let either = |last: &str| {
        format!(
            r#"[{},{{"type":"record","name":"D","fields":[{{"name":"b","type":"B"}}]}}]"#,
            of(last)
        )
    };
    checked(Type::Avro, &either("int"), &either("int")).unwrap();
    assert!(checked(Type::Avro, &either("int"), &either("string")).is_err());
}
