//! TPU chips, by the metrics service of the TPU runtime library: gRPC on this host while a program holds the chips.
//!
//! Duty cycle comes a chip, memory a core or a chip, as the chip's generation has it. The use of the tensor cores is not
//! among what the service tells, so it stays unknown.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use events::telemetry::{TelemetrySample, TpuSample};
use prost::Message;
use tokio::runtime::Runtime;

use super::Source;

/// Names another address of the metrics service than the library's own, `127.0.0.1:8431`.
pub const ADDRESS_ENV: &str = "BENCHTRAIL_LIBTPU_ADDRESS";

const OWN_ADDRESS: &str = "127.0.0.1:8431";
const METHOD: &str = "/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric";
const DUTY_CYCLE: &str = "tpu.runtime.tensorcore.dutycycle.percent";
const HBM_USED: &str = "tpu.runtime.hbm.memory.usage.bytes";
const HBM_TOTAL: &str = "tpu.runtime.hbm.memory.total.bytes";
/// How long the three questions of one sample may take together: later samples must not wait.
const READ_WITHIN: Duration = Duration::from_millis(200);
/// Google's number among the makers of PCI devices.
const GOOGLE: &str = "0x1ae0";

/// Part of `tpu.monitoring.runtime.MetricRequest`.
#[derive(Clone, PartialEq, Message)]
struct MetricRequest {
    #[prost(string, tag = "1")]
    metric_name: String,
}

/// Part of `tpu.monitoring.runtime.MetricResponse`.
#[derive(Clone, PartialEq, Message)]
struct MetricResponse {
    #[prost(message, optional, tag = "1")]
    metric: Option<TpuMetric>,
}

#[derive(Clone, PartialEq, Message)]
struct TpuMetric {
    #[prost(message, repeated, tag = "3")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, optional, tag = "1")]
    attribute: Option<Attribute>,
    #[prost(message, optional, tag = "3")]
    gauge: Option<Gauge>,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(message, optional, tag = "2")]
    value: Option<AttrValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AttrValue {
    #[prost(int64, optional, tag = "3")]
    int_attr: Option<i64>,
}

/// One of the two.
#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(double, optional, tag = "1")]
    as_double: Option<f64>,
    #[prost(int64, optional, tag = "2")]
    as_int: Option<i64>,
}

impl Metric {
    /// The device it is of, and its value.
    fn of_device(&self) -> Option<(i64, f64)> {
        let device = self.attribute.as_ref()?.value.as_ref()?.int_attr.unwrap_or(0);
        let gauge = self.gauge.as_ref()?;
        let value = gauge.as_double.or(gauge.as_int.map(|value| value as f64))?;
        value.is_finite().then_some((device, value))
    }
}

/// The chips of this host.
pub(super) struct Libtpu {
    runtime: Runtime,
    client: reqwest::Client,
    url: String,
    /// How many were seen: one that says nothing any more is not a host with fewer of them.
    chips: usize,
}

impl Libtpu {
    /// The source, on a host that has such chips or was told of an address.
    pub(super) fn find() -> Option<Self> {
        let told = std::env::var(ADDRESS_ENV).ok().filter(|address| !address.is_empty());
        if told.is_none() && !has_chips(Path::new("/sys/bus/pci/devices")) {
            return None;
        }
        let address: SocketAddr = match told.as_deref().unwrap_or(OWN_ADDRESS).parse() {
            Ok(address) => address,
            Err(error) => {
                tracing::warn!(%error, "{ADDRESS_ENV} is no address and port; TPUs are not sampled");
                return None;
            }
        };
        // A second installation is refused, which is what we want.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .http2_prior_knowledge()
            .no_proxy()
            .connect_timeout(READ_WITHIN)
            .timeout(READ_WITHIN)
            .build()
            .ok()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        Some(Self { runtime, client, url: format!("http://{address}{METHOD}"), chips: 0 })
    }
}

impl Source for Libtpu {
    fn read(&mut self, sample: &mut TelemetrySample) {
        let (client, url) = (&self.client, &self.url);
        let asked = async {
            tokio::join!(
                ask(client, url, DUTY_CYCLE),
                ask(client, url, HBM_USED),
                ask(client, url, HBM_TOTAL)
            )
        };
        let (duty, used, total) = self.runtime.block_on(asked);
        let known = |answer: Result<Vec<(i64, f64)>, String>| {
            answer
                .inspect_err(|error| tracing::debug!(%error, "a TPU value cannot be read"))
                .unwrap_or_default()
        };
        let mut tpus = chips(&known(duty), &known(used), &known(total));
        self.chips = self.chips.max(tpus.len());
        for chip in tpus.len()..self.chips {
            tpus.push(unknown(chip));
        }
        sample.tpus = tpus;
    }
}

fn unknown(chip: usize) -> TpuSample {
    TpuSample {
        chip: u32::try_from(chip).unwrap_or(u32::MAX),
        duty_cycle_pct: None,
        tensor_core_utilization_pct: None,
        hbm_used_bytes: None,
        hbm_total_bytes: None,
    }
}

