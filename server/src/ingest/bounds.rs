//! Bounds of what a report may hold. A number outside them is a defect of its sender and would be a wrong number here.

use events::external_figures::{check_figures, check_kv_cache, check_kyai};
use events::report::ReportBody;
use events::server_host::HostCapabilities;
use events::summary::Summary;
use events::summary_columns;
use events::system::BlobStored;
use events::telemetry::TelemetrySampled;
use events::tool_output::{LogLines, ProgressReported};
use events::tools::ToolCode;
use serde_json::Value;

use super::Refused;

const MOST_SAMPLES: usize = 20;
const MOST_DEVICES: usize = 256;
const MOST_LINES: usize = 1000;
const LONGEST_LINE: usize = 16 << 10;
/// The largest number up to which every whole number is one that every reader of JSON agrees on: 2^53.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
/// A year in seconds.
const LONGEST_S: f64 = 366.0 * 86_400.0;
/// Parts of the names of figures that can be below zero: differences of two clocks.
const MAY_BE_NEGATIVE: &[&str] = &["skew", "offset", "schedule_delay"];
/// A window's length and its two moments may differ by this much, seconds: both are rounded.
const WINDOW_TOLERANCE_S: f64 = 0.001;
/// A fraction may be this much above 1: two clocks were read to compute it.
const ABOVE_ONE: f64 = 0.01;

/// Checks a report's own values, whoever sent it.
///
/// # Errors
/// [`Refused`] names the value and its bounds.
pub(super) fn check(body: &ReportBody, max_blob_bytes: u64) -> Result<(), Refused> {
    numbers_are_exact(body)?;
    match body {
        ReportBody::Telemetry { telemetry, .. } => telemetry_is_sane(telemetry),
        ReportBody::Progress { progress, .. } => progress_is_sane(progress),
        ReportBody::Log { log, .. } => log_is_sane(log),
        ReportBody::Blob { blob, .. } => blob_is_sane(blob, max_blob_bytes),
        ReportBody::Capabilities { capabilities } => capabilities_are_sane(capabilities),
        ReportBody::Running { running, .. } => duration("ready_after_s", running.ready_after_s),
        ReportBody::ToolOutput { output, .. } => figures_are_sane(&output.summary),
        ReportBody::ExternalOutput { output, .. } => {
            check_figures(&output.figures).map_err(|why| bad(why, "a number of at least 0"))?;
            let own = output.kv_cache.as_ref().map_or(Ok(()), check_kv_cache);
            let own = own.and_then(|()| output.kyai.as_ref().map_or(Ok(()), check_kyai));
            own.map_err(|why| bad(why, "what the tool's runner may say"))?;
            output.figures.window_s.map_or(Ok(()), |window| duration("window_s", window))
        }
        ReportBody::Serving { .. }
        | ReportBody::Completed { .. }
        | ReportBody::Failed { .. }
        | ReportBody::Cancelled { .. } => Ok(()),
    }
}

/// Refuses numbers that JSON's readers do not agree on, and that no column holds. What a tool was configured with is
/// the user's own (a seed has 64 bits) and is kept as it is.
fn numbers_are_exact(body: &ReportBody) -> Result<(), Refused> {
    let value = serde_json::to_value(body).map_err(|error| bad(error, "JSON"))?;
    match inexact(&value, &mut Vec::new()) {
        None => Ok(()),
        Some((path, number)) => Err(bad(format_args!("{path} {number}"), "between -2^53 and 2^53")),
    }
}

/// The first number beyond 2^53, with its path.
fn inexact(value: &Value, path: &mut Vec<String>) -> Option<(String, String)> {
    match value {
        Value::Number(number) => {
            let exact = number.as_f64().is_some_and(|n| n.abs() <= LARGEST_EXACT);
            (!exact).then(|| (path.join("."), number.to_string()))
        }
        Value::Array(items) => items.iter().find_map(|item| inexact(item, path)),
        Value::Object(members) => {
            members.iter().filter(|(name, _)| *name != "config").find_map(|(name, member)| {
                path.push(name.clone());
                let found = inexact(member, path);
                path.pop();
                found
            })
        }
        _ => None,
    }
}

