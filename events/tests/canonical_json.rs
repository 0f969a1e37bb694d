//! Canonical JSON: one spelling for each value, the same on every machine and for ever.

use std::collections::{BTreeMap, HashMap};

use events::canonical::{CanonicalError, CanonicalJson, MAX_DEPTH, canonical_json};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Serialize)]
enum Shape {
    Unit,
    Newtype(i32),
    Tuple(i32, bool),
    Struct { z: i32, a: Option<i32> },
}

#[derive(Serialize)]
struct Outer {
    zulu: u64,
    alpha: f32,
    shapes: Vec<Shape>,
    #[serde(flatten)]
    more: HashMap<String, i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    none: Option<()>,
    raw: Box<serde_json::value::RawValue>,
}

#[test]
fn every_shape_of_serde_has_its_golden_text() {
    let value = Outer {
        zulu: u64::MAX,
        alpha: 0.1,
        shapes: vec![Shape::Unit, Shape::Newtype(-1), Shape::Tuple(2, true), Shape::Struct { z: 1, a: None }],
        more: HashMap::from([("m".to_owned(), 1), ("b".to_owned(), 2)]),
        none: None,
        raw: serde_json::from_str(r#"{ "y": 1.50, "x": [ 1e2 ] }"#).unwrap(),
    };
    assert_eq!(
        canonical_json(&value).unwrap(),
        r#"{"alpha":0.1,"b":2,"m":1,"raw":{"x":[100.0],"y":1.5},"shapes":["Unit",{"Newtype":-1},{"Tuple":[2,true]},{"Struct":{"a":null,"z":1}}],"zulu":18446744073709551615}"#
    );
}

#[test]
fn numbers_have_their_golden_texts() {
    let cases: [(f64, &str); 14] = [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-1.5, "-1.5"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e16"),
        (1.25e20, "1.25e20"),
        (1e-4, "0.0001"),
        (1e-5, "1e-5"),
        (1e-7, "1e-7"),
        (f64::MAX, "1.7976931348623157e308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (5e-324, "5e-324"),
    ];
    for (number, text) in cases {
        assert_eq!(canonical_json(&number).unwrap(), text);
    }
    assert_eq!(canonical_json(&i128::MIN).unwrap(), i128::MIN.to_string());
}

#[test]
fn strings_escape_only_what_they_must() {
    assert_eq!(
        canonical_json("\"\\/\u{8}\t\n\u{c}\r\u{1f}\u{7f}é\u{2028}\u{1f680}").unwrap(),
        "\"\\\"\\\\/\\b\\t\\n\\f\\r\\u001f\u{7f}é\u{2028}\u{1f680}\""
    );
}

#[test]
fn names_are_sorted_by_their_bytes() {
    let value = json!({"b": 1, "a": 2, "B": 3, "é": 4, "\u{1f680}": 5, "\u{ffff}": 6, "": 7, "\u{1}": 8});
    assert_eq!(
        canonical_json(&value).unwrap(),
        "{\"\":7,\"\\u0001\":8,\"B\":3,\"a\":2,\"b\":1,\"é\":4,\"\u{ffff}\":6,\"\u{1f680}\":5}"
    );
    assert_eq!(canonical_json(&BTreeMap::from([(10, 'a'), (9, 'b')])).unwrap(), r#"{"10":"a","9":"b"}"#);
}

#[test]
fn what_json_cannot_hold_is_refused_and_never_replaced() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(canonical_json(&[number]), Err(CanonicalError::NotFinite(_))));
    }
    assert!(matches!(canonical_json(&f32::NAN), Err(CanonicalError::NotFinite(_))));
    assert_eq!(canonical_json("a\0b"), Err(CanonicalError::Nul));
    assert_eq!(canonical_json(&json!({"a\0b": 1})), Err(CanonicalError::Nul));
    assert_eq!(canonical_json(&HashMap::from([(vec![1], 1)])), Err(CanonicalError::KeyNotText));

    #[derive(Serialize)]
    struct Twice {
        a: i32,
        #[serde(flatten)]
        more: BTreeMap<String, i32>,
    }
    let twice = Twice { a: 1, more: BTreeMap::from([("a".to_owned(), 2)]) };
    assert_eq!(canonical_json(&twice), Err(CanonicalError::DuplicateName("a".to_owned())));
}

#[test]
fn nesting_ends_at_its_limit() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(CanonicalJson::parse(&nested(MAX_DEPTH)).unwrap().as_str(), nested(MAX_DEPTH));
    assert_eq!(CanonicalJson::parse(&nested(MAX_DEPTH + 1)), Err(CanonicalError::TooDeep));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
        "[^\0]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map("[^\0]{0,6}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_text_reads_back_as_the_same_value(value in any_json()) {
        let text = canonical_json(&value).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn canonical_text_is_its_own_canonical_text(value in any_json()) {
        let canonical = CanonicalJson::of(&value).unwrap();
        let again = CanonicalJson::parse(canonical.as_str()).unwrap();
        prop_assert_eq!(&again, &canonical);
        // Also through the type's own serde, and from text spread over lines.
        prop_assert_eq!(canonical_json(&canonical).unwrap(), canonical.as_str());
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(serde_json::from_str::<CanonicalJson>(&pretty).unwrap(), canonical);
    }
}
