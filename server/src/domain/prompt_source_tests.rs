use proptest::prelude::*;
use serde_json::json;

use super::*;

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

fn jsonl(source_type: PromptSourceType, text: &str) -> Result<Content, Vec<Fault>> {
    read_jsonl(source_type, text, &|_| Ok(()))
}

#[test]
fn a_row_names_no_address_that_the_policy_refuses() {
    let policy = crate::outbound::Policy::of_agents("10.20.0.0/16".parse().unwrap());
    let judge = |url: &str| policy.check_form(url).map(drop).map_err(|error| error.to_string());
    let images = lines(&[
        json!({"prompt": "x", "image_urls": ["https://images.example/a.jpg", "HTTP://10.20.0.1/b.jpg"]}),
        json!({"prompt": "x", "image_urls": ["data:image/png;base64,AA==", "http://169.254.169.254/latest/"]}),
        json!({"prompt": "x", "image_urls": ["http://localhost:9200/"]}),
    ]);
    let faults = read_jsonl(PromptSourceType::MetrumbenchVlmSnapshot, &images, &judge).unwrap_err();
    let shown: Vec<(usize, bool)> =
        faults.iter().map(|fault| (fault.line, fault.message.starts_with("image_urls: "))).collect();
    assert_eq!(shown, [(2, true), (3, true)], "{faults:?}");
    let audio = lines(&[json!({"id": "a", "url": "http://[::1]/a.wav"})]);
    let faults = read_jsonl(PromptSourceType::MetrumbenchAsrSnapshot, &audio, &judge).unwrap_err();
    assert!(faults[0].message.starts_with("url: ::1 is not a public address"), "{faults:?}");
}

fn faulty(source_type: PromptSourceType, text: &str) -> Vec<usize> {
    jsonl(source_type, text).expect_err("it is refused").iter().map(|fault| fault.line).collect()
}

#[test]
fn prompts_are_counted_with_their_words() {
    let text = format!("{}\n{}", lines(&[json!({"prompt": "one two three"})]), json!({"prompt": "four"}));
    let content = jsonl(PromptSourceType::PromptLibrary, &text).unwrap();
    assert_eq!(content.rows, 2);
    assert_eq!(content.words, Some(WordCounts { total: 4, min: 1, max: 3 }));
    assert_eq!(content.jsonl.lines().count(), 2, "blank lines are left out");
    assert_eq!(content.audio_s, None);
}

#[test]
fn every_faulty_line_is_named() {
    let text = "{\"prompt\": \"fine\"}\n\n{\"prompt\": \" \"}\nnot json\n{\"text\": \"x\"}\n{\"prompt\": \"y\", \"expected_output_tokens\": 0}\n";
    assert_eq!(faulty(PromptSourceType::PromptLibrary, text), [3, 4, 5, 6]);
    assert_eq!(faulty(PromptSourceType::PromptLibrary, " \n"), [0]);
    let faults = jsonl(PromptSourceType::PromptLibrary, text).unwrap_err();
    let refusal = refuse("the library", &faults);
    assert!(refusal.message.contains("line 3: prompt is empty"), "{}", refusal.message);
    assert!(refusal.details.unwrap().contains("line 4"));
}

#[test]
fn audio_has_one_place_and_ids_of_its_own() {
    let asr = PromptSourceType::MetrumbenchAsrSnapshot;
    let good = lines(&[
        json!({"id": "a", "path": "a.flac", "duration": 1.5}),
        json!({"id": "b", "url": "https://h/b.mp3", "format": "MP3", "duration": 2.5}),
    ]);
    let content = jsonl(asr, &good).unwrap();
    assert_eq!((content.rows, content.audio_s, content.local_paths), (2, Some(4.0), true));
    let bad = lines(&[
        json!({"id": "a", "path": "a", "url": "https://h/a"}),
        json!({"id": "b"}),
        json!({"id": "c", "url": "file:///etc/passwd"}),
        json!({"id": "d", "path": "d", "duration": 0}),
        json!({"id": "e", "path": "e", "format": "aiff"}),
        json!({"id": "f", "path": "f"}),
        json!({"id": "f", "path": "g"}),
    ]);
    assert_eq!(faulty(asr, &bad), [1, 2, 3, 4, 5, 7]);
    // A length that is not told is not zero.
    let untold = lines(&[json!({"id": "a", "path": "a"}), json!({"id": "b", "path": "b", "duration": 1})]);
    assert_eq!(jsonl(asr, &untold).unwrap().audio_s, None);
}

