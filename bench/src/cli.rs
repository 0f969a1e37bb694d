//! The command line shared by the load generators.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::collect::Objectives;
use crate::http::proxy::Proxy;

/// What `--help` says about exit codes, for every tool.
pub const EXIT_CODES: &str = "Exit codes:
  0    all went well (failures, if any, within --max-error-rate)
  1    more requests failed than --max-error-rate allows, or the results could not be written
  2    bad usage: a flag, a file or an address that cannot be used
  3    every request failed
  4    the machine is not fit to measure: clock off by more than a second, too few open files allowed
  130  interrupted; the summary was written and says so (a second interrupt exits at once, without)";

/// Options every load generator has.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Where to send requests: a base address (http://host:8000, …/v1) or the whole path.
    #[arg(long, env = "METRUM_URL", default_value = "http://127.0.0.1:8000", help_heading = "Endpoint")]
    pub url: String,
    /// The API key, sent as a bearer token. Better in the environment: a command line can be read by others.
    #[arg(
        long,
        env = "OPENAI_API_KEY",
        hide_env_values = true,
        hide_default_value = true,
        help_heading = "Endpoint"
    )]
    pub api_key: Option<String>,
    /// A YAML, JSON or JSONL file of endpoints (url, name, api_key, weight); replaces --url.
    #[arg(long, value_name = "FILE", help_heading = "Endpoint")]
    pub endpoints_file: Option<PathBuf>,
    /// The model to ask for. Without it, the only model the first endpoint lists.
    #[arg(long, short = 'm', value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Endpoint")]
    pub model: Option<String>,
    /// A header to add to each request, NAME:VALUE (repeatable).
    #[arg(long, value_name = "NAME:VALUE", value_parser = parse_header, help_heading = "Endpoint")]
    pub header: Vec<(String, String)>,
    /// JSON members to add to, or replace in, each request body.
    #[arg(long, value_name = "JSON", value_parser = parse_object, help_heading = "Endpoint")]
    pub extra_body: Option<serde_json::Map<String, serde_json::Value>>,
    /// Accept any TLS certificate.
    #[arg(long, help_heading = "Endpoint")]
    pub insecure: bool,
    /// Speak HTTP/2, many requests on each connection: with TLS as the server agrees, without TLS from the first byte.
    #[arg(long, help_heading = "Endpoint")]
    pub http2: bool,
    /// Go through this HTTP proxy. Without it none is used, whatever variables such as http_proxy say.
    #[arg(long, value_name = "URL", value_parser = Proxy::parse, help_heading = "Endpoint")]
    pub proxy: Option<Proxy>,
    /// Connect to public addresses only, and to these ranges and services, with commas between: 10.0.0.0/8,127.0.0.1:8000.
    /// Of endpoints, files, images and redirects alike. Without it: to any address.
    #[arg(long, env = events::networks::NETWORKS_ENV, value_name = "LIST", help_heading = "Endpoint")]
    pub allowed_networks: Option<events::networks::Networks>,

    /// The name of the scenario, kept in the results.
    #[arg(long, help_heading = "Load")]
    pub scenario: Option<String>,
    /// Requests to measure; warm-up and ramp-up come on top, and those under way when a ramp-up ends are all measured.
    /// Default: 10 × concurrency, unless --duration is given.
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..), help_heading = "Load")]
    pub num_requests: Option<u64>,
    /// Seconds to measure for, counted from the end of the ramp-up; requests under way are then awaited.
    #[arg(long, value_name = "SECONDS", value_parser = parse_some_seconds, help_heading = "Load")]
    pub duration: Option<Duration>,
    /// Requests kept under way at once.
    #[arg(long, short = 'c', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Load")]
    pub concurrency: u32,
    /// Raise the concurrency linearly from one over so many seconds; requests that end by then are discarded
    /// (open loop: those scheduled by then).
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse_seconds, help_heading = "Load")]
    pub ramp_up_seconds: Duration,
    /// Requests to send before measuring; in no figure.
    #[arg(long, default_value_t = 0, help_heading = "Load")]
    pub warmup_requests: u64,
    /// Open loop: send so many requests a second whatever the answers do.
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate, help_heading = "Load")]
    pub request_rate: Option<f64>,
    /// Open loop: how requests are spaced.
    #[arg(long, value_enum, default_value_t = Arrival::Poisson, requires = "request_rate", help_heading = "Load")]
    pub arrival: Arrival,
    /// Open loop: never more under way than this; a request that must wait counts its wait as schedule delay.
    #[arg(long, requires = "request_rate", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Load")]
    pub max_concurrency: Option<u32>,
    /// Seed of every random choice: prompts, their order, arrival times.
    #[arg(long, default_value_t = 0, help_heading = "Load")]
    pub seed: u64,
    /// An objective for goodput: ttft=MS, tpot=MS or e2e=MS, several with commas (repeatable).
    #[arg(long, value_name = "METRIC=MS", value_parser = parse_objectives, help_heading = "Load")]
    pub slo: Vec<Objectives>,

    /// Seconds one request may take.
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = parse_some_seconds, help_heading = "Connections")]
    pub request_timeout: Duration,
    /// Seconds a connection may take to open.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_some_seconds, help_heading = "Connections")]
    pub connect_timeout: Duration,
    /// Seconds an idle connection is kept.
    #[arg(long, value_name = "SECONDS", default_value = "90", value_parser = parse_seconds, help_heading = "Connections")]
    pub pool_idle_timeout: Duration,
    /// Idle seconds before TCP keep-alive probes; 0 for none.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds, help_heading = "Connections")]
    pub tcp_keepalive: Duration,

    /// Append the summary, one JSON line, to this file; - for standard output.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub data_log: Option<PathBuf>,
    /// Append a JSON line for each request to this file.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub request_log: Option<PathBuf>,
    /// Write a JSON line twice a second to this open file descriptor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..), help_heading = "Results")]
    pub progress_fd: Option<i32>,
    /// Write a JSON line twice a second to this file.
    #[arg(long, value_name = "FILE", conflicts_with = "progress_fd", help_heading = "Results")]
    pub progress_file: Option<PathBuf>,
    /// Percent of requests that may fail before the exit code is 1.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = parse_percent, help_heading = "Results")]
    pub max_error_rate: f64,
    /// Neither progress nor a closing table.
    #[arg(long, short = 'q', help_heading = "Results")]
    pub quiet: bool,
    /// Print the summary line to standard output instead of a table.
    #[arg(long, help_heading = "Results")]
    pub json: bool,
    /// Print completions for this shell and do nothing else.
    #[arg(long, value_name = "SHELL", help_heading = "Results")]
    pub completions: Option<clap_complete::Shell>,

    /// Do not compare the clock with public time servers first.
    #[arg(long, env = "METRUM_SKIP_NTP_CHECK", num_args = 0..=1, default_value_t = false, default_missing_value = "true", require_equals = true, value_parser = parse_switch, help_heading = "Preflight")]
    pub skip_ntp_check: bool,
    /// Ask this time server, HOST or HOST:PORT, instead of the four public ones (repeatable).
    #[arg(long, value_name = "HOST", help_heading = "Preflight")]
    pub ntp_server: Vec<String>,
    /// Threads of the load generator. Default: one on small machines, a quarter of the cores on large ones.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Preflight")]
    pub threads: Option<u16>,
}

