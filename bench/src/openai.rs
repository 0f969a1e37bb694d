//! The shapes of OpenAI-compatible answers, read leniently: what is needed is named, the rest is skipped.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

pub use events::summary_requests::{CompletionDetails, PromptDetails, Usage};

/// A chunk of a stream, or a whole answer.
#[derive(Debug, Default, Deserialize)]
pub struct Answer<'a> {
    /// Absent or empty in a chunk that only reports usage.
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub choices: Vec<Choice<'a>>,
    /// Token counts, wherever in the stream the server puts them.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// Anything here that is not null is a failure, whatever the status was.
    #[serde(borrow, default)]
    pub error: Option<&'a serde_json::value::RawValue>,
}

/// One choice, of a stream (`delta`), of a whole chat answer (`message`) or of a completion (`text`).
#[derive(Debug, Default, Deserialize)]
pub struct Choice<'a> {
    /// What a chunk adds.
    #[serde(borrow, default)]
    pub delta: Option<Message<'a>>,
    /// The whole message.
    #[serde(borrow, default)]
    pub message: Option<Message<'a>>,
    /// The text of a completion.
    #[serde(borrow, default)]
    pub text: Text<'a>,
    /// Why the model stopped; null until it has.
    #[serde(borrow, default)]
    pub finish_reason: Option<Cow<'a, str>>,
}

/// A message or a part of one.
#[derive(Debug, Default, Deserialize)]
pub struct Message<'a> {
    /// Visible content.
    #[serde(borrow, default)]
    pub content: Text<'a>,
    /// Reasoning, as vLLM before 0.11, SGLang and llama.cpp name it.
    #[serde(borrow, default)]
    pub reasoning_content: Text<'a>,
    /// Reasoning, as newer servers name it.
    #[serde(borrow, default)]
    pub reasoning: Text<'a>,
    /// A refusal is visible content.
    #[serde(borrow, default)]
    pub refusal: Text<'a>,
    /// Tool calls: only whether there are any matters.
    #[serde(default)]
    pub tool_calls: Presence,
    /// The older form of tool calls.
    #[serde(default)]
    pub function_call: Presence,
}

/// Text that may be a string, a list of parts, or null.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text, a list of parts, or null")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Text::default())
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut text = String::new();
                while let Some(part) = parts.next_element::<Part<'de>>()? {
                    text.push_str(&part.text.0);
                }
                Ok(Text(Cow::Owned(text)))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
}

/// Whether a list or an object holds anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence(pub bool);

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PresenceVisitor;
        impl<'de> Visitor<'de> for PresenceVisitor {
            type Value = Presence;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list, an object, or null")
            }
            fn visit_unit<E>(self) -> Result<Presence, E> {
                Ok(Presence(false))
            }
            fn visit_str<E>(self, text: &str) -> Result<Presence, E> {
                Ok(Presence(!text.is_empty()))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Self::Value::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Presence, A::Error> {
                let mut any = false;
                while items.next_element::<IgnoredAny>()?.is_some() {
                    any = true;
                }
                Ok(Presence(any))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Presence, A::Error> {
                let mut any = false;
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    any = true;
                }
                Ok(Presence(any))
            }
        }
        deserializer.deserialize_any(PresenceVisitor)
    }
}

fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl<'a> Answer<'a> {
    /// The text of a chunk that holds one and nothing else, as it stands in the bytes, and whether it is visible.
    pub fn only_text(&self) -> Option<(&str, bool)> {
        let [choice] = self.choices.as_slice() else { return None };
        let more = self.usage.is_some()
            || self.error.is_some()
            || choice.finish_reason.is_some()
            || choice.message.is_some()
            || choice.delta.as_ref().is_some_and(|delta| delta.tool_calls.0 || delta.function_call.0);
        let delta = choice.delta.as_ref();
        let texts = [
            (Some(&choice.text), true),
            (delta.map(|delta| &delta.content), true),
            (delta.map(|delta| &delta.refusal), true),
            (delta.map(|delta| &delta.reasoning_content), false),
            (delta.map(|delta| &delta.reasoning), false),
        ];
        let mut some = texts
            .into_iter()
            .filter_map(|(text, visible)| Some((text?, visible)))
            .filter(|(text, _)| !text.0.is_empty());
        match (some.next(), some.next(), more) {
            (Some((Text(Cow::Borrowed(text)), visible)), None, false) => Some((text, visible)),
            _ => None,
        }
    }

    /// The error object, unless it is absent, null, false or empty.
    pub fn error_text(&self) -> Option<&'a str> {
        self.error.map(|raw| raw.get()).filter(|text| !matches!(*text, "null" | "false" | "\"\"" | "{}"))
    }
}

/// What an error body says: the message of the usual shapes, or the text itself.
pub fn error_message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) else {
        return text.trim().to_owned();
    };
    let inner = value.get("error").unwrap_or(&value);
    let found = [inner.get("message"), value.get("message"), value.get("detail"), Some(inner)]
        .into_iter()
        .flatten()
        .find(|candidate| !candidate.is_null());
    match found {
        Some(serde_json::Value::String(message)) => message.clone(),
        Some(other) => other.to_string(),
        None => text.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_content_is_no_content() {
        let answer: Answer = serde_json::from_str(
            r#"{"choices":[{"delta":{"role":"assistant","content":null},"finish_reason":null}]}"#,
        )
        .unwrap();
        assert_eq!(answer.choices[0].delta.as_ref().unwrap().content, Text::default());
    }

    #[test]
    fn content_may_be_a_list_of_parts() {
        let answer: Answer = serde_json::from_str(
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"text":"b"}]}}]}"#,
        )
        .unwrap();
        assert_eq!(answer.choices[0].delta.as_ref().unwrap().content.0, "ab");
    }

    #[test]
    fn a_null_error_is_none() {
        let answer: Answer = serde_json::from_str(r#"{"error":null,"choices":null}"#).unwrap();
        assert_eq!(answer.error_text(), None);
    }

    #[test]
    fn more_reasoning_than_output_is_clamped() {
        let usage: Usage = serde_json::from_str(
            r#"{"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":9}}"#,
        )
        .unwrap();
        assert_eq!(usage.reasoning(), Some(5));
    }

    #[test]
    fn error_messages_are_found_in_each_shape() {
        for body in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"detail":"no"}"#,
            r#"{"error":"no"}"#,
            r#"{"message":"no"}"#,
            "no\n",
        ] {
            assert_eq!(error_message(body.as_bytes()), "no", "{body}");
        }
    }
}
