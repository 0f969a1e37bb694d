//! AMD GPUs, by what their kernel driver `amdgpu` says in `/sys`: the counters that AMD SMI reads too, without a library.

use std::fs;
use std::path::{Path, PathBuf};

use events::server_host::GpuInfo;
use events::telemetry::{GpuSample, TelemetrySample};

use super::Source;

/// Names another folder to read in the place of `/sys`.
pub const SYSFS_ENV: &str = "BENCHTRAIL_SYSFS";
/// AMD's number among the vendors of PCI devices.
const VENDOR: &str = "0x1002";
/// Graphics with no more memory of their own than this are a processor's, not an accelerator.
const INTEGRATED_BYTES: u64 = 4 << 30;

/// The AMD GPUs of this host, in the order of their PCI addresses, which is the one that ROCm numbers them in.
pub struct Amd {
    gpus: Vec<Device>,
    driver_version: Option<String>,
    /// The index of the first: a host may have others' GPUs before them.
    first: u32,
}

struct Device {
    path: PathBuf,
    sensors: Option<PathBuf>,
    name: String,
}

impl Amd {
    /// Looks for them. Their indices begin with `first`.
    pub(super) fn find(first: u32) -> Option<Self> {
        let root = std::env::var_os(SYSFS_ENV).map_or_else(|| PathBuf::from("/sys"), PathBuf::from);
        Self::find_in(&root, first)
    }

    fn find_in(root: &Path, first: u32) -> Option<Self> {
        let mut found: Vec<(PathBuf, Device)> = Vec::new();
        for entry in fs::read_dir(root.join("class/drm")).ok()?.flatten() {
            let name = entry.file_name();
            let card = name.to_str().and_then(|name| name.strip_prefix("card"));
            // `card0-DP-1` is one of its connectors.
            if !card.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
                continue;
            }
            let path = entry.path().join("device");
            let memory = number(&path.join("mem_info_vram_total"));
            if text(&path.join("vendor")).as_deref() != Some(VENDOR)
                || memory.is_none_or(|bytes| bytes <= INTEGRATED_BYTES)
            {
                continue;
            }
            // The device's real folder is named by its PCI address.
            let address = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            found.push((address, Device::new(path)));
        }
        found.sort_by(|a, b| a.0.file_name().cmp(&b.0.file_name()));
        let gpus: Vec<Device> = found.into_iter().map(|(_, device)| device).collect();
        let driver_version = text(&root.join("module/amdgpu/version"));
        (!gpus.is_empty()).then_some(Self { gpus, driver_version, first })
    }

    /// What they are.
    pub fn gpus(&self) -> Vec<GpuInfo> {
        let describe = |(gpu, device): (u32, &Device)| GpuInfo {
            gpu,
            name: device.name.clone(),
            memory_total_bytes: number(&device.path.join("mem_info_vram_total")),
            power_limit_w: device.sensor("power1_cap").map(microwatts),
            compute_capability: None,
        };
        (self.first..).zip(&self.gpus).map(describe).collect()
    }

    /// The driver's version, where it is not the kernel's own.
    pub fn driver_version(&self) -> Option<String> {
        self.driver_version.clone()
    }
}

impl Device {
    fn new(path: PathBuf) -> Self {
        let product = text(&path.join("product_name")).filter(|name| !name.is_empty());
        let name = match product {
            Some(name) if name.to_ascii_lowercase().contains("amd") => name,
            Some(name) => format!("AMD {name}"),
            None => format!("AMD GPU {}", text(&path.join("device")).unwrap_or_default()),
        };
        let sensors = fs::read_dir(path.join("hwmon")).ok();
        let sensors = sensors.and_then(|mut folders| folders.next()?.ok()).map(|folder| folder.path());
        Self { path, sensors, name }
    }

    fn sensor(&self, name: &str) -> Option<u64> {
        number(&self.sensors.as_ref()?.join(name))
    }

    /// The hottest spot of the core, or what the card calls its edge where it has no other.
    fn temperature_c(&self) -> Option<f64> {
        let sensors = self.sensors.as_ref()?;
        let of = |wanted: &str| {
            let named = |n: &u32| text(&sensors.join(format!("temp{n}_label"))).as_deref() == Some(wanted);
            let n = (1..=8).find(named)?;
            self.sensor(&format!("temp{n}_input"))
        };
        of("junction").or_else(|| of("edge")).map(|millidegrees| millidegrees as f64 / 1000.0)
    }