/// No figure of a result is negative: durations, counts and rates are not.
fn figures_are_sane(summary: &Summary) -> Result<(), Refused> {
    let tool = ToolCode::of(&summary.tool).unwrap_or(ToolCode::MetrumbenchLlm);
    for (name, value) in summary_columns::columns_of(tool, &summary.figures) {
        if !MAY_BE_NEGATIVE.iter().any(|part| name.contains(part)) {
            value.map_or(Ok(()), |value| not_negative(&name, value))?;
        }
    }
    summary.figures.window_s.map_or(Ok(()), |window| duration("window_s", window))?;
    window_is_one(summary)
}

/// The window's two moments are as far apart as the summary says that it lasted.
fn window_is_one(summary: &Summary) -> Result<(), Refused> {
    let (opened, closed) = match (summary.window_started_at, summary.window_ended_at) {
        (None, None) => return Ok(()),
        (Some(opened), Some(closed)) => (opened, closed),
        _ => return Err(bad("a window with one end", "window_started_at and window_ended_at, or neither")),
    };
    let apart = closed.micros_since(opened) as f64 / 1e6;
    match summary.figures.window_s {
        Some(window) if (apart - window).abs() <= WINDOW_TOLERANCE_S => Ok(()),
        window => Err(bad(
            format_args!("a window from {opened} to {closed} ({apart} s)"),
            &window.map_or("absent: window_s is null".into(), |window| format!("window_s apart, {window} s")),
        )),
    }
}

/// Seconds of anything a job does: not negative, and at most a year.
fn duration(what: &str, seconds: f64) -> Result<(), Refused> {
    if seconds.is_finite() && (0.0..=LONGEST_S).contains(&seconds) {
        return Ok(());
    }
    Err(bad(format_args!("{what} {seconds}"), "a number of seconds from 0 to a year"))
}

/// Whether something occurs twice in a short list.
fn twice<T: PartialEq>(items: impl IntoIterator<Item = T>) -> bool {
    let mut seen: Vec<T> = Vec::new();
    for item in items {
        if seen.contains(&item) {
            return true;
        }
        seen.push(item);
    }
    false
}

fn bad(what: impl std::fmt::Display, bounds: &str) -> Refused {
    Refused::new("bad_value", format!("{what} is out of bounds"), format!("it must be {bounds}"))
}

fn fraction(what: &str, value: f64) -> Result<(), Refused> {
    if value.is_finite() && (0.0..=1.0 + ABOVE_ONE).contains(&value) {
        return Ok(());
    }
    Err(bad(format_args!("{what} {value}"), "a fraction between 0 and 1"))
}

fn percent(what: &str, value: f64) -> Result<(), Refused> {
    if value.is_finite() && (0.0..=100.0 * (1.0 + ABOVE_ONE)).contains(&value) {
        return Ok(());
    }
    Err(bad(format_args!("{what} {value}"), "a percentage between 0 and 100"))
}

fn not_negative(what: &str, value: f64) -> Result<(), Refused> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(bad(format_args!("{what} {value}"), "a number of at least 0"))
}

