//! Projects: a named folder for one benchmarking question, and who may see what is in it.

use events::Event;
use events::access::Role;
use events::envelope::Recorded;
use events::keys::{ProjectKey, check_code};
use events::project::{
    ProjectArchived, ProjectCreated, ProjectRenamed, ProjectVisibility, ProjectVisibilityChanged,
};

use super::{Aggregate, LoadError, Refusal, decode, wrong_beginning};

/// The longest display name, in characters.
pub const MAX_NAME: usize = 200;

/// A project as its stream's events made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The display name.
    pub name: String,
    /// Who may see it.
    pub visibility: ProjectVisibility,
    /// The user who owns it.
    pub owner: String,
    /// Whether it is hidden from lists and takes no more work.
    pub archived: bool,
    /// The version of its stream.
    pub version: i64,
}

impl Aggregate for Project {
    fn begin(first: &Recorded) -> Result<Self, LoadError> {
        let Event::ProjectCreated(created) = decode(first)? else {
            return Err(wrong_beginning(first, "project", "project.created"));
        };
        Ok(Self {
            name: created.name,
            visibility: created.visibility,
            owner: created.owner,
            archived: false,
            version: 1,
        })
    }

    fn follow(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        self.evolve(&decode(recorded)?);
        Ok(())
    }
}

impl Project {
    /// What an event makes of the project.
    pub fn evolve(&mut self, event: &Event) {
        self.version += 1;
        match event {
            Event::ProjectRenamed(renamed) => self.name.clone_from(&renamed.name),
            Event::ProjectVisibilityChanged(changed) => self.visibility = changed.visibility,
            Event::ProjectArchived(_) => self.archived = true,
            _ => {}
        }
    }

    /// A person creates a project. That the code is free is the append's `NoStream` to judge.
    ///
    /// # Errors
    /// `bad_code`, `bad_name`.
    pub fn create(
        key: &ProjectKey,
        name: &str,
        visibility: ProjectVisibility,
        owner: &str,
    ) -> Result<Vec<Event>, Refusal> {
        check_code("project code", &key.project)?;
        let created = ProjectCreated { name: check_name(name)?, visibility, owner: owner.to_owned() };
        Ok(vec![Event::ProjectCreated(created)])
    }

    /// A person renames the project.
    ///
    /// # Errors
    /// `bad_name`, `project_archived`.
    pub fn rename(&self, name: &str) -> Result<Vec<Event>, Refusal> {
        self.check_open()?;
        let name = check_name(name)?;
        Ok(if name == self.name { vec![] } else { vec![Event::ProjectRenamed(ProjectRenamed { name })] })
    }

    /// A person changes who may see the project.
    ///
    /// # Errors
    /// `project_archived`.
    pub fn change_visibility(&self, visibility: ProjectVisibility) -> Result<Vec<Event>, Refusal> {
        self.check_open()?;
        Ok(if visibility == self.visibility {
            vec![]
        } else {
            vec![Event::ProjectVisibilityChanged(ProjectVisibilityChanged { visibility })]
        })
    }

    /// A person archives the project.
    pub fn archive(&self) -> Vec<Event> {
        if self.archived { vec![] } else { vec![Event::ProjectArchived(ProjectArchived {})] }
    }

    /// Refuses more work in an archived project.
    ///
    /// # Errors
    /// `project_archived`.
    pub fn check_open(&self) -> Result<(), Refusal> {
        if self.archived {
            return Err(Refusal::conflict("project_archived", "the project is archived")
                .hint("create the workload in another project"));
        }
        Ok(())
    }

    /// Whether this member of the project's own organisation may change things in it. A private project is its
    /// creator's alone, administrators excluded.
    ///
    /// # Errors
    /// `project_not_found` where the member may not even see it, `role_too_low` for viewers.
    pub fn check_writable(&self, key: &ProjectKey, user: &str, role: Role) -> Result<(), Refusal> {
        if self.visibility == ProjectVisibility::Private && self.owner != user {
            return Err(project_not_found(key));
        }
        if role < Role::Member {
            return Err(Refusal::forbidden("role_too_low", "viewers cannot change projects or execute runs")
                .hint("ask an administrator of the organisation for the role member"));
        }
        Ok(())
    }
}

/// The refusal for a project that is not there, or that the caller may not see: the two must look alike.
pub fn project_not_found(key: &ProjectKey) -> Refusal {
    Refusal::not_found("project_not_found", format!("there is no project {:?} here", key.project))
        .hint("GET /api/v_projects lists the projects you may see")
}

/// A display name without its surrounding blanks.
///
/// # Errors
/// `bad_name`: empty, too long, or with control characters.
pub fn check_name(name: &str) -> Result<String, Refusal> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(Refusal::invalid(
            "bad_name",
            format!("a display name has 1 to {MAX_NAME} characters and no control characters"),
        ));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private() -> Project {
        Project {
            name: "p".into(),
            visibility: ProjectVisibility::Private,
            owner: "ann".into(),
            archived: false,
            version: 1,
        }
    }

    fn key() -> ProjectKey {
        ProjectKey { org: "acme".into(), project: "p".into() }
    }

    #[test]
    fn a_private_project_is_not_found_by_an_administrator() {
        assert_eq!(
            private().check_writable(&key(), "bob", Role::Admin).unwrap_err().code,
            "project_not_found"
        );
        assert_eq!(private().check_writable(&key(), "ann", Role::Member), Ok(()));
    }

    #[test]
    fn a_viewer_changes_nothing() {
        let project = Project { visibility: ProjectVisibility::Public, ..private() };
        assert_eq!(project.check_writable(&key(), "bob", Role::Viewer).unwrap_err().code, "role_too_low");
    }

    #[test]
    fn a_code_with_a_slash_is_refused() {
        let key = ProjectKey { org: "acme".into(), project: "a/b".into() };
        let refusal = Project::create(&key, "A", ProjectVisibility::Private, "ann").unwrap_err();
        assert_eq!((refusal.code, refusal.class.status()), ("bad_code", 400));
    }

    #[test]
    fn an_archived_project_takes_no_more_changes() {
        let mut project = private();
        project.evolve(&project.archive()[0]);
        assert_eq!(project.rename("q").unwrap_err().code, "project_archived");
        assert_eq!(project.archive(), []);
    }

    #[test]
    fn the_same_name_again_is_no_event() {
        assert_eq!(private().rename(" p "), Ok(vec![]));
    }
}
