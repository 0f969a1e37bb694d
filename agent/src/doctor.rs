//! `benchtrail-agent doctor`: whether this host can carry out a job, and the cure for what is missing.

use std::path::Path;
use std::time::Duration;

use events::report::{CLOCK_LIMIT_MS, Heartbeat};
use events::timestamp::Timestamp;

use crate::clock;
use crate::control::{Control, ControlError, Https, NatsProbe};
use crate::identity::Identity;
use crate::policy::Policy;
use crate::state_dir::StateDir;
use crate::telemetry::{self, NvmlState};

/// Less free disk than this is worth a word, bytes.
const LITTLE_DISK: u64 = 2 << 30;
/// Fewer open files than this do not suffice for a thousand connections.
const FEW_FILES: u64 = 4_096;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine,
    /// Works, but somebody should know.
    Note,
    Fails,
}

/// One line of the table.
#[derive(Debug)]
struct Check {
    what: &'static str,
    verdict: Verdict,
    found: String,
    cure: String,
}

impl Check {
    fn fine(what: &'static str, found: impl ToString) -> Self {
        Self { what, verdict: Verdict::Fine, found: found.to_string(), cure: String::new() }
    }

    fn note(what: &'static str, found: impl ToString, cure: impl ToString) -> Self {
        Self { what, verdict: Verdict::Note, found: found.to_string(), cure: cure.to_string() }
    }

    fn fails(what: &'static str, found: impl ToString, cure: impl ToString) -> Self {
        Self { what, verdict: Verdict::Fails, found: found.to_string(), cure: cure.to_string() }
    }
}

/// Checks everything and prints a table. Tells whether a job could be carried out.
pub async fn doctor(state: &StateDir, policy_path: &Path) -> bool {
    let mut checks = Vec::new();
    match Identity::load(&state.identity()) {
        Ok(identity) => {
            checks.push(Check::fine("identity", format!("{} of {}", identity.agent, identity.org)));
            checks.extend(control_plane(&identity).await);
        }
        Err(error) => checks.push(Check::fails("identity", "none", error)),
    }
    match Policy::load(policy_path) {
        Ok(policy) => {
            checks.push(Check::fine("policy", policy_path.display()));
            checks.extend(programs(&policy).await);
            checks.push(models(&policy));
            for (what, folder) in [("work folder", &policy.work_dir), ("log folder", &policy.log_dir)] {
                checks.push(folder_is_writable(what, folder));
            }
            checks.push(disk(&policy.log_dir));
        }
        Err(error) => checks.push(Check::fails("policy", "not usable", error)),
    }
    checks.push(gpus());
    checks.push(open_files());
    print(&checks);
    checks.iter().all(|check| check.verdict != Verdict::Fails)
}

fn print(checks: &[Check]) {
    let wide = checks.iter().map(|check| check.what.chars().count()).max().unwrap_or(0);
    for check in checks {
        let word = match check.verdict {
            Verdict::Fine => "ok   ",
            Verdict::Note => "note ",
            Verdict::Fails => "FAILS",
        };
        println!("{word}  {:wide$}  {}", check.what, check.found);
        if !check.cure.is_empty() {
            println!("       {:wide$}  → {}", "", check.cure);
        }
    }
    let failed = checks.iter().filter(|check| check.verdict == Verdict::Fails).count();
    match failed {
        0 => println!("\nThis host is ready."),
        1 => println!("\n1 check fails; its line says what to do."),
        n => println!("\n{n} checks fail; their lines say what to do."),
    }
}

async fn control_plane(identity: &Identity) -> Vec<Check> {
    let url = identity.url.as_str();
    let https = match Https::new(&identity.url, &identity.agent_token) {
        Ok(https) => https,
        Err(error) => return vec![Check::fails("control plane", url, error)],
    };
    if let Err(error) = https.health().await {
        let cure = format!("{error}. See that {url} is up and that this host may connect to it");
        return vec![Check::fails("control plane", url, cure)];
    }
    let mut checks = vec![Check::fine("control plane", url)];

    let asked = clock::now();
    let heartbeat = Heartbeat { at: asked, holding: Vec::new(), spooled: 0 };
    match Control::over_https(https.clone()).heartbeat(&heartbeat).await {
        Ok(reply) => {
            checks.push(Check::fine("agent token", "accepted"));
            checks.push(clock_offset(asked, reply.at));
        }
        Err(error) => {
            let cure =
                "the token was revoked or is another site's: register the server anew and enrol with --force";
            checks.push(Check::fails("agent token", error, cure));
            return checks;
        }
    }
    checks.push(match crate::control::probe_nats(https, identity).await {
        Ok(NatsProbe::Connected(url)) => Check::fine("NATS", url),
        Ok(NatsProbe::NotOffered) => Check::note("NATS", "not offered by this site", "HTTPS is used"),
        Err(error @ ControlError::Refused { .. }) => {
            Check::fails("NATS", error, "enrol anew with --force and a new token")
        }
        Err(error) => Check::note(
            "NATS",
            error,
            "HTTPS is used; open the NATS port for this host to have jobs start sooner",
        ),
    });
    checks
}

