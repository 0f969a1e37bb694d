//! Organisations, their members and their invitations: `v_organizations`, `v_members`, `v_invitations`. Ids only: the
//! views add the names that a reader may see.

use events::envelope::Recorded;
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};

use crate::projections::table::{Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

const ORGANIZATION: &str = "organization";

/// An organisation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrganizationRow {
    org: String,
    name: String,
    created_at: Timestamp,
    position: i64,
    visibility: String,
    owner: String,
}

impl Row for OrganizationRow {
    type Key = String;
    const TABLE: &'static str = "organizations";
    const KEY: &'static [&'static str] = &["org"];

    fn columns() -> Vec<Column> {
        vec![
            Column::shown("org", Kind::Text),
            Column::shown("name", Kind::Text),
            Column::shown("created_at", Kind::Time),
            Column::shown("position", Kind::Int),
            Column::hidden("visibility", Kind::Text),
            Column::hidden("owner", Kind::Text),
        ]
    }
    fn key(&self) -> Self::Key {
        self.org.clone()
    }
}

/// A member, or one who was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MemberRow {
    org: String,
    user_id: String,
    role: Option<String>,
    since: Timestamp,
    position: i64,
    visibility: String,
    owner: String,
}

impl Row for MemberRow {
    type Key = (String, String);
    const TABLE: &'static str = "members";
    const KEY: &'static [&'static str] = &["org", "user_id"];
    const INDEXES: &'static [&'static str] = &["user_id"];

    fn columns() -> Vec<Column> {
        vec![
            Column::shown("org", Kind::Text),
            Column::shown("user_id", Kind::Text),
            Column::shown("role", Kind::Text),
            Column::shown("since", Kind::Time),
            Column::shown("position", Kind::Int),
            Column::hidden("visibility", Kind::Text),
            Column::hidden("owner", Kind::Text),
        ]
    }
    fn key(&self) -> Self::Key {
        (self.org.clone(), self.user_id.clone())
    }
}

/// An invitation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InvitationRow {
    org: String,
    invitation_id: String,
    role: String,
    created_by: String,
    created_at: Timestamp,
    expires_at: Timestamp,
    accepted_at: Option<Timestamp>,
    accepted_by: Option<String>,
    revoked_at: Option<Timestamp>,
    position: i64,
    visibility: String,
    owner: String,
}

impl Row for InvitationRow {
    type Key = (String, String);
    const TABLE: &'static str = "invitations";
    const KEY: &'static [&'static str] = &["org", "invitation_id"];

    fn columns() -> Vec<Column> {
        vec![
            Column::shown("org", Kind::Text),
            Column::shown("invitation_id", Kind::Text),
            Column::shown("role", Kind::Text),
            Column::shown("created_by", Kind::Text),
            Column::shown("created_at", Kind::Time),
            Column::shown("expires_at", Kind::Time),
            Column::shown("accepted_at", Kind::Time),
            Column::shown("accepted_by", Kind::Text),
            Column::shown("revoked_at", Kind::Time),
            Column::shown("position", Kind::Int),
            Column::hidden("visibility", Kind::Text),
            Column::hidden("owner", Kind::Text),
        ]
    }
    fn key(&self) -> Self::Key {
        (self.org.clone(), self.invitation_id.clone())
    }
}

/// Folds `org.*`.
#[derive(Debug, Default)]
pub struct People {
    organizations: Table<OrganizationRow>,
    members: Table<MemberRow>,
    invitations: Table<InvitationRow>,
}

impl People {
    fn invitation(&mut self, org: &str, id: &str, position: i64) -> Result<&mut InvitationRow, FoldError> {
        self.invitations
            .get_mut(&(org.to_owned(), id.to_owned()), position)
            .ok_or_else(|| FoldError(format!("invitation {id} of {org} is not there")))
    }
}

impl Projection for People {
    fn name(&self) -> &'static str {
        "people"
    }
    fn version(&self) -> i32 {
        1
    }
    fn interests(&self) -> &'static [&'static str] {
        &[
            "org.created",
            "org.renamed",
            "org.member_role_set",
            "org.invitation_created",
            "org.invitation_accepted",
            "org.invitation_revoked",
        ]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.organizations, &mut self.members, &mut self.invitations]
    }

    fn wants(&mut self, recorded: &Recorded, event: &Event) {
        let org = recorded.stream.org().to_owned();
        match event {
            Event::MemberRoleSet(set) => self.members.want((org, set.user.clone())),
            Event::InvitationCreated(created) => self.invitations.want((org, created.invitation.clone())),
            Event::InvitationAccepted(accepted) => self.invitations.want((org, accepted.invitation.clone())),
            Event::InvitationRevoked(revoked) => self.invitations.want((org, revoked.invitation.clone())),
            _ => self.organizations.want(org),
        }
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let (position, at) = (recorded.position, recorded.recorded_at);
        let org = recorded.stream.org().to_owned();
        let (visibility, owner) = (ORGANIZATION.to_owned(), String::new());
        match event {
            Event::OrgCreated(created) => {
                let name = created.name.clone();
                let row = OrganizationRow { org, name, created_at: at, position, visibility, owner };
                self.organizations.put(row, position);
            }
            Event::OrgRenamed(renamed) => {
                let row = self
                    .organizations
                    .get_mut(&org, position)
                    .ok_or_else(|| FoldError(format!("organisation {org} is not there")))?;
                row.name.clone_from(&renamed.name);
                row.position = position;
            }
            Event::MemberRoleSet(set) => {
                let role = set.role.map(|role| role.as_str().to_owned());
                let key = (org.clone(), set.user.clone());
                // A change of role is no new membership.
                let since =
                    self.members.get(&key).filter(|row| row.role.is_some()).map_or(at, |row| row.since);
                let row =
                    MemberRow { org, user_id: set.user.clone(), role, since, position, visibility, owner };
                self.members.put(row, position);
            }
            Event::InvitationCreated(created) => {
                let row = InvitationRow {
                    org,
                    invitation_id: created.invitation.clone(),
                    role: created.role.as_str().to_owned(),
                    created_by: recorded.actor.id.clone(),
                    created_at: at,
                    expires_at: created.expires_at,
                    accepted_at: None,
                    accepted_by: None,
                    revoked_at: None,
                    position,
                    visibility,
                    owner,
                };
                self.invitations.put(row, position);
            }
            Event::InvitationAccepted(accepted) => {
                let row = self.invitation(&org, &accepted.invitation, position)?;
                row.accepted_at = Some(at);
                row.accepted_by = Some(accepted.user.clone());
                row.position = position;
            }
            Event::InvitationRevoked(revoked) => {
                let row = self.invitation(&org, &revoked.invitation, position)?;
                row.revoked_at = Some(at);
                row.position = position;
            }
            _ => {}
        }
        Ok(())
    }
}
