//! The closing table, for people.

use std::fmt::Write;

use events::summary::{CountStats, Distribution, Errors, Figures, Summary};

/// The table.
pub fn table(summary: &Summary) -> String {
    let mut out = String::new();
    let figures = &summary.figures;
    let requests = &figures.requests;
    let simulated = if summary.simulated { "  (simulated: the reference server answered)" } else { "" };
    let _ = writeln!(out, "\n{}  {}{simulated}", summary.tool, summary.readable_id);
    let _ = writeln!(
        out,
        "  requests   {} ok, {} failed, {} incomplete of {} in {} s (discarded: {} warm-up, {} ramp-up)",
        requests.succeeded,
        requests.failed,
        requests.incomplete,
        requests.attempted,
        number(figures.window_s, 2),
        requests.warmup,
        requests.ramp_up,
    );
    let _ = writeln!(out, "  throughput {}", rates(figures).join(", "));
    if let Some(goodput) = &figures.goodput {
        let share = number(goodput.fraction.map(|fraction| fraction * 100.0), 1);
        let _ = writeln!(
            out,
            "  goodput    {} req/s, {share} % of requests",
            number(goodput.requests_per_second, 2)
        );
    }
    distributions(
        &mut out,
        "milliseconds",
        &[
            ("response time", &figures.response_time_ms),
            ("time to first token", &figures.ttft_ms),
            ("… of any kind", &figures.first_token_ms),
            ("… of reasoning", &figures.first_reasoning_ms),
            ("per output token", &figures.tpot_ms),
            ("… without the first", &figures.tpot_excl_first_ms),
            ("between chunks", &figures.inter_chunk_ms),
            ("schedule delay", &figures.schedule_delay_ms),
            ("from schedule", &figures.response_time_from_schedule_ms),
            ("image preparation", &figures.vlm.image_processing_ms),
            ("inference", &figures.asr.inference_time_ms),
        ],
    );
    distributions(
        &mut out,
        "transcripts",
        &[
            ("real-time factor", &figures.asr.rtf),
            ("words a second", &figures.asr.words_per_second),
            ("characters a second", &figures.asr.characters_per_second),
            ("word errors, %", &figures.asr.wer),
            ("character errors, %", &figures.asr.cer),
        ],
    );
    distributions(&mut out, "images", &[("bytes of an image", &figures.imagegen.image_size_bytes)]);
    let counts: [(&str, &Option<CountStats>); 7] = [
        ("prompt tokens", &figures.prompt_tokens),
        ("… from cache", &figures.cached_prompt_tokens),
        ("completion tokens", &figures.completion_tokens),
        ("… for reasoning", &figures.reasoning_tokens),
        ("image bytes", &figures.vlm.image_bytes),
        ("bytes sent", &figures.asr.bytes_sent),
        ("bytes received", &figures.asr.bytes_received),
    ];
    for (name, row) in counts {
        let Some(row) = row else { continue };
        let _ = writeln!(out, "  {name:<22}{:>8}{:>11}   total {}", row.n, number(row.avg, 1), row.total);
    }
    if let (Some(returned), Some(requested)) =
        (figures.imagegen.images_returned, figures.imagegen.images_requested)
    {
        let _ = writeln!(out, "  {returned} images of {requested} asked for");
    }
    failures(&mut out, &figures.errors);
    if let Some(reason) = &summary.client.limited_reason {
        let _ = writeln!(out, "\n  The load generator, not the server, may have set the pace: {reason}.");
    }
    if !summary.flags.is_empty() {
        let _ = writeln!(out, "  flags: {}", summary.flags.join(", "));
    }
    out
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}

/// The rates of the run's own kind: tokens, seconds of audio, or images.
fn rates(figures: &Figures) -> Vec<String> {
    let (tokens, asr, images) = (&figures.throughput, &figures.asr, &figures.imagegen);
    let mut shown = vec![format!("{} req/s", number(tokens.requests_per_second, 2))];
    if asr.inference_time_ms.is_some() {
        shown.push(format!("{} s of audio a second", number(asr.audio_seconds_per_second, 2)));
        shown.push(format!("{} bytes/s", number(asr.bytes_transferred_per_second, 0)));
    } else if images.images_requested.is_some() {
        shown.push(format!("{} images/s", number(images.images_per_second, 3)));
        shown.push(format!("{} megapixels/s", number(images.megapixels_per_second, 3)));
    } else {
        shown.push(format!("{} output tok/s", number(tokens.completion_tokens_per_second, 1)));
        shown.push(format!("{} total tok/s", number(tokens.total_tokens_per_second, 1)));
    }
    shown
}

/// Rows of distributions below a heading; nothing where none of them was measured.
fn distributions(out: &mut String, heading: &str, rows: &[(&str, &Option<Distribution>)]) {
    if rows.iter().all(|(_, row)| row.is_none()) {
        return;
    }
    let _ = writeln!(
        out,
        "\n  {heading:<22}{:>8}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}",
        "n", "avg", "p50", "p90", "p95", "p99", "max"
    );
    for (name, row) in rows {
        let Some(row) = row else { continue };
        let values = [row.avg, row.p50, row.p90, row.p95, row.p99, row.max];
        let _ = write!(out, "  {name:<22}{:>8}", row.n);
        // A real-time factor of a thousandth is one.
        let digits = if values.iter().flatten().all(|value| value.abs() < 1.0) { 4 } else { 2 };
        for value in values {
            let _ = write!(out, "{:>11}", number(value, digits));
        }
        let note = if row.unreliable.is_empty() {
            String::new()
        } else {
            format!("  few samples for {}", row.unreliable.join(" "))
        };
        let _ = writeln!(out, "{note}");
    }
}

fn failures(out: &mut String, errors: &Errors) {
    if errors.count == 0 {
        return;
    }
    let _ = writeln!(out, "\n  {} failed ({} %):", errors.count, number(errors.rate_pct, 2));
    for sample in &errors.samples {
        let status = sample.status.map_or(String::new(), |status| format!(" {status}"));
        let message = for_a_terminal(&sample.message);
        let _ = writeln!(out, "    {}× {}{status}: {message}", sample.count, sample.kind);
    }
    if errors.oom_detected {
        let _ = writeln!(out, "    the server ran out of memory");
    }
}

/// What a server said, on one line and without the characters that command a terminal.
fn for_a_terminal(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_commands_no_terminal() {
        assert_eq!(for_a_terminal("bad\x1b]0;title\x07\nrequest"), "bad ]0;title  request");
    }
}
