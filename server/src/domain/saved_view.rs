//! Saved views: an address of the page under a name.

use events::Event;
use events::access::Role;
use events::envelope::Recorded;
use events::keys::{check_code, code_from_name};
use events::saved_view::{ViewRemoved, ViewSaved};

use super::project::check_name;
use super::{LoadError, Refusal, decode};

/// The longest query of an address, bytes.
pub const MAX_QUERY: usize = 4000;
/// The longest path of an address, bytes.
const MAX_PAGE: usize = 500;

/// A saved view as its stream's events made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedView {
    /// What it is now; nothing before it was saved and after it was removed.
    pub saved: Option<Saved>,
}

/// What a saved view holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The user who saved it last.
    by: String,
    name: String,
    page: String,
    query: String,
}

impl SavedView {
    /// The view its stream's events make.
    ///
    /// # Errors
    /// An event cannot be read.
    pub fn load(events: &[Recorded]) -> Result<Self, LoadError> {
        let mut view = Self { saved: None };
        for recorded in events {
            match decode(recorded)? {
                Event::ViewSaved(ViewSaved { name, page, query }) => {
                    view.saved = Some(Saved { by: recorded.actor.id.clone(), name, page, query });
                }
                Event::ViewRemoved(_) => view.saved = None,
                _ => {}
            }
        }
        Ok(view)
    }

    /// A person saves it, or another in its place. Nothing to append where it is just that already.
    ///
    /// # Errors
    /// `bad_name`, `bad_address`, and as [`Self::check_changeable`].
    pub fn save(
        &self,
        name: &str,
        page: &str,
        query: &str,
        user: &str,
        role: Role,
    ) -> Result<Vec<Event>, Refusal> {
        self.check_changeable(user, role)?;
        let name = check_name(name)?;
        let (page, query) = address(page, query)?;
        let same = |saved: &Saved| saved.name == name && saved.page == page && saved.query == query;
        Ok(match &self.saved {
            Some(saved) if same(saved) => vec![],
            _ => vec![Event::ViewSaved(ViewSaved { name, page, query })],
        })
    }

    /// A person removes it.
    ///
    /// # Errors
    /// `view_not_found`, and as [`Self::check_changeable`].
    pub fn remove(&self, code: &str, user: &str, role: Role) -> Result<Vec<Event>, Refusal> {
        self.check_changeable(user, role)?;
        if self.saved.is_none() {
            return Err(Refusal::not_found("view_not_found", format!("there is no saved view {code:?}"))
                .hint("GET /api/v_saved_views lists those you may see"));
        }
        Ok(vec![Event::ViewRemoved(ViewRemoved {})])
    }

    /// What one saved, that person and administrators change. Of private views others never get to know.
    ///
    /// # Errors
    /// `view_of_another`.
    fn check_changeable(&self, user: &str, role: Role) -> Result<(), Refusal> {
        match &self.saved {
            Some(saved) if saved.by != user && role < Role::Admin => Err(Refusal::forbidden(
                "view_of_another",
                "another member saved this view for the organisation",
            )
            .hint("save yours under another name, or ask that member or an administrator")),
            _ => Ok(()),
        }
    }
}

/// The code of a view: as given, else made of its name.
///
/// # Errors
/// `bad_code`, `bad_name`.
pub fn code(given: Option<&str>, name: &str) -> Result<String, Refusal> {
    let code = match given {
        Some(code) => code.to_owned(),
        None => code_from_name(&check_name(name)?),
    };
    check_code("view code", &code)?;
    Ok(code)
}

/// An address of the page: a path of ours and what stands after `?`. Never one of another site.
fn address(page: &str, query: &str) -> Result<(String, String), Refusal> {
    let query = query.strip_prefix('?').unwrap_or(query);
    let odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '#' | '\\');
    let ours = page.starts_with('/')
        && !page.starts_with("//")
        && page.len() <= MAX_PAGE
        && !page.contains('?')
        && !page.contains(odd);
    if !ours || query.len() > MAX_QUERY || query.contains(odd) {
        return Err(Refusal::invalid(
            "bad_address",
            format!("a view is a page's path and a query of at most {MAX_QUERY} bytes, as they stand in its address"),
        )
        .hint("for example p_page \"/reporting\", p_query \"sort=ttft_p99_ms\""));
    }
    Ok((page.to_owned(), query.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(user: &str) -> SavedView {
        let saved =
            Saved { by: user.into(), name: "Fast".into(), page: "/reporting".into(), query: "sort=a".into() };
        SavedView { saved: Some(saved) }
    }

    #[test]
    fn the_same_view_again_is_no_event_and_another_is_one() {
        let again = of("ann").save(" Fast ", "/reporting", "?sort=a", "ann", Role::Member);
        assert_eq!(again, Ok(vec![]));
        assert_eq!(
            of("ann").save("Fast", "/reporting", "sort=b", "ann", Role::Member).map(|e| e.len()),
            Ok(1)
        );
    }

    #[test]
    fn another_members_view_is_changed_by_administrators_alone() {
        let refused = of("ann").save("Mine", "/reporting", "", "bob", Role::Member).unwrap_err();
        assert_eq!((refused.code, refused.class.status()), ("view_of_another", 403));
        assert_eq!(of("ann").remove("fast", "bob", Role::Member).unwrap_err().code, "view_of_another");
        assert_eq!(of("ann").remove("fast", "bob", Role::Admin).map(|e| e.len()), Ok(1));
    }

    #[test]
    fn what_was_removed_is_not_there_and_free_again() {
        let gone = SavedView { saved: None };
        assert_eq!(gone.remove("fast", "ann", Role::Member).unwrap_err().code, "view_not_found");
        assert_eq!(gone.save("Fast", "/audit", "", "bob", Role::Member).map(|e| e.len()), Ok(1));
    }

    #[test]
    fn no_view_leads_to_another_site() {
        for (page, query) in [
            ("https://elsewhere", ""),
            ("//elsewhere", ""),
            ("/\\elsewhere", ""),
            ("reporting", ""),
            ("/reporting?x", ""),
            ("/reporting", "a#b"),
            ("/reporting", "a b"),
            ("", ""),
        ] {
            let refused = of("ann").save("Odd", page, query, "ann", Role::Member).unwrap_err();
            assert_eq!(refused.code, "bad_address", "{page} {query}");
        }
        let long = "a".repeat(MAX_QUERY + 1);
        assert_eq!(
            of("ann").save("Long", "/audit", &long, "ann", Role::Member).unwrap_err().code,
            "bad_address"
        );
    }

    #[test]
    fn a_code_is_made_of_the_name() {
        assert_eq!(code(None, "Within 500 ms"), Ok("within-500-ms".into()));
        assert_eq!(code(Some("a/b"), "x").unwrap_err().code, "bad_code");
        assert_eq!(code(None, "  ").unwrap_err().code, "bad_name");
    }
}
