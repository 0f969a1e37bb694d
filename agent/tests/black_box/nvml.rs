//! GPUs by NVML, with a stand-in for NVIDIA's library that has the real one's ABI and made-up values.

use std::path::PathBuf;
use std::process::Command;

use events::report::ReportBody;
use events::server_host::{GpuInfo, HostCapabilities};
use events::telemetry::GpuSample;

use crate::support::agent::Agent;
use crate::support::control_plane::ControlPlane;
use crate::support::jobs::{endpoint_job, tool};

/// Compiles the stand-in.
pub(crate) fn standin(folder: &std::path::Path) -> PathBuf {
    let library = folder.join("libnvml_standin.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/black_box/nvml_standin.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "-o"])
        .arg(&library)
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success());
    library
}

/// Runs a job on a host with these GPUs.
async fn measured(values: &str) -> (HostCapabilities, Vec<GpuSample>) {
    measured_on(|agent| {
        let file = agent.folder().join("values");
        std::fs::write(&file, values).unwrap();
        agent.set_env("BENCHTRAIL_NVML_LIB", standin(agent.folder()).to_str().unwrap());
        agent.set_env("NVML_STANDIN_VALUES", file.to_str().unwrap());
    })
    .await
}

/// Runs a job on a host that is made ready so; gives what was reported of the host and the first sample of its GPUs.
pub(crate) async fn measured_on(make_ready: impl FnOnce(&mut Agent)) -> (HostCapabilities, Vec<GpuSample>) {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, &tool("sleep 0.5; summary"), "").await;
    make_ready(&mut agent);
    plane.queue(&endpoint_job(&plane, "c1"));
    agent.run();
    plane.until_reported("completed").await;
    let ReportBody::Capabilities { capabilities } = plane.until_reported("capabilities").await.body else {
        panic!()
    };
    let ReportBody::Telemetry { telemetry, .. } = plane.until_reported("telemetry").await.body else {
        panic!()
    };
    (capabilities, telemetry.samples[0].gpus.clone())
}

#[tokio::test]
async fn gpu_values_are_reported_in_watts_fractions_and_bytes() {
    let values = "gpus 2\ndriver 580.95.05\nname NVIDIA H200\npower_mw 412345\nlimit_mw 700000\n\
                  utilization_percent 87\nmemory_total 150754820096\nmemory_used 1234567890\ntemperature_c 61\n\
                  sm_clock_mhz 1980\ngpu1.power_mw 65000\ngpu1.utilization_percent 0\n";
    let (host, gpus) = measured(values).await;
    assert_eq!(host.driver_version.as_deref(), Some("580.95.05"));
    let info = |gpu| GpuInfo {
        gpu,
        name: "NVIDIA H200".into(),
        memory_total_bytes: Some(150_754_820_096),
        power_limit_w: Some(700.0),
        compute_capability: Some("9.0".into()),
    };
    assert_eq!(host.gpus, [info(0), info(1)]);
    let sample = GpuSample {
        gpu: 0,
        power_w: Some(412.345),
        utilization: Some(0.87),
        memory_used_bytes: Some(1_234_567_890),
        memory_total_bytes: Some(150_754_820_096),
        temperature_c: Some(61.0),
        sm_clock_mhz: Some(1980),
    };
    let idle = GpuSample { gpu: 1, power_w: Some(65.0), utilization: Some(0.0), ..sample.clone() };
    assert_eq!(gpus, [sample, idle]);
}

#[tokio::test]
async fn what_a_gpu_cannot_tell_is_absent_and_never_zero() {
    let (_, gpus) = measured("gpus 2\npower_mw 100000\ngpu1.lost yes\n").await;
    let nothing = GpuSample {
        gpu: 0,
        power_w: None,
        utilization: None,
        memory_used_bytes: None,
        memory_total_bytes: None,
        temperature_c: None,
        sm_clock_mhz: None,
    };
    assert_eq!(gpus[0], GpuSample { power_w: Some(100.0), ..nothing.clone() });
    assert_eq!(gpus[1], GpuSample { gpu: 1, ..nothing });
}
