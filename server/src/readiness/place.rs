//! Is what the run needs where it runs?

use events::catalogue::EngineArgTemplate;
use events::report::CLOCK_LIMIT_MS;
use events::server_host::ServerState;

use super::cures::{advice, host, link, set};
use super::{Facts, Finding};
use crate::outbound::HOW_TO_ALLOW;
use crate::resolve::endpoint;

/// Milliseconds a host's clock may be off before it is worth a word.
const CLOCK_OFF_MS: f64 = 2_000.0;
/// The variables in which model servers look for a Hugging Face token.
const TOKENS: &[&str] = &["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"];

/// The server is registered, enrolled and heard.
pub(super) fn server_online(facts: &Facts<'_>) -> Finding {
    let Some(key) = facts.server_key else { return Finding::unknown("no server is chosen yet") };
    let name = &key.hostname;
    let Some(server) = facts.server else {
        return Finding::fails(
            format!("{name} is not a server of this organisation."),
            link("/hardware", "Choose a registered server, or add it under Hardware."),
        );
    };
    match server.state {
        ServerState::Online => match &server.maintenance {
            None => Finding::ok(format!("{name} is online.")),
            Some(reason) => Finding::Warning(
                format!("{name} is in maintenance ({reason}): jobs stay queued until that ends."),
                vec![
                    link("/hardware", "End the maintenance under Hardware."),
                    advice("Or choose another server."),
                ],
            ),
        },
        ServerState::Stale => Finding::warning(
            format!("{name} has not been heard for more than 2 minutes; jobs stay queued until it returns."),
            host("benchtrail-agent doctor", "Check benchtrail-agent on the host, or choose another server."),
        ),
        ServerState::Offline => Finding::fails(
            format!("{name} is offline: no heartbeat for 10 minutes or more."),
            host("benchtrail-agent run", "Start benchtrail-agent on the host, or choose another server."),
        ),
        ServerState::Registered => Finding::fails(
            format!("{name} is registered, but its agent has never been heard."),
            link("/hardware", "Run the bootstrap command on the host."),
        ),
        ServerState::RequiresReonboarding => Finding::fails(
            format!("{name} must be bootstrapped again."),
            link("/hardware", "Make a new bootstrap command under Hardware and run it on the host."),
        ),
    }
}

/// The host's clock is near the control plane's.
pub(super) fn clock_in_step(facts: &Facts<'_>) -> Finding {
    let Some(offset) = facts.capabilities().and_then(|host| host.clock_offset_ms) else {
        return Finding::DoesNotApply;
    };
    if offset.abs() <= CLOCK_OFF_MS {
        return Finding::ok(format!("It is off by {offset:.0} ms."));
    }
    let cure = host("timedatectl set-ntp true", "Keep the host's clock with NTP.");
    if offset.abs() <= CLOCK_LIMIT_MS {
        let message = format!(
            "The host's clock is off by {offset:.0} ms; beyond {CLOCK_LIMIT_MS:.0} ms its agent takes no job."
        );
        return Finding::warning(message, cure);
    }
    Finding::fails(
        format!(
            "The host's clock is off by {offset:.0} ms: its agent takes no job until it is right, since what it reports would lie outside the job's window and be refused."
        ),
        cure,
    )
}

/// An endpoint that runs already has a usable address; a framework that is started has none.
pub(super) fn endpoint_url(facts: &Facts<'_>) -> Finding {
    if !facts.is_external() && facts.workload.endpoint_url.is_none() {
        return Finding::DoesNotApply;
    }
    match endpoint(facts.workload, facts.is_external()) {
        Ok(Some(url)) => Finding::ok(format!("Load goes to {url}.")),
        Ok(None) => Finding::DoesNotApply,
        Err(refusal) => {
            Finding::fails(sentence(&refusal.message), advice(sentence(&refusal.hint.unwrap_or_default())))
        }
    }
}

/// The endpoint that is to run already was asked. The control plane is not where the load comes from: what does not answer it
/// may answer the server.
pub(super) fn endpoint_answers(facts: &Facts<'_>) -> Finding {
    let url = facts.workload.endpoint_url.as_deref().unwrap_or_default();
    match facts.endpoint_answer {
        None => Finding::DoesNotApply,
        Some(Ok(status)) => Finding::ok(format!("{url} answers the control plane ({status}).")),
        Some(Err(why)) => Finding::warning(
            format!(
                "{url} does not answer the control plane: {why}. The run fails unless it answers the server."
            ),
            advice("Start the endpoint, or correct its address."),
        ),
    }
}

/// The addresses that the workload names lead where the operator lets agents connect to.
pub(super) fn addresses_allowed(facts: &Facts<'_>) -> Finding {
    match facts.address_fault {
        Some(why) => Finding::fails(sentence(why), advice(sentence(HOW_TO_ALLOW))),
        None if facts.names_no_address() => Finding::DoesNotApply,
        None => Finding::ok("They are public, or the operator allowed their ranges."),
    }
}

/// The framework's executable is on the host, and its agent may start it.
pub(super) fn framework_available(facts: &Facts<'_>) -> Finding {
    if facts.is_external() {
        return Finding::DoesNotApply;
    }
    executable(facts, facts.framework.serve_argv.first())
}

