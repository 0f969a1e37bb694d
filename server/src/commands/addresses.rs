//! The addresses that a workload names: each is judged before anything is kept or started.

use events::workload::{WorkloadSpec, addresses_in};

use crate::domain::Refusal;
use crate::outbound::HOW_TO_ALLOW;
use crate::resolve::SetInForce;
use crate::state::AppState;

/// What is wrong with the first address that workloads may not name; nothing where all is well. The set's own are judged
/// with those of the workload.
pub(super) async fn fault(state: &AppState, spec: &WorkloadSpec, set: Option<&SetInForce>) -> Option<String> {
    let of_set = set.map(SetInForce::args).unwrap_or_default();
    let of_set = addresses_in("the set's argument", &of_set);
    for (field, url) in spec.addresses().into_iter().chain(of_set) {
        if let Err(why) = state.config.endpoints.check(url).await {
            let shown: String = url.chars().take(200).collect();
            return Some(format!("{field} is {shown}: {why}"));
        }
    }
    None
}

/// Refuses a workload that names an address it may not.
///
/// # Errors
/// `address_refused`.
pub(super) async fn check(
    state: &AppState,
    spec: &WorkloadSpec,
    set: Option<&SetInForce>,
) -> Result<(), Refusal> {
    match fault(state, spec, set).await {
        Some(why) => Err(Refusal::invalid("address_refused", why).hint(HOW_TO_ALLOW)),
        None => Ok(()),
    }
}
