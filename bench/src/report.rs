//! The closing table, for people.

use std::fmt::Write;

use events::summary::{CountStats, Distribution, Summary};

/// The table.
pub fn table(summary: &Summary) -> String {
    let mut out = String::new();
    let figures = &summary.figures;
    let requests = &figures.requests;
    let number =
        |value: Option<f64>, digits: usize| value.map_or("-".into(), |value| format!("{value:.digits$}"));
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
    let rates = &figures.throughput;
    let _ = writeln!(
        out,
        "  throughput {} req/s, {} output tok/s, {} total tok/s",
        number(rates.requests_per_second, 2),
        number(rates.completion_tokens_per_second, 1),
        number(rates.total_tokens_per_second, 1),
    );
    if let Some(goodput) = &figures.goodput {
        let share = number(goodput.fraction.map(|fraction| fraction * 100.0), 1);
        let _ = writeln!(
            out,
            "  goodput    {} req/s, {share} % of requests",
            number(goodput.requests_per_second, 2)
        );
    }
    let _ = writeln!(
        out,
        "\n  {:<22}{:>8}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}",
        "milliseconds", "n", "avg", "p50", "p90", "p95", "p99", "max"
    );
    let rows: [(&str, &Option<Distribution>); 9] = [
        ("response time", &figures.response_time_ms),
        ("time to first token", &figures.ttft_ms),
        ("… of any kind", &figures.first_token_ms),
        ("… of reasoning", &figures.first_reasoning_ms),
        ("per output token", &figures.tpot_ms),
        ("… without the first", &figures.tpot_excl_first_ms),
        ("between chunks", &figures.inter_chunk_ms),
        ("schedule delay", &figures.schedule_delay_ms),
        ("from schedule", &figures.response_time_from_schedule_ms),
    ];
    for (name, row) in rows {
        let Some(row) = row else { continue };
        let values = [row.avg, row.p50, row.p90, row.p95, row.p99, row.max];
        let _ = write!(out, "  {name:<22}{:>8}", row.n);
        for value in values {
            let _ = write!(out, "{:>11}", number(value, 2));
        }
        let note = if row.unreliable.is_empty() {
            String::new()
        } else {
            format!("  few samples for {}", row.unreliable.join(" "))
        };
        let _ = writeln!(out, "{note}");
    }
    let counts: [(&str, &Option<CountStats>); 4] = [
        ("prompt tokens", &figures.prompt_tokens),
        ("… from cache", &figures.cached_prompt_tokens),
        ("completion tokens", &figures.completion_tokens),
        ("… for reasoning", &figures.reasoning_tokens),
    ];
    for (name, row) in counts {
        let Some(row) = row else { continue };
        let _ = writeln!(out, "  {name:<22}{:>8}{:>11}   total {}", row.n, number(row.avg, 1), row.total);
    }
    let errors = &figures.errors;
    if errors.count > 0 {
        let _ = writeln!(out, "\n  {} failed ({} %):", errors.count, number(errors.rate_pct, 2));
        for sample in &errors.samples {
            let status = sample.status.map_or(String::new(), |status| format!(" {status}"));
            let _ = writeln!(out, "    {}× {}{status}: {}", sample.count, sample.kind, sample.message);
        }
        if errors.oom_detected {
            let _ = writeln!(out, "    the server ran out of memory");
        }
    }
    if let Some(reason) = &summary.client.limited_reason {
        let _ = writeln!(out, "\n  The load generator, not the server, may have set the pace: {reason}.");
    }
    if !summary.flags.is_empty() {
        let _ = writeln!(out, "  flags: {}", summary.flags.join(", "));
    }
    out
}
