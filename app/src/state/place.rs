//! Which page an address names: the path alone, natural keys included.

/// The parts of a natural key in an address: organisation, project, workload, run, scenario; empty where there is none.
pub type Key = [String; 5];

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `/`
    Dashboard,
    /// `/sign-in`
    SignIn,
    /// `/projects`
    Projects,
    /// `/projects/new`
    NewProject,
    /// `/projects/<org>/<project>`, also with a workload.
    Project(Key),
    /// `/projects/<org>/<project>/<workload>/<run>`
    Run(Key),
    /// `/projects/<org>/<project>/<workload>/<run>/<scenario>`
    Job(Key),
    /// `/reporting`
    Reporting,
    /// `/monitoring`
    Monitoring,
    /// `/leaderboard`
    Leaderboard,
    /// `/hardware`
    Hardware,
    /// `/catalogue`
    Catalogue,
    /// `/audit`
    Audit,
    /// `/profile`
    Profile,
    /// `/projects/import`
    Import,
    /// `/organization`
    Organization,
    /// `/invitation`
    Invitation,
    /// No page has this address.
    Unknown,
}

impl Place {
    /// Reads a path.
    pub fn read(path: &str) -> Self {
        let parts: Vec<String> = path.split('/').filter(|p| !p.is_empty()).map(decoded).collect();
        let words: Vec<&str> = parts.iter().map(String::as_str).collect();
        let key = |parts: &[&str]| {
            let mut key = Key::default();
            for (to, from) in key.iter_mut().zip(parts) {
                *to = (*from).to_owned();
            }
            key
        };
        match words.as_slice() {
            [] => Self::Dashboard,
            ["sign-in"] => Self::SignIn,
            ["projects"] => Self::Projects,
            ["projects", "new"] => Self::NewProject,
            ["projects", "import"] => Self::Import,
            ["projects", rest @ ..] => match rest.len() {
                2 | 3 => Self::Project(key(rest)),
                4 => Self::Run(key(rest)),
                5 => Self::Job(key(rest)),
                _ => Self::Unknown,
            },
            ["reporting"] => Self::Reporting,
            ["monitoring"] => Self::Monitoring,
            ["leaderboard"] => Self::Leaderboard,
            ["hardware"] => Self::Hardware,
            ["catalogue"] => Self::Catalogue,
            ["audit"] => Self::Audit,
            ["profile"] => Self::Profile,
            ["organization"] => Self::Organization,
            ["invitation"] => Self::Invitation,
            _ => Self::Unknown,
        }
    }
}

/// A part of a path with its percent escapes read; what is no escape stays as it is.
fn decoded(part: &str) -> String {
    let bytes = part.as_bytes();
    let mut read = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(byte) => {
                read.push(byte);
                at += 3;
            }
            None => {
                read.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(parts: &[&str]) -> Key {
        let mut key = Key::default();
        for (to, from) in key.iter_mut().zip(parts) {
            *to = (*from).to_owned();
        }
        key
    }

    #[test]
    fn an_address_is_a_natural_key() {
        assert_eq!(Place::read("/"), Place::Dashboard);
        assert_eq!(Place::read("/projects/new"), Place::NewProject);
        assert_eq!(Place::read("/projects/acme/p"), Place::Project(key(&["acme", "p"])));
        assert_eq!(Place::read("/projects/acme/p/w"), Place::Project(key(&["acme", "p", "w"])));
        assert_eq!(Place::read("/projects/acme/p/w/3/"), Place::Run(key(&["acme", "p", "w", "3"])));
        assert_eq!(
            Place::read("/projects/acme/p/w/3/c8-isl512-osl256"),
            Place::Job(key(&["acme", "p", "w", "3", "c8-isl512-osl256"]))
        );
        for unknown in ["/projects/acme", "/projects/a/b/c/d/e/f", "/nowhere", "/reporting/x"] {
            assert_eq!(Place::read(unknown), Place::Unknown, "{unknown}");
        }
    }

    #[test]
    fn escapes_are_read() {
        assert_eq!(Place::read("/projects/acme/a%20b%2Fc"), Place::Project(key(&["acme", "a b/c"])));
        assert_eq!(Place::read("/projects/acme/100%"), Place::Project(key(&["acme", "100%"])));
    }

    proptest! {
        #[test]
        fn no_path_panics(path in ".{0,80}") {
            let _ = Place::read(&path);
        }
    }
}