#[test]
fn transcripts_belong_to_audio_that_is_there() {
    let ids: BTreeSet<String> = ["a".to_owned(), "b".to_owned()].into();
    let text = lines(&[json!({"id": "a", "transcript": "x"}), json!({"id": "c", "transcript": "y"})]);
    let faults = read_transcripts(&text, &ids).unwrap_err();
    assert_eq!(faults[0].line, 2);
    assert_eq!(read_transcripts(&lines(&[json!({"id": "b", "transcript": "x"})]), &ids), Ok(()));
}

#[test]
fn images_and_sizes_are_checked() {
    let vlm = PromptSourceType::MetrumbenchVlmSnapshot;
    let text = lines(&[
        json!({"prompt": "p", "image_urls": ["https://h/1.jpg"]}),
        json!({"prompt": "p", "image_urls": []}),
        json!({"prompt": "p"}),
    ]);
    assert_eq!(faulty(vlm, &text), [2, 3]);
    let remote = lines(&[json!({"prompt": "p", "image_urls": ["https://h/1.jpg"]})]);
    assert!(!jsonl(vlm, &remote).unwrap().local_paths);
    let local = lines(&[json!({"prompt": "p", "image_urls": ["file:///etc/passwd"]})]);
    assert!(jsonl(vlm, &local).unwrap().local_paths);
    let sizes = lines(&[json!({"prompt": "p", "size": "64x64"}), json!({"prompt": "p", "size": "huge"})]);
    assert_eq!(faulty(PromptSourceType::MetrumbenchImagegenSnapshot, &sizes), [2]);
}

#[test]
fn questions_come_as_csv_with_their_two_mandatory_fields() {
    let text = "instruction,ground_truth_response,topic\n\"What, then?\",\"4\nor 5\",maths\nWhy?,Because,\n";
    let content = read_csv(text).unwrap();
    assert_eq!(content.rows, 2);
    let first: Value = serde_json::from_str(content.jsonl.lines().next().unwrap()).unwrap();
    assert_eq!(first["ground_truth_response"], "4\nor 5");
    assert_eq!(first["topic"], "maths");
    let at = |text: &str| read_csv(text).unwrap_err()[0].line;
    assert_eq!(at("instruction,answer\na,b\n"), 1);
    assert_eq!(at("instruction,ground_truth_response\na,b\n\"c\nd\",\n"), 3, "the line where the row begins");
    assert_eq!(at("instruction,ground_truth_response\na,b,c\n"), 2);
}

#[test]
fn a_source_fits_the_tool_of_its_kind() {
    assert!(takes(ToolCode::MetrumbenchLlm, PromptSourceType::PromptLibrary));
    assert!(!takes(ToolCode::MetrumbenchAsr, PromptSourceType::PromptLibrary));
    assert!(!takes(ToolCode::GenaiPerf, PromptSourceType::PromptLibrary), "synthetic only");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_lines_that_are_there(text in "(\\PC|[\\{\\}\":,\n\r\\[\\]])*", which in 0usize..5) {
        let count = text.lines().count();
        if let Err(faults) = jsonl(PromptSourceType::ALL[which], &text) {
            prop_assert!(!faults.is_empty() && faults.iter().all(|fault| fault.line <= count));
        }
        if let Err(faults) = read_csv(&text) {
            prop_assert!(!faults.is_empty());
        }
    }

    #[test]
    fn what_is_taken_is_what_was_sent(prompts in prop::collection::vec("[a-z][a-z ]{0,20}", 1..20)) {
        let text = lines(&prompts.iter().map(|prompt| json!({"prompt": prompt})).collect::<Vec<_>>());
        let content = jsonl(PromptSourceType::PromptLibrary, &text).unwrap();
        prop_assert_eq!(content.rows as usize, prompts.len());
        prop_assert_eq!(content.jsonl, text);
    }
}