/// How requests of an open loop are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Arrival {
    /// Equal gaps.
    Constant,
    /// Exponentially distributed gaps, as independent users make.
    Poisson,
}

impl Common {
    /// The objectives of all `--slo` together.
    pub fn objectives(&self) -> Objectives {
        Objectives { limits: self.slo.iter().flat_map(|objectives| objectives.limits.clone()).collect() }
    }

    /// Requests to measure, `default` where neither they nor a time were asked for; none when only time ends the run.
    pub fn requests_to_measure(&self, default: u64) -> Option<u64> {
        match (self.num_requests, self.duration) {
            (None, None) => Some(default),
            (requests, _) => requests,
        }
    }

    /// The most requests that can be under way at once; none when nothing bounds it.
    pub fn most_in_flight(&self) -> Option<u32> {
        match self.request_rate {
            None => Some(self.concurrency),
            Some(_) => self.max_concurrency,
        }
    }
}

/// Accepts what people and templates write for a switch.
pub fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" | "" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

/// Seconds, or milliseconds where the text says so.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds: f64 = number.trim().parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds * unit).map_err(|error| error.to_string())
}

/// A time in which something can happen.
fn parse_some_seconds(text: &str) -> Result<Duration, String> {
    parse_seconds(text).and_then(|time| if time.is_zero() { Err("must be above 0".into()) } else { Ok(time) })
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        // Slower than one in a quarter of an hour is a slip of the pen, and no run would ever end.
        Ok(rate) if (0.001..=1e9).contains(&rate) => Ok(rate),
        _ => Err("must be a number of requests a second, at least 0.001".into()),
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("must be a percentage, 0 to 100".into()),
    }
}

