//! The private PostgreSQL: found, initialised once, and reached over a Unix socket only.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::Signal,
    unistd::{Uid, User, chown},
};
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{
    PlantConfig, PlantError,
    files::{closed_dir, log_file, private_dir, tail},
    supervisor::{ChildSpec, Supervisor},
};

const OLDEST: u32 = 15;
/// Longer than any recovery a private database should need; shorter than a user's patience is not possible.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// What the kernel allows for a socket's path, less `/.s.PGSQL.5432` and the closing zero.
const LONGEST_SOCKET_DIR: usize = 107 - "/.s.PGSQL.5432".len();
const OWNER: &str = "benchtrail";
const DATABASE: &str = "benchtrail";

/// Starts it and returns the owner's URL once it answers.
pub(super) async fn start(config: &PlantConfig, supervisor: &Supervisor) -> Result<String, PlantError> {
    let user = database_user()?;
    let home = home(&config.dir, user.as_ref())?;
    let data = home.join("data");
    let programs = programs_for(&data, &places())?;
    let sockets = socket_dir(&home, user.as_ref())?;
    if !data.join("PG_VERSION").exists() {
        initdb(&programs, &data, user.as_ref(), config.durable)?;
    }

    let log = log_file(&config.dir, "postgres");
    let spec = ChildSpec {
        name: "PostgreSQL",
        program: programs.join("postgres"),
        args: arguments(&data, &sockets, config.durable),
        working_dir: data,
        log: log.clone(),
        user: user.map(|user| (user.uid, user.gid)),
        // "Fast shutdown": ends the sessions, writes a checkpoint.
        stop_signal: Signal::SIGINT,
    };
    let program = spec.program.clone();
    supervisor.run(spec).await.map_err(|source| PlantError::Spawn { program, source })?;

    let encoded = sockets.display().to_string().replace('%', "%25").replace('/', "%2F").replace(' ', "%20");
    let url = |database: &str| format!("postgres://{OWNER}@{encoded}:5432/{database}");
    let mut connection = connect(&url("postgres"), &log).await?;
    let exists: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
        .bind(DATABASE)
        .fetch_one(&mut connection)
        .await?;
    if !exists {
        sqlx::raw_sql(AssertSqlSafe(format!("create database {DATABASE}"))).execute(&mut connection).await?;
    }
    connection.close().await?;
    Ok(url(DATABASE))
}

async fn connect(url: &str, log: &Path) -> Result<PgConnection, PlantError> {
    let began = Instant::now();
    loop {
        match PgConnection::connect(url).await {
            Ok(connection) => return Ok(connection),
            Err(error) if began.elapsed() > READY_WITHIN => {
                return Err(PlantError::NotReady {
                    service: "PostgreSQL",
                    waited: READY_WITHIN,
                    reason: error.to_string(),
                    log: log.to_owned(),
                    tail: tail(log),
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(40)).await,
        }
    }
}

/// Where PostgreSQL's programs may be, in the order in which they are taken: the folder that was named, what the
/// distribution packaged (newest first), what is on the path.
fn places() -> Vec<PathBuf> {
    let named = std::env::var_os("BENCHTRAIL_PG_BIN").map(PathBuf::from);
    let mut packaged: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    packaged.sort_by_key(|bin| std::cmp::Reverse(version(bin)));
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&on_path)
        .filter_map(|dir| fs::canonicalize(dir.join("postgres")).ok()?.parent().map(Path::to_owned));
    named.into_iter().chain(packaged).chain(on_path).collect()
}

/// The folder of the programs to run the database in `data` with: the first that is new enough. A database that exists
/// can only be run by the major version that made it, however new the others are.
fn programs_for(data: &Path, places: &[PathBuf]) -> Result<PathBuf, PlantError> {
    let found = places.iter().filter(|bin| bin.join("initdb").is_file());
    let found: Vec<(u32, &PathBuf)> = found.filter_map(|bin| Some((version(bin)?, bin))).collect();
    let made_by = made_by(data)?;
    let fits = |major: u32| made_by.map_or(major >= OLDEST, |made_by| major == made_by);
    match (found.iter().find(|(major, _)| fits(*major)), made_by) {
        (Some((_, bin)), _) => Ok((*bin).clone()),
        (None, None) => Err(PlantError::NoPostgres { minimum: OLDEST }),
        (None, Some(made_by)) => Err(PlantError::OtherPostgres {
            data: data.to_owned(),
            made_by,
            found: found.iter().map(|(major, bin)| format!("{major} in {}", bin.display())).collect(),
        }),
    }
}

/// The major version that made the database in `data`, if there is one.
fn made_by(data: &Path) -> Result<Option<u32>, PlantError> {
    let file = data.join("PG_VERSION");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(PlantError::io("reading which PostgreSQL made the database", file)(error)),
    };
    let damaged = |_| std::io::Error::other(format!("it says {text:?}, which is no version of PostgreSQL"));
    let major = text.trim().parse().map_err(damaged);
    major.map(Some).map_err(PlantError::io("reading which PostgreSQL made the database", file))
}

