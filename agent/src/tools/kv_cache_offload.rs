//! KV cache offload: a runner on the host replays conversations and writes one summary line.

use events::external_figures::read_kv_cache;
use events::tools::ToolCode;

use super::external::{External, Read};
use super::{Measured, SummaryError, SummaryLine, ToolFiles, last_line};

/// The adapter.
pub fn tool() -> External {
    External { tool: ToolCode::KvCacheOffload, model_option: "--model", find, read }
}

fn find(files: &ToolFiles) -> Result<SummaryLine, SummaryError> {
    last_line(&files.data_log)
}

fn read(_: &Measured<'_>, line: &str) -> Result<Read, String> {
    let (load, figures, kv_cache) = read_kv_cache(line)?;
    Ok(Read { load, figures, kv_cache: Some(kv_cache), ..Read::default() })
}