fn telemetry_is_sane(telemetry: &TelemetrySampled) -> Result<(), Refused> {
    if telemetry.seq == 0 {
        return Err(bad("seq 0", "1 for the attempt's first event, then one more for each"));
    }
    if !(10..=60_000).contains(&telemetry.interval_ms) {
        return Err(bad(format_args!("interval_ms {}", telemetry.interval_ms), "10 to 60000"));
    }
    if telemetry.samples.is_empty() || telemetry.samples.len() > MOST_SAMPLES {
        return Err(bad(format_args!("a number of {} samples", telemetry.samples.len()), "1 to 20"));
    }
    if telemetry.samples.windows(2).any(|pair| pair[0].at >= pair[1].at) {
        return Err(bad("the order of the samples", "oldest first, no time twice"));
    }
    for sample in &telemetry.samples {
        if [sample.gpus.len(), sample.cpus.len(), sample.tpus.len()].iter().any(|count| *count > MOST_DEVICES)
        {
            return Err(bad("a number of devices", "at most 256 of a kind"));
        }
        if twice(sample.gpus.iter().map(|gpu| gpu.gpu))
            || twice(sample.cpus.iter().map(|cpu| cpu.socket))
            || twice(sample.tpus.iter().map(|tpu| tpu.chip))
        {
            return Err(bad("a device that stands twice in a sample", "one entry a device"));
        }
        for gpu in &sample.gpus {
            gpu.power_w.map_or(Ok(()), |value| not_negative("power_w", value))?;
            gpu.utilization.map_or(Ok(()), |value| fraction("utilization", value))?;
        }
        for tpu in &sample.tpus {
            for (name, value) in [
                ("duty_cycle_pct", tpu.duty_cycle_pct),
                ("tensor_core_utilization_pct", tpu.tensor_core_utilization_pct),
            ] {
                value.map_or(Ok(()), |value| percent(name, value))?;
            }
        }
        sample.cpus.iter().try_for_each(|cpu| fraction("utilization", cpu.utilization))?;
        sample.system.power_w.map_or(Ok(()), |value| not_negative("power_w", value))?;
    }
    Ok(())
}

fn progress_is_sane(progress: &ProgressReported) -> Result<(), Refused> {
    if progress.seq == 0 {
        return Err(bad("seq 0", "1 for the attempt's first report, then one more for each"));
    }
    if progress.phase.is_empty() || progress.phase.len() > 40 {
        return Err(bad("phase", "a word of at most 40 bytes"));
    }
    if progress.failed > progress.done {
        return Err(bad(
            format_args!("failed {} of {} done", progress.failed, progress.done),
            "at most the requests done, which include it",
        ));
    }
    not_negative("elapsed_s", progress.elapsed_s)?;
    progress.requests_per_second.map_or(Ok(()), |value| not_negative("requests_per_second", value))?;
    let tokens = progress.completion_tokens_per_second;
    tokens.map_or(Ok(()), |value| not_negative("completion_tokens_per_second", value))?;
    progress.ttft_p50_ms.map_or(Ok(()), |value| not_negative("ttft_p50_ms", value))
}

fn log_is_sane(log: &LogLines) -> Result<(), Refused> {
    if log.first_line == 0 {
        return Err(bad("first_line 0", "1 for the first line of a source in the attempt"));
    }
    if log.lines.is_empty() || log.lines.len() > MOST_LINES {
        return Err(bad(format_args!("a number of {} lines", log.lines.len()), "1 to 1000"));
    }
    match log.lines.iter().map(String::len).max() {
        Some(longest) if longest > LONGEST_LINE => Err(bad(
            format_args!("a line of {longest} bytes"),
            "at most 16 KiB; what is longer goes to a blob",
        )),
        _ => Ok(()),
    }
}

/// Whether a text is a SHA-256 in lower-case hexadecimal.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn blob_is_sane(blob: &BlobStored, max_blob_bytes: u64) -> Result<(), Refused> {
    if !is_sha256(&blob.sha256) {
        return Err(bad("sha256", "64 lower-case hexadecimal digits"));
    }
    if blob.size > max_blob_bytes {
        return Err(bad(format_args!("size {}", blob.size), &format!("at most {max_blob_bytes} bytes")));
    }
    if blob.media_type.len() > 200 || blob.purpose.is_empty() || blob.purpose.len() > 100 {
        return Err(bad("media_type or purpose", "a short text"));
    }
    Ok(())
}

