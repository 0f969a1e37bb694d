//! Which build of a framework version serves a model: the container image that the catalogue names for it.

use events::catalogue::{AcceleratorRegistered, FrameworkRegistered};

/// The image of the build that is asked for, or else of the one for the server's kind of hardware; nothing where the catalogue
/// names none for that. A server without accelerators serves on its processors.
pub fn container_image(
    framework: &FrameworkRegistered,
    profile: Option<&str>,
    accelerator: Option<&AcceleratorRegistered>,
) -> Option<String> {
    let images = &framework.container_images;
    if let Some(profile) = profile {
        return images.get(profile).cloned();
    }
    if images.is_empty() {
        return framework.container_image.clone();
    }
    let (kind, chip) = accelerator.map_or_else(
        || ("cpu".to_owned(), String::new()),
        |accelerator| (kind_of(accelerator), accelerator.display_name.to_lowercase()),
    );
    // `amd-mi300` is a build for those of AMD's whose name has that in it.
    let for_chip = |key: &str| {
        let rest = key.strip_prefix(&kind).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|wanted| chip.contains(wanted))
    };
    let found =
        images.get(&kind).or_else(|| images.iter().find(|(key, _)| for_chip(key)).map(|(_, image)| image));
    found.cloned()
}

/// An accelerator's kind, in the words of the catalogue's builds.
fn kind_of(accelerator: &AcceleratorRegistered) -> String {
    let vendor = accelerator.vendor.to_lowercase();
    match (vendor.as_str(), accelerator.kind.as_str()) {
        (_, "cpu") => "cpu".to_owned(),
        ("google", _) => "google-tpu".to_owned(),
        ("intel", _) => "intel-xpu".to_owned(),
        _ => vendor,
    }
}

/// Whether agents list accelerators of this kind: by NVML and by AMD's driver. Of the others a host has what its
/// configuration says.
pub fn agents_see(accelerator: &AcceleratorRegistered) -> bool {
    matches!(kind_of(accelerator).as_str(), "nvidia" | "amd" | "cpu")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framework(images: &[&str]) -> FrameworkRegistered {
        FrameworkRegistered {
            container_image: Some("the-usual".into()),
            container_images: images.iter().map(|kind| ((*kind).to_owned(), format!("for-{kind}"))).collect(),
            ..FrameworkRegistered::default()
        }
    }

    fn image(
        images: &[&str],
        profile: Option<&str>,
        (vendor, kind, name): (&str, &str, &str),
    ) -> Option<String> {
        let accelerator = AcceleratorRegistered {
            vendor: vendor.into(),
            kind: kind.into(),
            display_name: name.into(),
            ..AcceleratorRegistered::default()
        };
        container_image(&framework(images), profile, Some(&accelerator).filter(|_| !vendor.is_empty()))
    }

    #[test]
    fn the_build_follows_the_hardware_unless_it_is_chosen() {
        let vllm = ["amd", "cpu", "google-tpu", "intel-xpu", "nvidia"];
        for (accelerator, expected) in [
            (("NVIDIA", "gpu", "H100 SXM 80GB"), "for-nvidia"),
            (("AMD", "gpu", "Instinct MI300X 192GB"), "for-amd"),
            (("Google", "tpu", "Cloud TPU v6e"), "for-google-tpu"),
            (("Intel", "gpu", "Arc Pro B60 24GB"), "for-intel-xpu"),
            (("Intel", "cpu", "Xeon 6"), "for-cpu"),
            (("", "", ""), "for-cpu"),
        ] {
            assert_eq!(image(&vllm, None, accelerator).as_deref(), Some(expected), "{accelerator:?}");
        }
        let h100 = ("NVIDIA", "gpu", "H100");
        assert_eq!(image(&vllm, Some("cpu"), h100).as_deref(), Some("for-cpu"));
        assert_eq!(image(&[], None, h100).as_deref(), Some("the-usual"));
    }

    #[test]
    fn a_chip_has_its_own_build_and_no_image_is_better_than_another_hardwares() {
        let sglang = ["nvidia", "amd-mi300", "amd-mi355"];
        let of = |name: &str| image(&sglang, None, ("AMD", "gpu", name));
        assert_eq!(of("Instinct MI355X 288GB").as_deref(), Some("for-amd-mi355"));
        assert_eq!(of("Instinct MI300X 192GB").as_deref(), Some("for-amd-mi300"));
        assert_eq!(of("Instinct MI250"), None);
        assert_eq!(image(&sglang, None, ("", "", "")), None);
    }
}
