//! GenAI-Perf, NVIDIA's load tool. It writes into a folder that it names after model and load below the one it is given.

use std::path::{Path, PathBuf};

use events::foreign::{self, Format};
use events::tools::ToolCode;

use super::external::{External, Read, folder, why};
use super::{Measured, SummaryError, SummaryLine, ToolFiles, whole_file};

/// The file it writes its figures to.
const RESULT: &str = "profile_export_genai_perf.json";

/// The adapter.
pub fn tool() -> External {
    External { tool: ToolCode::GenaiPerf, model_option: "--model", find, read }
}

fn find(files: &ToolFiles) -> Result<SummaryLine, SummaryError> {
    let root = folder(files).join("genai-perf");
    match below(&root, 3) {
        Some(path) => whole_file(&path),
        None => Err(SummaryError::Missing { path: root.join(RESULT) }),
    }
}

/// The result in a folder, at most so many levels down.
fn below(folder: &Path, levels: u32) -> Option<PathBuf> {
    let direct = folder.join(RESULT);
    if direct.is_file() {
        return Some(direct);
    }
    let levels = levels.checked_sub(1)?;
    let entries = std::fs::read_dir(folder).ok()?;
    entries.flatten().filter(|entry| entry.path().is_dir()).find_map(|entry| below(&entry.path(), levels))
}

fn read(_: &Measured<'_>, text: &str) -> Result<Read, String> {
    let mut results = foreign::read(Format::GenaiPerf, text.as_bytes()).map_err(why)?;
    let result = results.pop().ok_or("it holds no result")?;
    Ok(Read { load: result.load, figures: result.figures, ..Read::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Tool;

    #[test]
    fn the_result_is_found_below_the_folder_it_was_given() {
        let folder = tempfile::tempdir().unwrap();
        let files = ToolFiles::inside(folder.path());
        assert!(matches!(tool().summary(&files), Err(SummaryError::Missing { .. })));
        let inner = folder.path().join("genai-perf/m-openai-chat-concurrency8");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join(RESULT), "{}").unwrap();
        assert_eq!(tool().summary(&files).unwrap().line, "{}");
    }
}
