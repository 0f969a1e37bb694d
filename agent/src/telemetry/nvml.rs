//! NVIDIA GPUs, by NVML. The library is loaded at run time: a host without it works, and says so.

use std::ffi::OsStr;

use events::server_host::GpuInfo;
use events::telemetry::{GpuSample, TelemetrySample};
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::Source;

/// Names another library to load in the place of NVIDIA's.
pub const LIBRARY_ENV: &str = "BENCHTRAIL_NVML_LIB";

/// Whether NVML is here.
pub enum NvmlState {
    /// It is.
    Loaded(Box<Nvidia>),
    /// It is not, and why.
    Absent(String),
}

/// Loads NVML.
pub(super) fn load() -> NvmlState {
    let library = std::env::var_os(LIBRARY_ENV);
    let mut builder = Nvml::builder();
    // Without the development package there is only the versioned name.
    builder.lib_path(library.as_deref().unwrap_or(OsStr::new("libnvidia-ml.so.1")));
    match builder.init().and_then(|nvml| nvml.device_count().map(|count| (nvml, count))) {
        Ok((nvml, count)) => NvmlState::Loaded(Box::new(Nvidia { nvml, count })),
        Err(error) => NvmlState::Absent(error.to_string()),
    }
}

/// The GPUs of this host.
pub struct Nvidia {
    nvml: Nvml,
    count: u32,
}

impl Nvidia {
    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The driver's version.
    pub fn driver_version(&self) -> Option<String> {
        self.nvml.sys_driver_version().ok()
    }

    /// What they are.
    pub fn gpus(&self) -> Vec<GpuInfo> {
        (0..self.count).map(|gpu| self.describe(gpu)).collect()
    }

    fn describe(&self, gpu: u32) -> GpuInfo {
        let device = self.nvml.device_by_index(gpu);
        let device = device.as_ref().ok();
        let limit = device.and_then(|d| d.enforced_power_limit().ok());
        let capability = device.and_then(|d| d.cuda_compute_capability().ok());
        GpuInfo {
            gpu,
            name: device.and_then(|d| d.name().ok()).unwrap_or_else(|| "unknown".into()),
            memory_total_bytes: device.and_then(|d| d.memory_info().ok()).map(|memory| memory.total),
            power_limit_w: limit.map(milliwatts),
            compute_capability: capability.map(|c| format!("{}.{}", c.major, c.minor)),
        }
    }
}

fn milliwatts(mw: u32) -> f64 {
    f64::from(mw) / 1000.0
}

fn percent(percent: u32) -> f64 {
    f64::from(percent) / 100.0
}

impl Source for Nvidia {
    fn read(&mut self, sample: &mut TelemetrySample) {
        for gpu in 0..self.count {
            let mut entry = GpuSample {
                gpu,
                power_w: None,
                utilization: None,
                memory_used_bytes: None,
                memory_total_bytes: None,
                temperature_c: None,
                sm_clock_mhz: None,
            };
            // The entry stays although the device is lost: a GPU that fell off the bus is not a host with fewer GPUs.
            if let Ok(device) = self.nvml.device_by_index(gpu) {
                fill(&device, &mut entry);
            }
            sample.gpus.push(entry);
        }
    }
}

fn fill(device: &Device<'_>, entry: &mut GpuSample) {
    entry.power_w = known(device.power_usage()).map(milliwatts);
    entry.utilization = known(device.utilization_rates()).map(|rates| percent(rates.gpu));
    let memory = known(device.memory_info());
    entry.memory_used_bytes = memory.as_ref().map(|memory| memory.used);
    entry.memory_total_bytes = memory.as_ref().map(|memory| memory.total);
    entry.temperature_c = known(device.temperature(TemperatureSensor::Gpu)).map(f64::from);
    entry.sm_clock_mhz = known(device.clock_info(Clock::SM));
}

/// A value that was read. Not supported, no permission, lost: each means that nothing is known.
fn known<T>(reading: Result<T, NvmlError>) -> Option<T> {
    reading.inspect_err(|error| tracing::debug!(%error, "a GPU value cannot be read")).ok()
}
