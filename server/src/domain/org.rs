//! Organisations and their members.

use std::collections::BTreeMap;

use events::Event;
use events::access::{MemberRoleSet, OrgCreated, Role};
use events::envelope::Recorded;
use events::keys::{PLATFORM_ORG, check_code};

use super::project::check_name;
use super::{LoadError, Refusal, decode, wrong_beginning};

/// An organisation as its stream's events made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Org {
    /// The display name.
    pub name: String,
    /// Its members' roles, by user id.
    pub members: BTreeMap<String, Role>,
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
        let mut org = Self { name: created.name, members: BTreeMap::new(), version: 1 };
        for recorded in rest {
            org.evolve(&decode(recorded)?);
        }
        Ok(Some(org))
    }

    /// What an event makes of the organisation.
    pub fn evolve(&mut self, event: &Event) {
        self.version += 1;
        if let Event::MemberRoleSet(set) = event {
            match set.role {
                Some(role) => self.members.insert(set.user.clone(), role),
                None => self.members.remove(&set.user),
            };
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn org() -> Org {
        let mut org = Org { name: "Acme".into(), members: BTreeMap::new(), version: 1 };
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
}