/// The major version of the PostgreSQL in `bin`: `postgres (PostgreSQL) 15.18 (Debian …)` is 15.
fn version(bin: &Path) -> Option<u32> {
    let output = Command::new(bin.join("postgres")).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let digits: String =
        text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The user to run as when we are root, whom PostgreSQL refuses.
fn database_user() -> Result<Option<User>, PlantError> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    let name = std::env::var("BENCHTRAIL_PG_OS_USER").unwrap_or_else(|_| "postgres".into());
    match User::from_name(&name) {
        Ok(Some(user)) => Ok(Some(user)),
        _ => Err(PlantError::NoOsUser { user: name }),
    }
}

/// Where the database lives: `DIR/postgres`; or, when its user cannot get there (a clone under `/root`), a folder under
/// `/var/lib/benchtrail` that `DIR/postgres` points to.
fn home(dir: &Path, user: Option<&User>) -> Result<PathBuf, PlantError> {
    let home = dir.join("postgres");
    let Some(user) = user else {
        closed_dir(&home)?;
        return Ok(home);
    };
    if !home.exists() {
        if can_enter(user, dir) {
            private_dir(&home)?;
        } else {
            let elsewhere = Path::new("/var/lib/benchtrail").join(uuid::Uuid::now_v7().simple().to_string());
            private_dir(&elsewhere)?;
            let _ = fs::remove_file(&home);
            symlink(&elsewhere, &home).map_err(PlantError::io("linking to the database", &home))?;
            tracing::info!(
                place = %elsewhere.display(), user = user.name,
                "the database is kept here, since its user cannot enter the plant's folder"
            );
        }
    }
    let home = home.canonicalize().map_err(PlantError::io("finding the database", &home))?;
    give(&home, user)?;
    Ok(home)
}

fn can_enter(user: &User, dir: &Path) -> bool {
    Command::new("/usr/bin/test")
        .arg("-x")
        .arg(dir)
        .current_dir("/")
        .uid(user.uid.as_raw())
        .gid(user.gid.as_raw())
        .status()
        .is_ok_and(|status| status.success())
}

fn give(dir: &Path, user: &User) -> Result<(), PlantError> {
    closed_dir(dir)?;
    chown(dir, Some(user.uid), Some(user.gid))
        .map_err(|error| PlantError::io("giving a folder to the database's user", dir)(error.into()))
}

/// The folder of the socket. It is open to its owner alone, which is what keeps everyone else out of the database.
fn socket_dir(home: &Path, user: Option<&User>) -> Result<PathBuf, PlantError> {
    let mut dir = home.join("run");
    if dir.as_os_str().len() > LONGEST_SOCKET_DIR {
        let name = hex::encode(&Sha256::digest(home.as_os_str().as_encoded_bytes())[..6]);
        dir = PathBuf::from(format!("/tmp/benchtrail-{name}"));
    }
    if dir.is_symlink() {
        let forged = std::io::Error::other("it is a link that someone else may have put there");
        return Err(PlantError::io("making the socket's folder", dir)(forged));
    }
    match user {
        Some(user) => {
            private_dir(&dir)?;
            give(&dir, user)?;
        }
        None => closed_dir(&dir)?,
    }
    let owner = fs::metadata(&dir).map_err(PlantError::io("reading a folder", &dir))?.uid();
    let expected = user.map_or_else(Uid::effective, |user| user.uid);
    if owner != expected.as_raw() {
        let taken = std::io::Error::other(format!("it belongs to user {owner}"));
        return Err(PlantError::io("making the socket's folder", dir)(taken));
    }
    Ok(dir)
}

