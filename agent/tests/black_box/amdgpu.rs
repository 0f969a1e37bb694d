//! AMD GPUs, with a stand-in for what their kernel driver writes into `/sys`: its files' names and units, made-up values. No
//! real card was at hand.

use std::path::Path;

use events::server_host::GpuInfo;
use events::telemetry::GpuSample;

use crate::nvml::measured_on;

fn standin(root: &Path) {
    let device = root.join("devices/0000:0c:00.0");
    for (name, content) in [
        ("vendor", "0x1002"),
        ("product_name", "AMD Instinct MI300X OAM"),
        ("mem_info_vram_total", "206141652992"),
        ("mem_info_vram_used", "1073741824"),
        ("gpu_busy_percent", "75"),
        ("hwmon/hwmon3/power1_cap", "750000000"),
        ("hwmon/hwmon3/power1_average", "420500000"),
    ] {
        let path = device.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let card = root.join("class/drm/card1");
    std::fs::create_dir_all(&card).unwrap();
    std::os::unix::fs::symlink(device, card.join("device")).unwrap();
}

#[tokio::test]
async fn an_amd_gpu_is_reported_and_sampled_as_any_other() {
    let (host, gpus) = measured_on(|agent| {
        let root = agent.folder().join("sys");
        standin(&root);
        agent.set_env("BENCHTRAIL_SYSFS", root.to_str().unwrap());
        agent.set_env("BENCHTRAIL_NVML_LIB", "/nowhere/libnvidia-ml.so.1");
    })
    .await;
    let info = GpuInfo {
        gpu: 0,
        name: "AMD Instinct MI300X OAM".into(),
        memory_total_bytes: Some(206_141_652_992),
        power_limit_w: Some(750.0),
        compute_capability: None,
    };
    assert_eq!(host.gpus, [info]);
    let sample = GpuSample {
        gpu: 0,
        power_w: Some(420.5),
        utilization: Some(0.75),
        memory_used_bytes: Some(1 << 30),
        memory_total_bytes: Some(206_141_652_992),
        temperature_c: None,
        sm_clock_mhz: None,
    };
    assert_eq!(gpus, [sample]);
}
