use std::{io, path::PathBuf, time::Duration};

/// Why the plant did not start. Each message says what is missing and the command that cures it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlantError {
    #[error(
        "no PostgreSQL {minimum} or newer was found (looked in BENCHTRAIL_PG_BIN, /usr/lib/postgresql/*/bin and PATH). \
         To install it: scripts/setup run   (or: apt-get install -y --no-install-recommends postgresql). \
         To use a database of your own instead: export DATABASE_URL=postgres://user@host/database"
    )]
    NoPostgres { minimum: u32 },

    #[error(
        "the database in {data} was made by PostgreSQL {made_by}, and only that version can open it; found here: {found}. \
         To install it beside the others: apt-get install -y --no-install-recommends postgresql-{made_by} \
         (apt.postgresql.org has every version). If its programs are elsewhere: export BENCHTRAIL_PG_BIN=/folder/of/postgres. \
         To move the database to a newer version instead: pg_upgrade, from a copy of that folder",
        data = .data.display(),
        found = if .found.is_empty() { "none".to_owned() } else { .found.join(", ") }
    )]
    OtherPostgres { data: PathBuf, made_by: u32, found: Vec<String> },

    #[error(
        "no nats-server {minimum} or newer was found (looked in BENCHTRAIL_NATS_SERVER, PATH and {cache}). \
         To install it: scripts/setup run. To use a NATS of your own instead: export NATS_URL=nats://host:4222",
        cache = .cache.display()
    )]
    NoNats { minimum: &'static str, cache: PathBuf },

    #[error(
        "PostgreSQL refuses to run as root, and there is no user `{user}` to run it as. \
         To cure it: useradd --system {user}   (or run as an ordinary user, or name another with BENCHTRAIL_PG_OS_USER)"
    )]
    NoOsUser { user: String },

    #[error(
        "another Benchtrail already runs on {dir} (process {pid}). \
         Stop it first: kill {pid}   (or give this one a folder of its own: --var OTHER_FOLDER)",
        dir = .dir.display()
    )]
    InUse { dir: PathBuf, pid: String },

    #[error("{doing}: {source}. Check that this user may write there: ls -ld {path}", path = .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },

    #[error("`{program}` could not be started: {source}", program = .program.display())]
    Spawn { program: PathBuf, source: io::Error },

    #[error("the private database could not be made; initdb says: {0}")]
    Initdb(String),

    #[error(
        "{service} was not ready after {waited:?}: {reason}. The end of its log ({log}):\n{tail}",
        log = .log.display()
    )]
    NotReady { service: &'static str, waited: Duration, reason: String, log: PathBuf, tail: String },

    #[error("the private database could not be prepared: {0}")]
    Database(#[from] sqlx::Error),

    #[error("the keys of the private NATS are not usable: {0}")]
    Credentials(#[from] super::nats_credentials::CredentialError),
}

impl PlantError {
    /// For `map_err`: an I/O error, with what was being done and where.
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}
