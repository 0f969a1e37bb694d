//! Numbers, durations and times as the page writes them: three significant digits, thin-space thousands,
//! "–" for what was not measured (never 0).

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What stands where nothing was measured.
pub const ABSENT: &str = "–";

/// The narrow no-break space between thousands.
const THIN: char = '\u{202f}';

/// Three significant digits; whole numbers from 1 000 on, their thousands parted: `0.0506`, `15.6`, `3 956`.
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if magnitude >= 2 {
        return thousands(value.round());
    }
    let decimals = (2 - magnitude).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    // Rounding can carry into one more digit: 9.996 is 10.0, not 10.00.
    let carried = text.parse::<f64>().map_or(0, |v| v.abs().log10().floor() as i32);
    let text = if carried > magnitude {
        let decimals = (2 - carried).max(0) as usize;
        if carried >= 2 { return thousands(value.round()) } else { format!("{value:.decimals$}") }
    } else {
        text
    };
    minus(&text)
}

/// [`significant`], or "–".
pub fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), significant)
}

/// A count: every digit, thousands parted.
pub fn count(value: i64) -> String {
    thousands(value as f64)
}

/// A count, or "–".
pub fn maybe_count(value: Option<i64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), count)
}

/// Every digit there is, for hover and copies: `3955.9912`.
pub fn full(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value}") }
}

/// A signed percentage: `+3.7`, `−0.3`, `+154`; `±0.0` for less than a twentieth of a per cent.
pub fn signed_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let size = percent.abs();
    let text = if size < 99.95 { format!("{size:.1}") } else { thousands(size.round()) };
    match percent {
        _ if text == "0.0" => "±0.0".to_owned(),
        p if p < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

fn thousands(whole: f64) -> String {
    let digits = format!("{:.0}", whole.abs());
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(THIN);
        }
        text.push(digit);
    }
    if whole < 0.0 { format!("−{text}") } else { text }
}

fn minus(text: &str) -> String {
    text.strip_prefix('-').map_or_else(|| text.to_owned(), |rest| format!("−{rest}"))
}

/// Bytes in gigabytes (10^9), as the methodology counts memory.
pub fn gigabytes(bytes: f64) -> f64 {
    bytes / 1e9
}

/// `1 line`, `78 lines`.
pub fn counted(number: i64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A length of time for people: `0.7 s`, `46 s`, `2:23 min`, `1:07 h`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as i64;
    match whole {
        _ if seconds < 9.95 => format!("{:.1} s", seconds.max(0.0)),
        0..60 => format!("{whole} s"),
        60..3600 => format!("{}:{:02} min", whole / 60, whole % 60),
        _ => format!("{}:{:02} h", whole / 3600, whole % 3600 / 60),
    }
}

/// How long ago: `3 s`, `4 min`, `2 h`, `5 d`.
pub fn ago(seconds: f64) -> String {
    let whole = seconds.max(0.0) as i64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min", whole / 60),
        3600..86_400 => format!("{} h", whole / 3600),
        _ => format!("{} d", whole / 86_400),
    }
}

/// Milliseconds since 1970 of an ISO 8601 time.
pub fn millis(text: &str) -> Option<f64> {
    // Databases write `+00` and a space; both are a colon and a `T` away from RFC 3339.
    let mut text = text.trim().replacen(' ', "T", 1);
    if let Some(sign) = text.rfind(['+', '-']).filter(|at| *at > 18)
        && text.len() - sign == 3
    {
        text.push_str(":00");
    }
    let at = OffsetDateTime::parse(&text, &Rfc3339).ok()?;
    Some((at.unix_timestamp_nanos() / 1_000) as f64 / 1_000.0)
}

fn at(ms: f64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos((ms * 1e6) as i128).ok()
}

/// `20:41:07`, UTC.
pub fn clock(ms: f64) -> String {
    at(ms)
        .map_or_else(|| ABSENT.to_owned(), |t| format!("{:02}:{:02}:{:02}", t.hour(), t.minute(), t.second()))
}

/// `20:41:07.409`, UTC.
pub fn clock_ms(ms: f64) -> String {
    at(ms).map_or_else(|| ABSENT.to_owned(), |t| format!("{}.{:03}", clock(ms), t.millisecond()))
}

/// A moment as a query's condition has it, to the millisecond: `2026-11-29T20:41:07.409Z`.
pub fn stamp(ms: f64) -> String {
    at(ms).map_or_else(String::new, |t| {
        format!("{}-{:02}-{:02}T{}Z", t.year(), u8::from(t.month()), t.day(), clock_ms(ms))
    })
}

/// A number of bytes for people.
pub fn size(bytes: i64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 => format!("{} MiB", significant(bytes as f64 / f64::from(1 << 20))),
        _ => format!("{} KiB", significant(bytes as f64 / 1024.0)),
    }
}

