//! How far the projections are, told to whoever waits for them.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::PgPool;
use tokio::sync::watch;

use super::Member;
use crate::projections::handle::{ProjectionState, Status};
use crate::projections::{registry, store};

/// Tells what the database says.
pub(super) async fn publish(
    pool: &PgPool,
    status: &watch::Sender<Arc<Status>>,
    leader: bool,
) -> Result<(), sqlx::Error> {
    let versions: HashMap<&str, i32> = registry().iter().map(|p| (p.name(), p.version())).collect();
    let projections = store::live(pool)
        .await?
        .into_iter()
        .filter(|(g, _)| versions.contains_key(g.name.as_str()))
        .map(|(_, mut status)| {
            if versions.get(status.name.as_str()) != Some(&status.code_version) {
                status.state = ProjectionState::Rebuilding;
            }
            status
        })
        .collect();
    let new = Status { leader, projections };
    status.send_if_modified(|old| {
        let changed = **old != new;
        if changed {
            *old = Arc::new(new);
        }
        changed
    });
    Ok(())
}

/// Tells where the members are, without asking the database.
pub(super) fn publish_positions(status: &watch::Sender<Arc<Status>>, members: &[Member]) {
    status.send_if_modified(|old| {
        let mut new = Status::clone(old);
        for p in &mut new.projections {
            if let Some(member) = members.iter().find(|m| m.at.name == p.name) {
                p.position = member.at.position;
                p.generation = member.at.generation;
            }
        }
        let changed = **old != new;
        if changed {
            *old = Arc::new(new);
        }
        changed
    });
}
