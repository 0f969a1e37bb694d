//! Organisations, their members, and who is invited.

use std::collections::BTreeMap;

use events::Event;
use events::access::{
    InvitationAccepted, InvitationCreated, InvitationRevoked, MemberRoleSet, OrgCreated, OrgRenamed, Role,
};
use events::envelope::Recorded;
use events::keys::{PLATFORM_ORG, check_code};
use events::timestamp::Timestamp;

use super::project::check_name;
use super::{LoadError, Refusal, decode, wrong_beginning};

/// More invitations than this are not open at once.
const MOST_OPEN: usize = 500;

/// An invitation, as far as it can still be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The role it gives.
    pub role: Role,
    /// Until when it can be accepted.
    pub expires_at: Timestamp,
}

/// An organisation as its stream's events made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Org {
    /// The display name.
    pub name: String,
    /// Its members' roles, by user id.
    pub members: BTreeMap<String, Role>,
    /// Invitations that were neither accepted nor revoked, by their id; some may have expired.
    pub invitations: BTreeMap<String, Invitation>,
    /// The version of its stream.
    pub version: i64,
}

impl Org {
    /// The organisation its stream's events make; nothing for an empty stream.
    ///
    /// # Errors
    /// An event cannot be read, or the stream does not begin with `org.created`.
    pub fn load(events: &[Recorded]) -> Result<Option<Self>, LoadError> {
        let Some((first, rest)) = events.split_first() else { return Ok(None) };
        let Event::OrgCreated(created) = decode(first)? else {
            return Err(wrong_beginning(first, "org", "org.created"));
        };
        let mut org = Self::created(created.name);
        for recorded in rest {
            org.evolve(&decode(recorded)?);
        }
        Ok(Some(org))
    }

    fn created(name: String) -> Self {
        Self { name, members: BTreeMap::new(), invitations: BTreeMap::new(), version: 1 }
    }

    /// What an event makes of the organisation.
    pub fn evolve(&mut self, event: &Event) {
        self.version += 1;
        match event {
            Event::OrgRenamed(renamed) => self.name.clone_from(&renamed.name),
            Event::MemberRoleSet(MemberRoleSet { user, role: Some(role) }) => {
                self.members.insert(user.clone(), *role);
            }
            Event::MemberRoleSet(MemberRoleSet { user, role: None }) => {
                self.members.remove(user);
            }
            Event::InvitationCreated(created) => {
                let invitation = Invitation { role: created.role, expires_at: created.expires_at };
                self.invitations.insert(created.invitation.clone(), invitation);
            }
            Event::InvitationAccepted(InvitationAccepted { invitation, .. })
            | Event::InvitationRevoked(InvitationRevoked { invitation }) => {
                self.invitations.remove(invitation);
            }
            _ => {}
        }
    }

    /// An organisation comes to be, with its first administrator.
    ///
    /// # Errors
    /// `bad_code`, `bad_name`.
    pub fn create(code: &str, name: &str, first_admin: &str) -> Result<Vec<Event>, Refusal> {
        if code == PLATFORM_ORG {
            return Err(Refusal::invalid("bad_code", "the organisation _ stands for the platform itself"));
        }
        check_code("organisation code", code)?;
        let set = MemberRoleSet { user: first_admin.to_owned(), role: Some(Role::Admin) };
        Ok(vec![Event::OrgCreated(OrgCreated { name: check_name(name)? }), Event::MemberRoleSet(set)])
    }

    /// It gets another display name. Nothing to append when it has that name.
    ///
    /// # Errors
    /// `bad_name`.
    pub fn rename(&self, name: &str) -> Result<Vec<Event>, Refusal> {
        let name = check_name(name)?;
        Ok(if name == self.name { vec![] } else { vec![Event::OrgRenamed(OrgRenamed { name })] })
    }

    /// An account gets a role, or none. Nothing to append when it has that role.
    ///
    /// # Errors
    /// `last_admin`: an organisation keeps at least one administrator.
    pub fn set_role(&self, user: &str, role: Option<Role>) -> Result<Vec<Event>, Refusal> {
        let present = self.members.get(user).copied();
        if present == role {
            return Ok(vec![]);
        }
        let admins = self.members.values().filter(|role| **role == Role::Admin).count();
        if present == Some(Role::Admin) && admins == 1 {
            return Err(Refusal::conflict("last_admin", "an organisation keeps at least one administrator")
                .hint("make another member an administrator first"));
        }
        Ok(vec![Event::MemberRoleSet(MemberRoleSet { user: user.to_owned(), role })])
    }

    /// A member gets another role, or is removed. Whoever is no member is invited instead.
    ///
    /// # Errors
    /// `member_not_found`, `last_admin`.
    pub fn change_member(&self, user: &str, role: Option<Role>) -> Result<Vec<Event>, Refusal> {
        if !self.members.contains_key(user) {
            return Err(Refusal::not_found("member_not_found", "there is no such member")
                .hint("GET /api/v_members lists them; create_invitation invites somebody"));
        }
        self.set_role(user, role)
    }

    /// Somebody is invited.
    ///
    /// # Errors
    /// `bad_expiry`, `too_many_invitations`.
    pub fn invite(&self, id: &str, role: Role, days: u32, now: Timestamp) -> Result<Vec<Event>, Refusal> {
        if !(1..=30).contains(&days) {
            let message = format!("an invitation lives 1 to 30 days, not {days}");
            return Err(Refusal::invalid("bad_expiry", message).hint("make another one later"));
        }
        let open = self.invitations.values().filter(|invitation| invitation.expires_at > now).count();
        if open >= MOST_OPEN {
            let message = format!("{open} invitations are open already");
            return Err(
                Refusal::conflict("too_many_invitations", message).hint("revoke some with revoke_invitation")
            );
        }
        let expires_at = now.plus_micros(i64::from(days) * 86_400_000_000);
        let created = InvitationCreated { invitation: id.to_owned(), role, expires_at };
        Ok(vec![Event::InvitationCreated(created)])
    }