/// `20:41` today, `28 Nov 20:41` on another day, UTC.
pub fn moment(ms: f64, now_ms: f64) -> String {
    let (Some(t), Some(now)) = (at(ms), at(now_ms)) else { return ABSENT.to_owned() };
    let clock = format!("{:02}:{:02}", t.hour(), t.minute());
    match (t.date() == now.date(), t.year() == now.year()) {
        (true, _) => clock,
        (false, true) => format!("{} {} {clock}", t.day(), &t.month().to_string()[..3]),
        (false, false) => format!("{} {} {}", t.day(), &t.month().to_string()[..3], t.year()),
    }
}

/// `20:41` today, `28 Nov` on another day, UTC: where a column is narrow.
pub fn day(ms: f64, now_ms: f64) -> String {
    let (Some(t), Some(now)) = (at(ms), at(now_ms)) else { return ABSENT.to_owned() };
    match (t.date() == now.date(), t.year() == now.year()) {
        (true, _) => format!("{:02}:{:02}", t.hour(), t.minute()),
        (false, true) => format!("{} {}", t.day(), &t.month().to_string()[..3]),
        (false, false) => format!("{} {} {}", t.day(), &t.month().to_string()[..3], t.year()),
    }
}

/// When the day began, UTC, as a query's condition has it: `2026-11-29T00:00:00Z`.
pub fn midnight(ms: f64) -> String {
    at(ms).map_or_else(String::new, |t| {
        format!("{}-{:02}-{:02}T00:00:00Z", t.year(), u8::from(t.month()), t.day())
    })
}

/// `Sunday 29 November 2026, 20:41 UTC`.
pub fn long_moment(ms: f64) -> String {
    at(ms).map_or_else(String::new, |t| {
        format!(
            "{} {} {} {}, {:02}:{:02} UTC",
            t.weekday(),
            t.day(),
            t.month(),
            t.year(),
            t.hour(),
            t.minute()
        )
    })
}

/// A hash in groups, shortened in the middle: `9c41e7a0 5b2d88f3 … e01f66d2`.
pub fn short_hash(hash: &str) -> String {
    if hash.len() < 32 || !hash.is_ascii() {
        return hash.to_owned();
    }
    format!("{} {} … {}", &hash[..8], &hash[8..16], &hash[hash.len() - 8..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_day_begins_at_midnight_utc() {
        let late = millis("2026-02-03T23:59:59.9Z").expect("a time");
        assert_eq!(midnight(late), "2026-02-03T00:00:00Z");
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.050_61, "0.0506"),
            (0.903, "0.903"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (15.61, "15.6"),
            (99.96, "100"),
            (402.4, "402"),
            (999.6, "1\u{202f}000"),
            (3955.99, "3\u{202f}956"),
            (1_234_567.0, "1\u{202f}234\u{202f}567"),
            (-0.3, "−0.300"),
        ] {
            assert_eq!(significant(value), text, "{value}");
        }
    }

    #[test]
    fn a_difference_is_written_with_its_sign_and_no_false_digits() {
        for (fraction, text) in [
            (0.037, "+3.7"),
            (-0.003, "−0.3"),
            (1.5402, "+154"),
            (0.0004, "±0.0"),
            (-0.0004, "±0.0"),
            (35.0, "+3\u{202f}500"),
        ] {
            assert_eq!(signed_percent(fraction), text, "{fraction}");
        }
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        assert_eq!(maybe(None), "–");
        assert_eq!(significant(f64::NAN), "–");
    }

    #[test]
    fn times_of_any_database_are_read() {
        let expected = millis("2026-11-29T20:41:07.409Z");
        assert_eq!(expected, Some(1_795_984_867_409.0));
        assert_eq!(millis("2026-11-29 20:41:07.409+00"), expected);
        assert_eq!(millis("2026-11-29T20:41:07.409+00:00"), expected);
        assert_eq!(clock(expected.expect("a time")), "20:41:07");
        assert_eq!(millis("yesterday"), None);
    }

    #[test]
    fn another_day_is_named() {
        let now = millis("2026-11-29T20:41:07Z").expect("a time");
        assert_eq!(moment(now - 60_000.0, now), "20:40");
        assert_eq!(moment(now - 86_400_000.0, now), "28 Nov 20:41");
    }

    #[test]
    fn one_thing_is_no_things() {
        assert_eq!(
            (counted(1, "line"), counted(1200, "line")),
            ("1 line".to_owned(), "1\u{202f}200 lines".to_owned())
        );
    }

    #[test]
    fn lengths_of_time_read_well() {
        assert_eq!(duration(0.73), "0.7 s");
        assert_eq!(duration(46.2), "46 s");
        assert_eq!(duration(143.0), "2:23 min");
        assert_eq!(duration(4020.0), "1:07 h");
    }

    proptest! {
        #[test]
        fn a_number_stays_within_half_a_unit_of_its_third_digit(value in 1e-6f64..1e9) {
            let text = significant(value).replace('\u{202f}', "");
            let read: f64 = text.parse().expect("a number");
            prop_assert!((read - value).abs() <= value * 0.0051, "{value} is written {text}");
        }
    }
}
