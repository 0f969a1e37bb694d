//! Who is asking, and what follows from it.

use std::sync::Arc;

use events::access::Role;
use events::envelope::{Actor, ActorKind};
use events::keys::ServerKey;

use super::Denied;

/// What a token may do at most; its owner's role is the other bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes {
    /// `read`: everything its owner may see.
    pub read: bool,
    /// `write`: create projects, execute and cancel runs. Includes `read`.
    pub write: bool,
    /// `admin`: manage servers, members and tokens. Includes `write`.
    pub admin: bool,
}

impl Scopes {
    /// The words a token can be made with.
    pub const WORDS: &'static [&'static str] = &["read", "write", "admin"];

    /// Reads the words; `None` where one is unknown or there is none.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Option<Self> {
        let mut scopes = Self::default();
        for word in words {
            match word.as_ref() {
                "read" => scopes.read = true,
                "write" => scopes.write = true,
                "admin" => scopes.admin = true,
                _ => return None,
            }
        }
        (!words.is_empty()).then_some(scopes)
    }

    /// The highest role these scopes can stand for; `None` when they allow nothing.
    pub fn role(self) -> Option<Role> {
        if self.admin {
            return Some(Role::Admin);
        }
        if self.write {
            return Some(Role::Member);
        }
        self.read.then_some(Role::Viewer)
    }
}

/// Who is asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// A person with a session.
    User {
        /// The account's id.
        id: String,
        /// The organisation worked in.
        org: String,
        /// The role there.
        role: Role,
    },
    /// A person's API token.
    Token {
        /// The token's id, not the token.
        token: String,
        /// The owner's account id.
        user: String,
        /// The organisation it works in.
        org: String,
        /// The owner's role there.
        role: Role,
        /// What the token may do at most.
        scopes: Scopes,
    },
    /// An enrolled agent.
    Agent {
        /// The server it stands for.
        server: ServerKey,
        /// Its name, see [`ServerKey::agent`].
        agent: String,
    },
    /// The control plane itself.
    System,
    /// Nobody who signed in.
    Anonymous,
}

/// A person, by session or token, who was found to have the role that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The account's id.
    pub user: String,
    /// The organisation worked in.
    pub org: String,
    /// The effective role: a token's scopes bound it.
    pub role: Role,
}

impl Principal {
    /// Whoever may run `benchtrail` on the control plane's host, acting in an organisation.
    pub fn operator(org: &str) -> Self {
        Self::User { id: "operator".to_owned(), org: org.to_owned(), role: Role::Admin }
    }

    /// Whether this is a token that may only read: it makes and revokes no tokens, whoever owns it.
    pub fn is_read_only_token(&self) -> bool {
        matches!(self, Self::Token { scopes, .. } if !scopes.write && !scopes.admin)
    }

    /// The organisation, where there is one.
    pub fn org(&self) -> Option<&str> {
        match self {
            Self::User { org, .. } | Self::Token { org, .. } => Some(org),
            Self::Agent { server, .. } => Some(&server.org),
            Self::System | Self::Anonymous => None,
        }
    }