/// One entry a chip, of values a device in the order of devices. A chip may have several cores with memory of their own.
fn chips(duty: &[(i64, f64)], used: &[(i64, f64)], total: &[(i64, f64)]) -> Vec<TpuSample> {
    let count = if duty.is_empty() { used.len().max(total.len()) } else { duty.len() };
    let bytes_of = |values: &[(i64, f64)], chip: usize| -> Option<u64> {
        if values.is_empty() || !values.len().is_multiple_of(count) {
            return None;
        }
        let cores = values.len() / count;
        let of_chip = values.get(chip * cores..(chip + 1) * cores)?;
        Some(of_chip.iter().map(|(_, bytes)| *bytes as u64).sum())
    };
    (0..count)
        .map(|chip| TpuSample {
            duty_cycle_pct: duty.get(chip).map(|(_, percent)| *percent),
            hbm_used_bytes: bytes_of(used, chip),
            hbm_total_bytes: bytes_of(total, chip),
            ..unknown(chip)
        })
        .collect()
}

/// Asks for one metric: its value of each device, in the order of devices.
async fn ask(client: &reqwest::Client, url: &str, metric: &str) -> Result<Vec<(i64, f64)>, String> {
    let request = MetricRequest { metric_name: metric.to_owned() }.encode_to_vec();
    let response = client
        .post(url)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(framed(&request))
        .send()
        .await
        .map_err(|error| error.to_string())?;
    // Where there is no message, how it went stands here rather than behind it.
    if let Some(status) = response.headers().get("grpc-status").filter(|status| *status != "0") {
        return Err(format!("{metric}: gRPC status {status:?}"));
    }
    let body = response.bytes().await.map_err(|error| error.to_string())?;
    let answer = MetricResponse::decode(unframed(&body)?).map_err(|error| format!("{metric}: {error}"))?;
    let metrics = answer.metric.map(|metric| metric.metrics).unwrap_or_default();
    let mut values: Vec<(i64, f64)> = metrics.iter().filter_map(Metric::of_device).collect();
    values.sort_by_key(|(device, _)| *device);
    Ok(values)
}

/// A message as gRPC sends it: whether it is compressed, its length, and itself.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &length.to_be_bytes(), message].concat()
}

fn unframed(body: &[u8]) -> Result<&[u8], String> {
    let (head, rest) = body.split_at_checked(5).ok_or("an answer without a message")?;
    if head[0] != 0 {
        return Err("a compressed message, which was not asked for".to_owned());
    }
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    rest.get(..length as usize).ok_or_else(|| "a message that ends early".to_owned())
}

/// Whether one of Google's accelerators is among the PCI devices.
fn has_chips(devices: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(devices) else { return false };
    entries.flatten().any(|entry| {
        let says = |name: &str, wanted: &[&str]| {
            let text = std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            wanted.iter().any(|start| text.trim().starts_with(start))
        };
        // Network cards of Google's cloud have the same maker: accelerators are of the classes 0x12 and 0xff, or 0x08.
        says("vendor", &[GOOGLE]) && says("class", &["0x12", "0xff", "0x08"])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_several_cores_is_that_of_their_chip() {
        let duty = [(0, 10.0), (1, 90.0)];
        let found = chips(&duty, &[(0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0)], &[(0, 16.0), (1, 16.0)]);
        assert_eq!((found[0].hbm_used_bytes, found[1].hbm_used_bytes), (Some(3), Some(7)));
        assert_eq!((found[1].duty_cycle_pct, found[1].hbm_total_bytes), (Some(90.0), Some(16)));
        assert_eq!(found[0].tensor_core_utilization_pct, None);
        // What does not divide cannot be told apart.
        assert_eq!(chips(&duty, &[(0, 1.0), (1, 2.0), (2, 3.0)], &[])[0].hbm_used_bytes, None);
        assert_eq!(chips(&[], &[], &[]), vec![]);
    }

    #[test]
    fn a_frame_is_read_whole_or_not_at_all() {
        assert_eq!(unframed(&framed(b"abc")), Ok(&b"abc"[..]));
        assert!(unframed(&framed(b"abc")[..6]).is_err());
        assert!(unframed(b"").is_err());
        assert!(unframed(&[1, 0, 0, 0, 0]).is_err());
    }

    #[test]
    fn only_accelerators_of_the_right_maker_count() {
        let devices = tempfile::tempdir().unwrap();
        let add = |name: &str, vendor: &str, class: &str| {
            let folder = devices.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("vendor"), format!("{vendor}\n")).unwrap();
            std::fs::write(folder.join("class"), format!("{class}\n")).unwrap();
        };
        add("0000:00:03.0", "0x1ae0", "0x020000");
        add("0000:00:04.0", "0x10de", "0x120000");
        assert!(!has_chips(devices.path()));
        add("0000:00:05.0", "0x1ae0", "0x120000");
        assert!(has_chips(devices.path()));
    }
}
