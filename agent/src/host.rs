//! What this host is and has.

use std::fs;

use events::server_host::HostCapabilities;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::policy::Policy;
use crate::telemetry::{self, Accelerators, Topology};

/// Looks at the host. What cannot be read stays empty; the clock's offset is for the caller to add.
pub fn capabilities(policy: &Policy, accelerators: &Accelerators) -> HostCapabilities {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    HostCapabilities {
        agent_version: env!("CARGO_PKG_VERSION").into(),
        os: os_name(&fs::read_to_string("/etc/os-release").unwrap_or_default()),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
        cpu_model: cpu_model(&cpuinfo),
        cpus: std::thread::available_parallelism().map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        cpu_sockets: Topology::read().sockets(),
        ram_total_bytes: telemetry::read_memory().map_or(0, |memory| memory.total),
        gpus: accelerators.gpus.clone(),
        driver_version: accelerators.driver_version.clone(),
        executables: policy.executables_present(),
        models: policy.models_present(),
        model_files: policy.model_files(),
        accept_dangerous: Some(policy.accept_dangerous),
        env: Some(policy.env.clone()),
        secrets: Some(policy.secrets_present()),
        snapshots: crate::job::snapshots_present(&policy.snapshots),
        clock_offset_ms: None,
    }
}

fn os_name(os_release: &str) -> String {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default().trim_matches('"').to_owned()
}

/// x86 says `model name`; Arm names its parts by number only.
fn cpu_model(cpuinfo: &str) -> String {
    let field = |key: &str| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    field("model name")
        .or_else(|| {
            Some(format!("CPU part {} of implementer {}", field("CPU part")?, field("CPU implementer")?))
        })
        .unwrap_or_default()
}

/// Open files that a host under load needs: at a concurrency of 512 and more, a connection a request.
const OPEN_FILES: u64 = 65_536;

/// Raises how many files this process, and so every program that it starts, may have open: up to [`OPEN_FILES`], as far as
/// the host allows. Not further: some programs walk all numbers there are.
pub fn raise_open_files() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = OPEN_FILES.min(hard);
    if soft < wanted
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)
    {
        tracing::warn!(soft, wanted, %error, "the limit of open files stays low: high concurrencies may fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_may_open_as_many_files_as_the_host_allows() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        raise_open_files();
        assert!(getrlimit(Resource::RLIMIT_NOFILE).unwrap().0 >= OPEN_FILES.min(hard));
    }

    #[test]
    fn the_processor_is_named_as_the_kernel_names_it() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: AMD EPYC 9654\n"), "AMD EPYC 9654");
        let arm = "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        assert_eq!(cpu_model(arm), "CPU part 0xd40 of implementer 0x41");
        assert_eq!(cpu_model(""), "");
    }

    #[test]
    fn the_system_is_named_without_quotes() {
        assert_eq!(os_name("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"), "Debian GNU/Linux 12");
    }
}
