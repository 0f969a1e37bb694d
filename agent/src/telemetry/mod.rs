//! Telemetry: what the hardware did while a job ran.
//!
//! A sampler thread reads every source at moments fixed in advance (start + n × interval), so that a slow read
//! does not push the later ones. A moment that was missed stays missing; nothing is made up for it. What cannot
//! be read is absent from the sample, never 0.

mod amdgpu;
mod cpu;
mod libtpu;
mod memory;
mod nvml;
mod power;
mod sampler;

use events::server_host::GpuInfo;
use events::telemetry::TelemetrySample;

pub use amdgpu::SYSFS_ENV;
pub use cpu::Topology;
pub use libtpu::ADDRESS_ENV as LIBTPU_ADDRESS_ENV;
pub use memory::{MemoryInfo, read_memory};
pub use nvml::{LIBRARY_ENV, Nvidia, NvmlState};
pub use sampler::{Sampler, Window};

/// One kind of hardware that can be sampled.
pub trait Source: Send {
    /// Adds what can be read now to the sample.
    fn read(&mut self, sample: &mut TelemetrySample);
}

/// Every source this host has.
pub fn sources() -> Vec<Box<dyn Source>> {
    let mut sources: Vec<Box<dyn Source>> =
        vec![Box::new(cpu::Cpu::new()), Box::new(memory::Memory), Box::new(power::Rapl::find())];
    let mut first = 0;
    if let NvmlState::Loaded(nvidia) = nvml::load() {
        first = nvidia.count();
        sources.insert(0, nvidia);
    }
    if let Some(amd) = amdgpu::Amd::find(first) {
        sources.push(Box::new(amd));
    }
    if let Some(tpus) = libtpu::Libtpu::find() {
        sources.insert(0, Box::new(tpus));
    }
    sources
}

/// The accelerators of this host.
#[derive(Debug, Clone, Default)]
pub struct Accelerators {
    /// What they are, by index.
    pub gpus: Vec<GpuInfo>,
    /// The version of their driver.
    pub driver_version: Option<String>,
}

/// Looks up the accelerators: NVIDIA's, and after them AMD's.
pub fn accelerators() -> Accelerators {
    let mut found = match nvml::load() {
        NvmlState::Loaded(nvidia) => {
            Accelerators { gpus: nvidia.gpus(), driver_version: nvidia.driver_version() }
        }
        NvmlState::Absent(_) => Accelerators::default(),
    };
    let first = u32::try_from(found.gpus.len()).unwrap_or(u32::MAX);
    if let Some(amd) = amdgpu::Amd::find(first) {
        found.gpus.extend(amd.gpus());
        found.driver_version = found.driver_version.or_else(|| amd.driver_version());
    }
    found
}

/// Whether NVIDIA's management library is here, for `doctor`.
pub fn nvml_state() -> NvmlState {
    nvml::load()
}