    fn read(&self, gpu: u32) -> GpuSample {
        let power = self.sensor("power1_average").or_else(|| self.sensor("power1_input"));
        let busy = number(&self.path.join("gpu_busy_percent"));
        GpuSample {
            gpu,
            power_w: power.map(microwatts),
            utilization: busy.map(|percent| percent as f64 / 100.0),
            memory_used_bytes: number(&self.path.join("mem_info_vram_used")),
            memory_total_bytes: number(&self.path.join("mem_info_vram_total")),
            temperature_c: self.temperature_c(),
            sm_clock_mhz: self.sensor("freq1_input").and_then(|hertz| u32::try_from(hertz / 1_000_000).ok()),
        }
    }
}

impl Source for Amd {
    fn read(&mut self, sample: &mut TelemetrySample) {
        sample.gpus.extend((self.first..).zip(&self.gpus).map(|(gpu, device)| device.read(gpu)));
    }
}

fn microwatts(microwatts: u64) -> f64 {
    microwatts as f64 / 1e6
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for what the driver writes; its values are made up.
    fn card(root: &Path, card: &str, address: &str, files: &[(&str, &str)]) {
        let device = root.join("devices").join(address);
        for (name, content) in files {
            let path = device.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{content}\n")).unwrap();
        }
        let folder = root.join("class/drm").join(card);
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(&device, folder.join("device")).unwrap();
    }

    const MI300X: &[(&str, &str)] = &[
        ("vendor", "0x1002"),
        ("device", "0x74a1"),
        ("product_name", "AMD Instinct MI300X OAM"),
        ("mem_info_vram_total", "206141652992"),
        ("mem_info_vram_used", "1073741824"),
        ("gpu_busy_percent", "75"),
        ("hwmon/hwmon3/power1_cap", "750000000"),
        ("hwmon/hwmon3/power1_input", "420500000"),
        ("hwmon/hwmon3/temp2_label", "junction"),
        ("hwmon/hwmon3/temp2_input", "61000"),
        ("hwmon/hwmon3/freq1_input", "2100000000"),
    ];

    #[test]
    fn the_drivers_files_are_read_in_our_units() {
        let root = tempfile::tempdir().unwrap();
        card(root.path(), "card1", "0000:0c:00.0", MI300X);
        let mut amd = Amd::find_in(root.path(), 2).unwrap();
        let gpus = amd.gpus();
        assert_eq!((gpus[0].gpu, gpus[0].name.as_str()), (2, "AMD Instinct MI300X OAM"));
        assert_eq!((gpus[0].memory_total_bytes, gpus[0].power_limit_w), (Some(206_141_652_992), Some(750.0)));
        let mut sample = TelemetrySample {
            at: events::Timestamp::EPOCH,
            gpus: vec![],
            cpus: vec![],
            tpus: vec![],
            system: Default::default(),
        };
        amd.read(&mut sample);
        let expected = GpuSample {
            gpu: 2,
            power_w: Some(420.5),
            utilization: Some(0.75),
            memory_used_bytes: Some(1 << 30),
            memory_total_bytes: Some(206_141_652_992),
            temperature_c: Some(61.0),
            sm_clock_mhz: Some(2100),
        };
        assert_eq!(sample.gpus, [expected]);
    }

    #[test]
    fn they_stand_in_the_order_of_their_addresses_without_others_and_without_a_processors_own() {
        let root = tempfile::tempdir().unwrap();
        card(root.path(), "card0", "0000:ff:00.0", MI300X);
        let named = |name: &'static str| {
            [("product_name", name), ("vendor", "0x1002"), ("mem_info_vram_total", "17163091968")]
        };
        card(root.path(), "card2", "0000:03:00.0", &named("Radeon PRO W7900"));
        card(
            root.path(),
            "card1",
            "0000:00:02.0",
            &[("vendor", "0x8086"), ("mem_info_vram_total", "17163091968")],
        );
        card(
            root.path(),
            "card3",
            "0000:c0:00.0",
            &[("vendor", "0x1002"), ("mem_info_vram_total", "536870912")],
        );
        fs::create_dir_all(root.path().join("class/drm/card0-DP-1")).unwrap();
        let amd = Amd::find_in(root.path(), 0).unwrap();
        let names: Vec<String> = amd.gpus().into_iter().map(|gpu| gpu.name).collect();
        assert_eq!(names, ["AMD Radeon PRO W7900", "AMD Instinct MI300X OAM"]);
        let sample = amd.gpus[0].read(0);
        assert_eq!((sample.power_w, sample.utilization), (None, None), "what is not told is absent");
        assert!(Amd::find_in(&root.path().join("nowhere"), 0).is_none());
    }
}