    /// An invitation is withdrawn.
    ///
    /// # Errors
    /// `invitation_not_found`: there is none, or it was accepted or revoked.
    pub fn revoke_invitation(&self, id: &str) -> Result<Vec<Event>, Refusal> {
        if !self.invitations.contains_key(id) {
            return Err(Refusal::not_found("invitation_not_found", "there is no such open invitation")
                .hint("GET /api/v_invitations lists them"));
        }
        Ok(vec![Event::InvitationRevoked(InvitationRevoked { invitation: id.to_owned() })])
    }

    /// The invitation, while it can be accepted.
    ///
    /// # Errors
    /// `invitation_not_valid`: it was accepted or revoked, or has expired.
    pub fn open_invitation(&self, id: &str, now: Timestamp) -> Result<&Invitation, Refusal> {
        self.invitations
            .get(id)
            .filter(|invitation| invitation.expires_at > now)
            .ok_or_else(invitation_not_valid)
    }

    /// An account accepts an invitation. A member who has a higher role keeps it.
    ///
    /// # Errors
    /// `invitation_not_valid`.
    pub fn accept(&self, id: &str, user: &str, now: Timestamp) -> Result<Vec<Event>, Refusal> {
        let invited = self.open_invitation(id, now)?.role;
        let accepted = InvitationAccepted { invitation: id.to_owned(), user: user.to_owned() };
        let mut events = vec![Event::InvitationAccepted(accepted)];
        if self.members.get(user).is_none_or(|present| *present < invited) {
            let set = MemberRoleSet { user: user.to_owned(), role: Some(invited) };
            events.push(Event::MemberRoleSet(set));
        }
        Ok(events)
    }
}

/// The answer to a link that leads nowhere, whatever the reason.
pub fn invitation_not_valid() -> Refusal {
    let message = "the invitation is not valid: it is unknown, was accepted or revoked, or has expired";
    Refusal::not_found("invitation_not_valid", message)
        .hint("ask an administrator of the organisation for another one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::testing::at;

    fn org() -> Org {
        let mut org = Org::created("Acme".into());
        org.evolve(&Org::create("acme", "Acme", "ann").unwrap()[1]);
        org
    }

    #[test]
    fn the_last_administrator_stays() {
        assert_eq!(org().set_role("ann", Some(Role::Member)).unwrap_err().code, "last_admin");
        assert_eq!(org().set_role("ann", None).unwrap_err().code, "last_admin");
    }

    #[test]
    fn a_member_leaves_when_the_role_is_taken_away() {
        let mut org = org();
        let joined = org.set_role("bob", Some(Role::Viewer)).unwrap();
        org.evolve(&joined[0]);
        assert_eq!(org.members.get("bob"), Some(&Role::Viewer));
        let left = org.set_role("bob", None).unwrap();
        org.evolve(&left[0]);
        assert_eq!(org.members.get("bob"), None);
    }

    #[test]
    fn the_platforms_own_name_is_taken() {
        assert_eq!(Org::create("_", "Platform", "ann").unwrap_err().code, "bad_code");
    }

    #[test]
    fn an_invitation_is_accepted_once_and_in_time() {
        let mut org = org();
        for event in org.invite("i1", Role::Member, 1, at(0)).unwrap() {
            org.evolve(&event);
        }
        assert_eq!(org.accept("i1", "bob", at(86_400)).unwrap_err().code, "invitation_not_valid");
        let accepted = org.accept("i1", "bob", at(86_399)).unwrap();
        accepted.iter().for_each(|event| org.evolve(event));
        assert_eq!(org.members.get("bob"), Some(&Role::Member));
        assert_eq!(org.accept("i1", "eve", at(1)).unwrap_err().code, "invitation_not_valid");
    }

    #[test]
    fn an_invitation_takes_no_role_away() {
        let mut org = org();
        for event in org.invite("i1", Role::Viewer, 1, at(0)).unwrap() {
            org.evolve(&event);
        }
        assert_eq!(org.accept("i1", "ann", at(1)).unwrap().len(), 1);
    }

    #[test]
    fn a_revoked_invitation_opens_nothing() {
        let mut org = org();
        for event in org.invite("i1", Role::Viewer, 1, at(0)).unwrap() {
            org.evolve(&event);
        }
        for event in org.revoke_invitation("i1").unwrap() {
            org.evolve(&event);
        }
        assert_eq!(org.accept("i1", "bob", at(1)).unwrap_err().code, "invitation_not_valid");
        assert_eq!(org.revoke_invitation("i1").unwrap_err().code, "invitation_not_found");
        assert_eq!(org.invite("i2", Role::Viewer, 31, at(0)).unwrap_err().code, "bad_expiry");
    }

    #[test]
    fn who_is_no_member_gets_no_role_without_an_invitation() {
        assert_eq!(org().change_member("eve", Some(Role::Admin)).unwrap_err().code, "member_not_found");
    }

    #[test]
    fn the_same_name_again_appends_nothing() {
        assert_eq!(org().rename("Acme"), Ok(vec![]));
        assert_eq!(org().rename(" ").unwrap_err().code, "bad_name");
    }
}