fn clock_offset(asked: Timestamp, theirs: Timestamp) -> Check {
    let offset = clock::offset_ms(asked, clock::now(), theirs);
    let found = format!("{offset:+.1} ms against the control plane");
    let cure = "synchronise it: apt install chrony && systemctl enable --now chrony";
    match (clock::Offset { ms: offset, round_trip: Duration::ZERO }).step() {
        clock::Step::In => Check::fine("clock", found),
        clock::Step::Nearly => {
            Check::note("clock", found, format!("{cure}; beyond {CLOCK_LIMIT_MS:.0} ms no job is taken"))
        }
        clock::Step::Out => Check::fails("clock", found, format!("{cure}; until then no job is taken")),
    }
}

async fn programs(policy: &Policy) -> Vec<Check> {
    let mut checks = Vec::new();
    for name in policy.executables.keys() {
        checks.push(match policy.executable(name) {
            Ok(path) if name == "metrumbench-llm" => match version(&path).await {
                Ok(version) => Check::fine("program", format!("{name}: {} ({version})", path.display())),
                Err(why) => Check::fails(
                    "program",
                    format!("{name}: {} {why}", path.display()),
                    "install the one built for this machine",
                ),
            },
            Ok(path) => Check::fine("program", format!("{name}: {}", path.display())),
            // Without the load generator nothing works; frameworks are a matter of what is to be measured.
            Err(error) if name == "metrumbench-llm" => {
                Check::fails("program", format!("{name}: not found"), error)
            }
            Err(error) => Check::note("program", format!("{name}: not found"), error),
        });
    }
    if !policy.executables.contains_key("metrumbench-llm") {
        checks.push(Check::fails(
            "program",
            "metrumbench-llm: not allowed",
            "add `metrumbench-llm = []` under [executables] in agent.toml",
        ));
    }
    checks
}

async fn version(path: &Path) -> Result<String, String> {
    let output = tokio::process::Command::new(path).arg("--version").kill_on_drop(true).output();
    match tokio::time::timeout(Duration::from_secs(10), output).await {
        Ok(Ok(output)) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
        }
        Ok(Ok(output)) => Err(format!("ends with {}", output.status)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("does not answer --version within 10 s".into()),
    }
}

fn models(policy: &Policy) -> Check {
    let present = policy.models_present();
    let missing: Vec<String> = policy
        .models
        .iter()
        .filter(|(code, _)| !present.contains(code))
        .map(|(code, path)| format!("{code} at {path}"))
        .collect();
    if !missing.is_empty() {
        return Check::fails(
            "models",
            format!("missing: {}", missing.join(", ")),
            "correct [models] in agent.toml, or put the files there",
        );
    }
    if present.is_empty() {
        return Check::note(
            "models",
            "none in the policy",
            "frameworks get the model's code and load it by themselves; add local ones under [models] in agent.toml",
        );
    }
    Check::fine("models", present.join(", "))
}

fn folder_is_writable(what: &'static str, folder: &Path) -> Check {
    let probe = folder.join(format!(".doctor-{}", std::process::id()));
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&probe, b"probe"))
        .and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) => Check::fine(what, folder.display()),
        Err(error) => Check::fails(
            what,
            format!("{}: {error}", folder.display()),
            "make it writable for this user, or name another one in agent.toml",
        ),
    }
}

fn disk(folder: &Path) -> Check {
    match nix::sys::statvfs::statvfs(folder) {
        Ok(stat) => {
            let free = stat.blocks_available().saturating_mul(stat.fragment_size());
            let found = format!("{:.1} GiB free for logs and reports", free as f64 / f64::from(1 << 30));
            if free < LITTLE_DISK {
                return Check::fails(
                    "disk",
                    found,
                    "free some room: reports that are not acknowledged are kept on this disk",
                );
            }
            Check::fine("disk", found)
        }
        Err(errno) => Check::note("disk", errno, "the free room cannot be read"),
    }
}

fn gpus() -> Check {
    let found = telemetry::accelerators();
    if found.gpus.is_empty() {
        let why = match telemetry::nvml_state() {
            NvmlState::Absent(why) => why,
            NvmlState::Loaded(_) => "NVML counts none".to_owned(),
        };
        return Check::note(
            "GPUs",
            "none by NVML, none by amdgpu",
            format!("{why}. Fine on a host without NVIDIA or AMD GPUs; otherwise install the driver"),
        );
    }
    let driver = found.driver_version.unwrap_or_else(|| "unknown".into());
    let names: Vec<String> = found.gpus.into_iter().map(|gpu| gpu.name).collect();
    Check::fine("GPUs", format!("{} (driver {driver}): {}", names.len(), names.join(", ")))
}

fn open_files() -> Check {
    match nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) if hard < FEW_FILES => Check::note(
            "open files",
            format!("{soft}, at most {hard}"),
            "raise it for high concurrency: LimitNOFILE=65536 in the service, or ulimit -n 65536",
        ),
        Ok((soft, hard)) => Check::fine("open files", format!("{soft}, at most {hard}")),
        Err(errno) => Check::note("open files", errno, "the limit cannot be read"),
    }
}
