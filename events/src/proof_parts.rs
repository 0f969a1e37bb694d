//! What a proof shows where it is no figure of a result: samples of a host, or one line of a file whose hash an event holds.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::envelope::Recorded;
use crate::hexadecimal;
use crate::system::BlobStored;
use crate::telemetry::{TelemetrySample, TelemetrySampled};
use crate::timestamp::Timestamp;

/// The most bytes of a file that a proof holds within itself; a longer file is given beside the proof.
pub const MOST_CONTENT: usize = 4 << 20;

/// One quantity of one source over a stretch of time: the proof's value is the mean of its samples there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// `gpu0`, `cpu0`, `system`.
    pub source: String,
    /// `power_w`, `utilization` (0 to 1), `memory_used_bytes`, `ram_used_bytes`.
    pub metric: String,
    /// The first moment.
    pub from: Timestamp,
    /// The last moment; the same for a single sample.
    pub to: Timestamp,
    /// How many samples lie between them.
    pub count: usize,
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLine {
    /// SHA-256 of the whole file, hexadecimal.
    pub sha256: String,
    /// The line's number, from 1.
    pub number: u64,
    /// The line, without its end.
    pub text: String,
    /// The whole file, where it has no more than [`MOST_CONTENT`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// What a source said of a quantity; nothing where it was not read.
pub fn reading(sample: &TelemetrySample, source: &str, metric: &str) -> Option<f64> {
    if source == "system" {
        return match metric {
            "ram_used_bytes" => sample.system.ram_used_bytes.map(|bytes| bytes as f64),
            "power_w" => sample.system.power_w,
            _ => None,
        };
    }
    let nth = |prefix: &str| source.strip_prefix(prefix).and_then(|n| n.parse::<u32>().ok());
    if let Some(index) = nth("gpu") {
        let gpu = sample.gpus.iter().find(|gpu| gpu.gpu == index)?;
        return match metric {
            "power_w" => gpu.power_w,
            "utilization" => gpu.utilization,
            "memory_used_bytes" => gpu.memory_used_bytes.map(|bytes| bytes as f64),
            _ => None,
        };
    }
    let index = nth("cpu")?;
    let cpu = sample.cpus.iter().find(|cpu| cpu.socket == index)?;
    (metric == "utilization").then_some(cpu.utilization)
}

impl Samples {
    /// The unit of the metric in the log.
    pub fn unit(&self) -> &'static str {
        match self.metric.as_str() {
            "utilization" => "of 1",
            bytes if bytes.ends_with("_bytes") => "bytes",
            _ => "W",
        }
    }

    /// The samples of an event that lie within, in their order.
    pub fn within(&self, sampled: &TelemetrySampled) -> Vec<(Timestamp, f64)> {
        let inside = sampled.samples.iter().filter(|sample| (self.from..=self.to).contains(&sample.at));
        inside.filter_map(|s| Some((s.at, reading(s, &self.source, &self.metric)?))).collect()
    }

    /// How many samples the events of a stream hold, and their mean; nothing where there is none, or where an event between
    /// the others is missing.
    pub(crate) fn found<'a>(
        &self,
        events: impl Iterator<Item = &'a Recorded>,
        stream: &str,
    ) -> (usize, Option<f64>) {
        let mut of_stream: Vec<&Recorded> = events
            .filter(|event| event.event_type == "telemetry.sampled" && event.stream.as_str() == stream)
            .collect();
        of_stream.sort_by_key(|event| event.version);
        let whole = of_stream.windows(2).all(|pair| pair[1].version == pair[0].version + 1);
        let sampled = of_stream.iter().filter_map(|event| serde_json::from_str(&event.payload).ok());
        let values: Vec<f64> =
            sampled.flat_map(|event: TelemetrySampled| self.within(&event)).map(|(_, value)| value).collect();
        (values.len(), mean(&values).filter(|_| whole))
    }
}

