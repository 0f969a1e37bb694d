//! A summary that can be read survives being written, and flattens into columns.
#![no_main]

use events::summary::Summary;
use events::summary_columns::{column_names, columns};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(summary) = serde_json::from_str::<Summary>(text) else { return };
    let written = serde_json::to_string(&summary).expect("what was read can be written");
    let again: Summary = serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(again, summary);
    assert_eq!(columns(&summary.figures).len(), column_names().len());
});