fn capabilities_are_sane(capabilities: &HostCapabilities) -> Result<(), Refused> {
    if capabilities.gpus.len() > MOST_DEVICES {
        return Err(bad(format_args!("a number of {} GPUs", capabilities.gpus.len()), "at most 256"));
    }
    if capabilities.executables.len() > 1000 || capabilities.models.len() > 1000 {
        return Err(bad("a number of executables or models", "at most 1000"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::telemetry::{CpuSample, SystemSample, TelemetrySample};
    use events::timestamp::Timestamp;

    fn telemetry(utilization: f64) -> TelemetrySampled {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000).unwrap();
        let sample = |seconds| TelemetrySample {
            at: at(seconds),
            gpus: vec![],
            cpus: vec![CpuSample { socket: 0, utilization }],
            tpus: vec![],
            system: SystemSample::default(),
        };
        TelemetrySampled { seq: 1, interval_ms: 500, samples: vec![sample(1), sample(2)] }
    }

    #[test]
    fn a_utilization_is_a_fraction() {
        assert!(telemetry_is_sane(&telemetry(0.5)).is_ok());
        for value in [-0.1, 1.5, 73.0, f64::NAN] {
            assert_eq!(telemetry_is_sane(&telemetry(value)).unwrap_err().code, "bad_value", "{value}");
        }
    }

    #[test]
    fn samples_stand_in_the_order_of_time() {
        let mut telemetry = telemetry(0.5);
        telemetry.samples.reverse();
        assert!(telemetry_is_sane(&telemetry).is_err());
    }

    #[test]
    fn a_device_stands_once_in_a_sample() {
        let mut telemetry = telemetry(0.5);
        telemetry.samples[0].cpus.push(CpuSample { socket: 0, utilization: 0.1 });
        assert_eq!(telemetry_is_sane(&telemetry).unwrap_err().code, "bad_value");
    }

    #[test]
    fn numbers_that_no_column_holds_are_refused_by_their_path() {
        let job = crate::domain::testing::job_key();
        let progress = |done: u64| {
            serde_json::from_value::<ReportBody>(serde_json::json!({
                "kind": "progress", "job": job, "attempt": 1,
                "progress": {"seq": 1, "phase": "running", "done": done, "total": 5, "failed": 0, "in_flight": 1,
                             "elapsed_s": 1.0},
            }))
            .unwrap()
        };
        assert!(check(&progress(1 << 53), 0).is_ok());
        for done in [(1 << 53) + 2, 1 << 63, u64::MAX] {
            let refused = check(&progress(done), 0).unwrap_err();
            assert!(refused.message.contains("progress.done"), "{}", refused.message);
        }
    }

    #[test]
    fn a_negative_figure_is_refused_by_its_name() {
        let mut summary = crate::quality::testing::output(1).summary;
        assert!(figures_are_sane(&summary).is_ok());
        summary.figures.window_s = Some(-5.0);
        assert!(figures_are_sane(&summary).unwrap_err().message.contains("window_s"));
        summary.figures.window_s = Some(1e300);
        assert!(figures_are_sane(&summary).is_err());
    }

    #[test]
    fn a_window_is_as_long_as_its_moments_are_apart() {
        let mut summary = crate::quality::testing::output(1).summary;
        summary.figures.window_s = Some(60.0);
        summary.window_ended_at = "2026-11-29T22:01:00.000400Z".parse().ok();
        assert!(figures_are_sane(&summary).unwrap_err().message.contains("one end"));
        for (opened, window_s, good) in [
            ("2026-11-29T22:00:00Z", Some(60.0), true),
            ("2026-11-29T22:00:01Z", Some(60.0), false),
            ("2026-11-29T22:02:00.0004Z", Some(60.0), false),
            ("2026-11-29T22:00:00Z", None, false),
        ] {
            (summary.window_started_at, summary.figures.window_s) = (opened.parse().ok(), window_s);
            assert_eq!(figures_are_sane(&summary).is_ok(), good, "{opened}, {window_s:?}");
        }
    }

    #[test]
    fn a_hash_has_one_spelling() {
        assert!(is_sha256(&"0a".repeat(32)));
        assert!(!is_sha256(&"0A".repeat(32)));
        assert!(!is_sha256("../../etc/passwd"));
    }
}