/// A number that is one and not below zero.
pub fn parse_not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("must be a number of at least 0".into()),
    }
}

/// A number above zero.
pub fn parse_positive(text: &str) -> Result<f64, String> {
    parse_not_negative(text)
        .ok()
        .filter(|number| *number > 0.0)
        .ok_or_else(|| "must be a number above 0".into())
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("must be NAME:VALUE")?;
    let (name, value) = (name.trim(), value.trim());
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err(format!("{name:?} is no header name"));
    }
    if ["content-length", "transfer-encoding", "connection"].contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("{name} is set by the tool itself"));
    }
    if value.chars().any(char::is_control) {
        return Err("control characters in a header".into());
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn parse_object(text: &str) -> Result<serde_json::Map<String, serde_json::Value>, String> {
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(members)) => Ok(members),
        Ok(_) => Err("must be a JSON object".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_objectives(text: &str) -> Result<Objectives, String> {
    let mut objectives = Objectives::default();
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let (metric, limit) = part.split_once('=').ok_or("must be METRIC=MILLISECONDS")?;
        let metric = match metric.trim() {
            "e2el" | "response_time" => "e2e",
            known @ ("ttft" | "tpot" | "e2e") => known,
            other => return Err(format!("{other:?}: only ttft, tpot and e2e can be objectives")),
        };
        let limit = limit.trim();
        let number = limit.strip_suffix("ms").unwrap_or(limit);
        let (number, scale) = match number.strip_suffix('s') {
            Some(seconds) => (seconds, 1.0),
            None => (number, 1e-3),
        };
        let seconds =
            number.trim().parse::<f64>().map_err(|_| format!("{limit:?} is not a number of milliseconds"))?;
        let limit = Duration::try_from_secs_f64(seconds * scale).map_err(|error| error.to_string())?;
        objectives.limits.insert(metric.to_owned(), limit);
    }
    Ok(objectives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_may_carry_a_unit() {
        assert_eq!(parse_seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_seconds("250ms"), Ok(Duration::from_millis(250)));
        assert!(parse_seconds("-1").is_err());
    }

    #[test]
    fn objectives_are_milliseconds() {
        let found = parse_objectives("ttft=200,e2e=2s").unwrap();
        assert_eq!(found.limits["ttft"], Duration::from_millis(200));
        assert_eq!(found.limits["e2e"], Duration::from_secs(2));
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        for text in ["1e-20", "0", "-1", "nan", "inf", "many"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        for text in ["nan", "-1", "101", "inf"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
        for text in ["nan", "-0.1", "inf"] {
            assert!(parse_not_negative(text).is_err() && parse_positive(text).is_err(), "{text}");
        }
        assert_eq!(
            (parse_rate("0.5"), parse_percent("0"), parse_not_negative("0")),
            (Ok(0.5), Ok(0.0), Ok(0.0))
        );
        assert!(parse_positive("0").is_err());
    }

    #[test]
    fn a_header_cannot_smuggle_another() {
        assert!(parse_header("X: a\r\nY: b").is_err());
        assert!(parse_header("Content-Length: 3").is_err());
    }
}