/// Makes the database beside its place and moves it there when it is whole, so that an interrupted first start leaves
/// nothing half done.
fn initdb(programs: &Path, data: &Path, user: Option<&User>, durable: bool) -> Result<(), PlantError> {
    let unfinished = data.with_extension("new");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)
            .map_err(PlantError::io("removing an unfinished database", &unfinished))?;
    }
    tracing::info!(data = %data.display(), "making a new private database");
    let program = programs.join("initdb");
    let mut command = Command::new(&program);
    command
        .arg("-D")
        .arg(&unfinished)
        .args(["-U", OWNER, "-A", "trust", "--no-locale", "-E", "UTF8", "--no-instructions"])
        .args((!durable).then_some("--no-sync"))
        .current_dir(data.parent().unwrap_or(Path::new("/")))
        .env("LC_ALL", "C");
    if let Some(user) = user {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    let output = command.output().map_err(|source| PlantError::Spawn { program, source })?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        return Err(PlantError::Initdb(String::from_utf8_lossy(&text).trim().to_owned()));
    }
    fs::rename(&unfinished, data).map_err(PlantError::io("putting the new database in place", data))
}

fn arguments(data: &Path, sockets: &Path, durable: bool) -> Vec<String> {
    let mut settings = vec![
        // No TCP: nothing to clash with, nothing to reach from outside.
        "listen_addresses=".to_owned(),
        "port=5432".to_owned(),
        format!("unix_socket_directories={}", quoted(sockets)),
        "unix_socket_permissions=0700".to_owned(),
        "max_connections=200".to_owned(),
        "shared_buffers=256MB".to_owned(),
        // Rare, large checkpoints: the log is appended to all the time.
        "max_wal_size=4GB".to_owned(),
        "min_wal_size=256MB".to_owned(),
        "checkpoint_timeout=15min".to_owned(),
        "random_page_cost=1.1".to_owned(),
        // Compiling a query costs more than running ours.
        "jit=off".to_owned(),
        "timezone=UTC".to_owned(),
        "log_timezone=UTC".to_owned(),
        "logging_collector=off".to_owned(),
    ];
    if !durable {
        settings.extend(["fsync=off", "synchronous_commit=off", "full_page_writes=off"].map(str::to_owned));
    }
    let mut arguments = vec!["-D".to_owned(), data.display().to_string()];
    for setting in settings {
        arguments.extend(["-c".to_owned(), setting]);
    }
    arguments
}

/// A folder for `unix_socket_directories`, which is a list: quoted, so that a comma in the name is not a separator.
fn quoted(dir: &Path) -> String {
    format!("\"{}\"", dir.display().to_string().replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder of programs that say they are PostgreSQL `major`.
    fn programs(root: &Path, major: u32) -> PathBuf {
        let bin = root.join(format!("{major}/bin"));
        fs::create_dir_all(&bin).unwrap();
        for name in ["postgres", "initdb"] {
            let program = bin.join(name);
            fs::write(&program, format!("#!/bin/sh\necho '{name} (PostgreSQL) {major}.3 (Debian)'\n"))
                .unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        bin
    }

    #[test]
    fn a_database_is_run_by_the_version_that_made_it_and_a_new_one_by_the_first_found() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        let places = [17, 15, 14].map(|major| programs(root.path(), major));
        assert_eq!(programs_for(&data, &places).unwrap(), places[0]);
        assert!(matches!(programs_for(&data, &places[2..]), Err(PlantError::NoPostgres { minimum: OLDEST })));

        fs::create_dir(&data).unwrap();
        fs::write(data.join("PG_VERSION"), "15\n").unwrap();
        assert_eq!(programs_for(&data, &places).unwrap(), places[1]);

        fs::write(data.join("PG_VERSION"), "16\n").unwrap();
        let refusal = programs_for(&data, &places).unwrap_err().to_string();
        for part in ["made by PostgreSQL 16", "17 in ", "15 in ", "BENCHTRAIL_PG_BIN", "pg_upgrade"] {
            assert!(refusal.contains(part), "{part} is missing in: {refusal}");
        }

        fs::write(data.join("PG_VERSION"), "").unwrap();
        assert!(programs_for(&data, &places).unwrap_err().to_string().contains("no version of PostgreSQL"));
    }
}