/// The tool's executable is on the host, and its agent may start it.
pub(super) fn tool_available(facts: &Facts<'_>) -> Finding {
    let finding = executable(facts, facts.tool.argv.first());
    match (finding, &facts.tool.install) {
        // One that is not part of the agent: say how the host gets it.
        (Finding::Fails(message, _), Some(install)) => {
            let name = facts.tool.argv.first().cloned().unwrap_or_default();
            let restart = "Then name it under [executables] in agent.toml and restart the agent.";
            Finding::Fails(message, vec![advice(install.clone()), host(format!("{name} = []"), restart)])
        }
        (finding, _) => finding,
    }
}

fn executable(facts: &Facts<'_>, executable: Option<&String>) -> Finding {
    let Some(executable) = executable else {
        return Finding::fails(
            "The catalogue does not say how it is started.",
            advice("Choose another version."),
        );
    };
    let Some(capabilities) = facts.capabilities() else {
        return Finding::unknown(format!(
            "whether {executable} is installed is not known until the agent reports"
        ));
    };
    if executable.starts_with('{') {
        return Finding::ok("It runs in the agent's own Python.");
    }
    if capabilities.executables.contains(executable) {
        return Finding::ok(format!("{executable} is installed and allowed."));
    }
    Finding::Fails(
        format!("{executable} is not among the executables that the host's agent may start."),
        vec![
            host(
                format!("{executable} = []"),
                format!(
                    "Install {executable} on the host and name it under [executables] in agent.toml, then restart the agent."
                ),
            ),
            advice("Or choose a framework that the host has."),
        ],
    )
}

/// Inputs that only hosts have lie on this one.
pub(super) fn snapshot_present(facts: &Facts<'_>) -> Finding {
    let named = facts.resolved.and_then(|resolved| resolved.as_ref().ok()?.commands.prompt_source.as_ref());
    let Some(source) = named.filter(|source| source.sha256.is_none()) else { return Finding::DoesNotApply };
    let code = &source.code;
    let Some(capabilities) = facts.capabilities() else {
        return Finding::unknown(format!(
            "whether {code} is on the host is not known until the agent reports"
        ));
    };
    if capabilities.snapshots.contains(code) {
        return Finding::ok(format!("{code} is on the host."));
    }
    Finding::fails(
        format!("{code} is not on the host."),
        host(
            format!("{code} = \"/path/of/its/folder\""),
            format!(
                "Lay it into a folder of the host's and name that under [snapshots] in agent.toml as \"{code}\", then \
                 restart the agent."
            ),
        ),
    )
}

/// Frameworks that read the model from a file of the host's find it there.
pub(super) fn model_present(facts: &Facts<'_>) -> Finding {
    if facts.is_external() || !reads_model_file(facts) {
        return Finding::DoesNotApply;
    }
    let code = &facts.workload.model_code;
    let Some(capabilities) = facts.capabilities() else {
        return Finding::unknown(format!(
            "whether {code} is on the host is not known until the agent reports"
        ));
    };
    if capabilities.models.contains(code) {
        return Finding::ok(format!("{code} is on the host."));
    }
    let present = match capabilities.models.as_slice() {
        [] => "it has none".to_owned(),
        models => format!("it has {}", models.join(", ")),
    };
    let mut cures = vec![host(
        format!("\"{code}\" = \"/path/to/model.gguf\""),
        format!(
            "Put the model's file on the host and name it under [models] in agent.toml as \"{code}\", then restart the agent."
        ),
    )];
    match capabilities.models.first() {
        Some(model) => {
            cures.push(set(
                "p_model_code",
                model.as_str(),
                format!("Or choose a model that the host has: {model}."),
            ));
        }
        None => cures.push(advice("Or choose a server that has the model.")),
    }
    Finding::Fails(format!("{code} is not on the host; {present}."), cures)
}

/// A gated model that the framework downloads needs a token on the host.
pub(super) fn token_present(facts: &Facts<'_>) -> Finding {
    if !facts.model.gated || !facts.loads_model() || reads_model_file(facts) {
        return Finding::DoesNotApply;
    }
    let code = &facts.workload.model_code;
    let on_the_host = facts.capabilities().is_some_and(|host| host.models.contains(code));
    let secrets = facts.capabilities().and_then(|host| host.secrets.as_ref());
    if on_the_host
        || secrets.is_some_and(|secrets| TOKENS.iter().any(|name| secrets.iter().any(|s| s == name)))
    {
        return Finding::ok(format!(
            "{code} is gated; the host has a Hugging Face token, or the model itself."
        ));
    }
    if facts.stored_token {
        return Finding::ok(format!(
            "{code} is gated; a stored Hugging Face token is given to the job's agent."
        ));
    }
    let message = format!("{code} is gated: its weights are given only to holders of an accepted token.");
    let cures = vec![
        link(&format!("https://huggingface.co/{code}"), "Accept the model's licence on Hugging Face."),
        advice("Store a token under Profile (set_hf_token); it is given to the agent of the job alone."),
        host("HF_TOKEN=…", "Set HF_TOKEN on the host, in the agent's environment, and restart the agent."),
    ];
    let known = secrets.is_some() && !facts.model.unverified.iter().any(|field| field == "gated");
    if known { Finding::Fails(message, cures) } else { Finding::Warning(message, cures) }
}

/// Whether the framework's command is given the model as a file of the host's.
pub(super) fn reads_model_file(facts: &Facts<'_>) -> bool {
    facts.framework.serve_argv.iter().any(|element| element.contains("{agent.model}"))
}

/// Whether an argument exists in the framework's version.
pub(super) fn knows<'a>(facts: &'a Facts<'_>, key: &str) -> Option<&'a EngineArgTemplate> {
    facts.framework.engine_args.get(key)
}

/// A message as a sentence.
pub(super) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}
