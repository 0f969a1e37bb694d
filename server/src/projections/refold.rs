//! Folding a few streams again, up to where they stood: what a row was at an earlier position.

use std::collections::{BTreeMap, HashMap};

use events::envelope::Recorded;

use super::batch::{Batch, BatchError, interests};
use super::{Projection, ProjectionError, registry};

/// Folds these events, in this order, into a projection that holds nothing, and gives its rows by table. Events that cannot
/// be folded are left out, as they were when they were new. What rows hold follows from the events of their own streams
/// and from the projects' rights alone; so these are all that is needed.
///
/// # Errors
/// There is no such projection, or a row cannot be written.
pub async fn refold(
    name: &str,
    facts: Vec<Recorded>,
) -> Result<HashMap<&'static str, Vec<serde_json::Value>>, ProjectionError> {
    let find = || registry().into_iter().find(|p| p.name() == name);
    let mut left_out = BTreeMap::new();
    let projection = find().ok_or_else(|| super::runner::unknown(name))?;
    let batch = Batch::decode(facts, 0, &interests(std::iter::once(&projection)));
    loop {
        let mut projection: Box<dyn Projection> = find().ok_or_else(|| super::runner::unknown(name))?;
        projection.tables().into_iter().for_each(|table| table.set_complete(true));
        match batch.fold(projection.as_mut(), None, 0, (0, i64::MAX), &left_out).await {
            Ok(_) => {
                let tables = projection.tables();
                return Ok(tables.iter().map(|table| Ok((table.name(), table.rows()?))).collect::<Result<
                    _,
                    super::StoreError,
                >>(
                )?);
            }
            Err(BatchError::Poison(poison)) => {
                left_out.insert(poison.position, poison);
            }
            Err(BatchError::Store(error)) => return Err(error.into()),
        }
    }
}