/// The mean of some values; nothing where there is none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Why a line is not that line of that file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineDoubt {
    /// No event of the proof names the file.
    #[error("no event of the proof stored a file of SHA-256 {0}")]
    Unnamed(String),
    /// The file is another one.
    #[error("the file has SHA-256 {found}, and the event names {named}")]
    OtherFile {
        /// What it has.
        found: String,
        /// What the event says.
        named: String,
    },
    /// The file has another line there.
    #[error("line {0} of the file is another one")]
    OtherLine(u64),
}

impl FileLine {
    /// Whether an event names the file and, where the file is here or in `beside`, whether this is its line. Gives whether
    /// the file was looked at.
    ///
    /// # Errors
    /// [`LineDoubt`].
    pub(crate) fn check<'a>(
        &self,
        mut events: impl Iterator<Item = &'a Recorded>,
        stream: &str,
        beside: Option<&[u8]>,
    ) -> Result<bool, LineDoubt> {
        let names = |event: &Recorded| {
            event.event_type == "blob.stored"
                && serde_json::from_str::<BlobStored>(&event.payload)
                    .is_ok_and(|stored| stored.sha256 == self.sha256 && stored.job.as_deref() == Some(stream))
        };
        if !events.any(names) {
            return Err(LineDoubt::Unnamed(self.sha256.clone()));
        }
        let Some(content) = beside.or(self.content.as_deref().map(str::as_bytes)) else { return Ok(false) };
        let found = hexadecimal::encode(&Sha256::digest(content));
        if found != self.sha256 {
            return Err(LineDoubt::OtherFile { found, named: self.sha256.clone() });
        }
        let place = usize::try_from(self.number).ok().and_then(|number| number.checked_sub(1));
        let line = place.and_then(|place| content.split(|byte| *byte == b'\n').nth(place));
        if line != Some(self.text.as_bytes()) {
            return Err(LineDoubt::OtherLine(self.number));
        }
        Ok(true)
    }

    /// A number that the line itself holds under this name, such as `response_time_ms`.
    pub fn figure(&self, name: &str) -> Option<f64> {
        serde_json::from_str::<serde_json::Value>(&self.text).ok()?.get(name)?.as_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const STREAM: &str = "telemetry/o/p/w/1/c1/1";

    /// The nth event of the stream: one sample a second, of as many watts.
    fn event(nth: i64) -> Recorded {
        let payload = json!({"seq": nth, "interval_ms": 1000, "samples": [{
            "at": format!("2026-11-29T20:41:0{nth}Z"), "gpus": [{"gpu": 0, "power_w": nth * 100}], "cpus": [], "system": {},
        }]});
        serde_json::from_value(json!({
            "position": nth, "stream": STREAM, "version": nth, "event_id": format!("00000000-0000-7000-8000-00000000000{nth}"),
            "event_type": "telemetry.sampled", "schema_version": 1, "org": "o", "actor": {"kind": "agent", "id": "x"},
            "causation_id": null, "correlation_id": null, "occurred_at": "2026-11-29T20:41:07.409Z",
            "recorded_at": "2026-11-29T20:41:07.500Z", "payload": payload.to_string(), "leaf": "0".repeat(64),
            "hash": "0".repeat(64)
        }))
        .expect("an event")
    }

    #[test]
    fn a_mean_over_events_of_which_one_between_is_left_out_is_none() {
        let samples = Samples {
            source: "gpu0".into(),
            metric: "power_w".into(),
            from: "2026-11-29T20:41:01Z".parse().expect("a time"),
            to: "2026-11-29T20:41:03Z".parse().expect("a time"),
            count: 3,
        };
        let events: Vec<Recorded> = (1..=3).map(event).collect();
        assert_eq!(samples.found(events.iter(), STREAM), (3, Some(200.0)));
        assert_eq!(samples.found(events.iter().rev(), STREAM), (3, Some(200.0)), "in any order");
        let without = [&events[0], &events[2]];
        assert_eq!(samples.found(without.into_iter(), STREAM), (2, None));
        assert_eq!(samples.found(events.iter(), "telemetry/o/p/w/1/c2/1"), (0, None));
    }
}
