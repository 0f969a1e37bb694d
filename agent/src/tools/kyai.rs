//! KYAI: a runner on the host asks fixed questions, has the answers judged, and writes one summary line.

use events::external_figures::read_kyai;
use events::tools::ToolCode;

use super::external::{External, Read};
use super::{Measured, SummaryError, SummaryLine, ToolFiles, last_line};

/// The adapter.
pub fn tool() -> External {
    External { tool: ToolCode::Kyai, model_option: "--model", find, read }
}

fn find(files: &ToolFiles) -> Result<SummaryLine, SummaryError> {
    last_line(&files.data_log)
}

fn read(_: &Measured<'_>, line: &str) -> Result<Read, String> {
    let (load, figures, kyai) = read_kyai(line)?;
    Ok(Read { load, figures, kyai: Some(kyai), ..Read::default() })
}
