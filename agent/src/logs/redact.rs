//! Blots out secrets by value in a stream of bytes, wherever the chunks are cut.

use std::sync::Arc;

/// What a secret is replaced by.
const BLOT: &[u8] = b"[redacted]";
/// Shorter values are no secrets, and blotting them out would make logs unreadable.
const SHORTEST: usize = 6;

/// The values that must not leave this host.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Values>);

#[derive(Default)]
struct Values {
    values: Vec<Vec<u8>>,
    /// Whether some value begins with this byte.
    first: Vec<bool>,
}

impl Secrets {
    /// The values, without doubles and without those too short to be secret.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<Vec<u8>> = values
            .into_iter()
            .map(|value| value.trim().as_bytes().to_vec())
            .filter(|value| value.len() >= SHORTEST)
            .collect();
        // The longest first: one secret may be the beginning of another.
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        let mut first = vec![false; 256];
        for value in &values {
            first[usize::from(value[0])] = true;
        }
        Self(Arc::new(Values { values, first }))
    }

    /// These and further ones.
    #[must_use]
    pub fn and(&self, more: impl IntoIterator<Item = String>) -> Self {
        let known = self.0.values.iter().map(|value| String::from_utf8_lossy(value).into_owned());
        Self::new(known.chain(more))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.values.is_empty()
    }

    /// The text with every secret blotted out.
    pub fn redact(&self, text: &str) -> String {
        if self.0.values.is_empty() {
            return text.to_owned();
        }
        let mut redactor = Redactor::new(self.clone());
        let mut clean = redactor.push(text.as_bytes());
        clean.extend(redactor.finish());
        String::from_utf8_lossy(&clean).into_owned()
    }

    /// Every text of a list, redacted.
    pub fn redact_all(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.redact(text)).collect()
    }
}

/// Redacts one stream. What could be the beginning of a secret is held back until more is known.
pub struct Redactor {
    secrets: Secrets,
    held: Vec<u8>,
}

impl Redactor {
    /// A redactor for a new stream.
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, held: Vec::new() }
    }

    /// Takes the next chunk and gives what is known to be clean.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let Values { values, first } = &*self.secrets.0;
        if values.is_empty() {
            return chunk.to_vec();
        }
        let mut input = std::mem::take(&mut self.held);
        input.extend_from_slice(chunk);
        let mut clean = Vec::with_capacity(input.len());
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            if !first[usize::from(rest[0])] {
                clean.push(rest[0]);
                at += 1;
                continue;
            }
            // A longer secret may still come out of what is there; it is not decided before it is complete.
            let undecided = values.iter().any(|value| rest.len() < value.len() && value.starts_with(rest));
            if undecided {
                self.held = rest.to_vec();
                return clean;
            }
            match values.iter().find(|value| rest.starts_with(value)) {
                Some(value) => {
                    clean.extend_from_slice(BLOT);
                    at += value.len();
                }
                None => {
                    clean.push(rest[0]);
                    at += 1;
                }
            }
        }
        clean
    }

    /// Ends the stream and gives the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        let mut clean = Vec::new();
        while !rest.is_empty() {
            match self.secrets.0.values.iter().find(|value| rest.starts_with(value)) {
                Some(value) => {
                    clean.extend_from_slice(BLOT);
                    rest.drain(..value.len());
                }
                None => clean.push(rest.remove(0)),
            }
        }
        clean
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_chunks(secrets: &Secrets, text: &[u8], cuts: &[usize]) -> Vec<u8> {
        let mut redactor = Redactor::new(secrets.clone());
        let (mut clean, mut at) = (Vec::new(), 0);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
        cuts.sort_unstable();
        for cut in cuts {
            clean.extend(redactor.push(&text[at..cut]));
            at = cut;
        }
        clean.extend(redactor.push(&text[at..]));
        clean.extend(redactor.finish());
        clean
    }

    #[test]
    fn a_secret_is_blotted_out() {
        let secrets = Secrets::new(["hf_abcdef".to_owned()]);
        assert_eq!(secrets.redact("token=hf_abcdef, again hf_abcdef"), "token=[redacted], again [redacted]");
    }

    #[test]
    fn a_secret_that_begins_like_another_is_blotted_out_whole() {
        let secrets = Secrets::new(["secret".to_owned(), "secret-and-more".to_owned()]);
        assert_eq!(
            secrets.redact("a secret-and-more b secret c secret-and"),
            "a [redacted] b [redacted] c [redacted]-and"
        );
    }

    #[test]
    fn text_without_a_secret_is_not_held_back() {
        let mut redactor = Redactor::new(Secrets::new(["secret".to_owned()]));
        assert_eq!(redactor.push(b"a line\n"), b"a line\n");
    }

    #[test]
    fn a_value_too_short_to_be_secret_is_left_alone() {
        assert_eq!(Secrets::new(["ab".to_owned(), " ".to_owned()]).redact("absent"), "absent");
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_chunks_are_cut(
            parts in prop::collection::vec(prop_oneof!["[abs]{0,6}", Just("secretsecret1".to_owned()), Just("abababab".to_owned())], 0..12),
            cuts in prop::collection::vec(0usize..200, 0..20),
        ) {
            let secrets = Secrets::new(["secretsecret1".to_owned(), "abababab".to_owned()]);
            let text = parts.concat();
            let clean = in_chunks(&secrets, text.as_bytes(), &cuts);
            prop_assert_eq!(&clean, &in_chunks(&secrets, text.as_bytes(), &[]));
            let clean = String::from_utf8(clean).unwrap();
            prop_assert!(!clean.contains("secretsecret1") && !clean.contains("abababab"));
        }

        #[test]
        fn text_without_secrets_comes_out_as_it_went_in(text in "[a-z\n ]{0,200}", cuts in prop::collection::vec(0usize..200, 0..20)) {
            let secrets = Secrets::new(["XYZXYZ".to_owned()]);
            prop_assert_eq!(in_chunks(&secrets, text.as_bytes(), &cuts), text.as_bytes());
        }
    }
}