    /// The account's id, where a person is asking.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::User { id, .. } => Some(id),
            Self::Token { user, .. } => Some(user),
            Self::Agent { .. } | Self::System | Self::Anonymous => None,
        }
    }

    /// The effective role of a person: a token's scopes bound it. `None` for everybody else.
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::User { role, .. } => Some(*role),
            Self::Token { role, scopes, .. } => scopes.role().map(|bound| bound.min(*role)),
            Self::Agent { .. } | Self::System | Self::Anonymous => None,
        }
    }

    /// Who stands in the envelope of the events this principal causes.
    pub fn actor(&self) -> Actor {
        let (kind, id) = match self {
            Self::User { id, .. } => (ActorKind::User, id.clone()),
            Self::Token { user, .. } => (ActorKind::User, user.clone()),
            Self::Agent { agent, .. } => (ActorKind::Agent, agent.clone()),
            Self::System => (ActorKind::System, "control-plane".to_owned()),
            Self::Anonymous => (ActorKind::Anonymous, "anonymous".to_owned()),
        };
        Actor { kind, id }
    }

    /// The caller, when a person with at least this role is asking.
    ///
    /// # Errors
    /// [`Denied`] says what is missing: a sign-in, a role, or a scope of the token.
    pub fn require(&self, needed: Role) -> Result<Caller, Denied> {
        let (user, org, role) = match self {
            Self::User { id, org, role } => (id, org, *role),
            Self::Token { user, org, role, scopes, .. } => match scopes.role() {
                Some(bound) if bound >= needed || *role < needed => (user, org, bound.min(*role)),
                _ => return Err(Denied::Scope { needed }),
            },
            Self::Agent { .. } => return Err(Denied::AgentsMayNot),
            Self::System | Self::Anonymous => return Err(Denied::SignIn),
        };
        if role < needed {
            return Err(Denied::Role { needed, has: role });
        }
        Ok(Caller { user: user.clone(), org: org.clone(), role })
    }

    /// What this principal may see. The only way to make a [`Visibility`].
    pub fn visibility(&self) -> Visibility {
        let reads = self.role().is_some();
        let of = |value: Option<&str>| value.filter(|_| reads).map(str::to_owned);
        let admin = self.role() == Some(Role::Admin);
        Visibility { org: of(self.org()), user: of(self.user()), admin, people: None, sealed: Sealed }
    }

    /// A short text that names the principal, for throttles and idempotency keys. Holds no secret.
    pub fn fingerprint(&self) -> String {
        match self {
            Self::User { id, org, .. } => format!("user:{org}:{id}"),
            Self::Token { token, .. } => format!("token:{token}"),
            Self::Agent { server, agent } => format!("agent:{}:{agent}", server.org),
            Self::System => "system".to_owned(),
            Self::Anonymous => "anonymous".to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sealed;

/// What a reader may see: required by type in every query, live topic, export and history read.
///
/// A row is visible when it is public; when it is the organisation's and the reader works there; or when it is
/// private and the reader owns it. Administrators are no exception.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Visibility {
    /// The reader's organisation; absent for anonymous readers.
    pub org: Option<String>,
    /// The reader's account; absent for anonymous readers.
    pub user: Option<String>,
    /// Whether the reader administers the organisation, and so sees its members' doings in the audit trail. Projects
    /// are not among them.
    pub admin: bool,
    /// The names this reader may see, for views that show people: see [`super::accounts::people`].
    pub people: Option<Arc<str>>,
    sealed: Sealed,
}

impl Visibility {
    /// The same, with the names this reader may see.
    #[must_use]
    pub fn with_people(mut self, people: &str) -> Self {
        self.people = Some(people.into());
        self
    }

    /// Whether something of `org` with this `visibility` word (`private`, `organization`, `public`) and `owner` may
    /// be seen.
    pub fn sees(&self, org: &str, visibility: &str, owner: &str) -> bool {
        match visibility {
            "public" => true,
            "organization" => self.org.as_deref() == Some(org),
            "private" => {
                self.org.as_deref() == Some(org) && !owner.is_empty() && self.user.as_deref() == Some(owner)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(role: Role) -> Principal {
        Principal::User { id: "u1".into(), org: "acme".into(), role }
    }

    fn token(role: Role, words: &[&str]) -> Principal {
        let scopes = Scopes::parse(words).expect("known words");
        Principal::Token { token: "t1".into(), user: "u1".into(), org: "acme".into(), role, scopes }
    }

    #[test]
    fn an_admin_does_not_see_another_persons_private_project() {
        let seen = user(Role::Admin).visibility();
        assert!(!seen.sees("acme", "private", "u2"));
        assert!(seen.sees("acme", "private", "u1"));
        assert!(seen.sees("acme", "organization", "u2"));
    }

    #[test]
    fn nobody_sees_another_organisations_project_unless_it_is_public() {
        let seen = user(Role::Admin).visibility();
        assert!(!seen.sees("other", "organization", "u2"));
        assert!(!seen.sees("other", "private", "u1"));
        assert!(seen.sees("other", "public", "u2"));
    }

    #[test]
    fn an_anonymous_reader_sees_public_projects_only() {
        let seen = Principal::Anonymous.visibility();
        assert!(seen.sees("acme", "public", "u1"));
        assert!(!seen.sees("acme", "organization", "u1"));
        assert!(!seen.sees("acme", "private", ""));
    }

    #[test]
    fn an_unknown_visibility_shows_nothing() {
        assert!(!user(Role::Admin).visibility().sees("acme", "", "u1"));
    }

    #[test]
    fn a_token_can_do_no_more_than_its_scopes_and_no_more_than_its_owner() {
        assert!(token(Role::Admin, &["write"]).require(Role::Member).is_ok());
        assert!(matches!(token(Role::Admin, &["read"]).require(Role::Member), Err(Denied::Scope { .. })));
        assert!(matches!(token(Role::Viewer, &["admin"]).require(Role::Member), Err(Denied::Role { .. })));
    }

    #[test]
    fn an_agent_is_not_a_person() {
        let server = ServerKey { org: "acme".into(), config: "c".into(), hostname: "h".into() };
        let agent = Principal::Agent { agent: server.agent(), server };
        assert!(matches!(agent.require(Role::Viewer), Err(Denied::AgentsMayNot)));
        assert_eq!(agent.visibility().org, None);
    }
}
