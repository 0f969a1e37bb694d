//! The endpoint of a workload whose model is served already.

use events::workload::WorkloadSpec;
use url::Url;

use crate::domain::Refusal;

/// The endpoint of framework `openai`; nothing for frameworks that are started.
///
/// # Errors
/// `endpoint_missing`, `bad_endpoint`, `endpoint_without_use`.
pub fn endpoint(workload: &WorkloadSpec, external: bool) -> Result<Option<String>, Refusal> {
    let Some(text) = &workload.endpoint_url else {
        if external {
            return Err(Refusal::invalid(
                "endpoint_missing",
                "framework openai needs the endpoint that already runs",
            )
            .hint("set p_endpoint_url, for example http://10.0.0.7:8000/v1"));
        }
        return Ok(None);
    };
    if !external {
        let message =
            format!("an endpoint is set, but framework {} is started by the agent", workload.framework_code);
        return Err(Refusal::invalid("endpoint_without_use", message)
            .hint("choose framework openai, or remove p_endpoint_url"));
    }
    let bad = |why: &str| {
        Refusal::invalid("bad_endpoint", format!("{text:?} is not an endpoint: {why}"))
            .hint("give an address such as https://host:8000/v1; keys are kept on the agent's host, not in the address")
    };
    if text.len() > 2000 || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(bad("too long, or with blanks"));
    }
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("only http and https are possible"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(bad("it names no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("it holds credentials"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it has a query or a fragment"));
    }
    Ok(Some(text.clone()))
}
