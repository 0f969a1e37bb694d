//! The private NATS: one nats-server with JetStream, in operator mode, so that the control plane can issue every agent a
//! short-lived token for its own subjects without telling the server.

use std::{
    fmt, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use nkeys::KeyPair;

use super::{
    PlantConfig, PlantError,
    files::{closed_dir, log_file, private_dir, secret, tail},
    nats_credentials::{AccountKey, account_jwt, issue_server_user, operator_jwt},
    supervisor::{ChildSpec, Supervisor},
};

const OLDEST: (u32, u32) = (2, 10);
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Where NATS is, and how the control plane speaks to it.
#[derive(Clone)]
pub struct NatsEndpoints {
    /// `nats://host:port`.
    pub url: String,
    /// The text of the `.creds` file the control plane connects with; None: the NATS asks for none.
    pub credentials: Option<String>,
    /// What agents' tokens are signed with; None: agents report over HTTPS only.
    pub account: Option<AccountKey>,
}

/// Messages of one subscription that wait in this process's memory. What comes while so many wait is dropped: an agent
/// that is not answered sends again, and a relayed event is read from the log.
const SUBSCRIPTION_CAPACITY: usize = 1_024;

impl NatsEndpoints {
    /// The options to connect with: credentials and a client name, patience while the server restarts, and a bound on what
    /// waits in memory ([`SUBSCRIPTION_CAPACITY`]).
    ///
    /// # Errors
    /// The credentials are not the text of a `.creds` file.
    pub fn connect_options(&self) -> std::io::Result<async_nats::ConnectOptions> {
        let options = match &self.credentials {
            Some(text) => async_nats::ConnectOptions::with_credentials(text)?,
            None => async_nats::ConnectOptions::new(),
        };
        Ok(options
            .name("benchtrail-server")
            .subscription_capacity(SUBSCRIPTION_CAPACITY)
            .retry_on_initial_connect())
    }

    pub(super) fn external(config: &PlantConfig) -> Result<Self, PlantError> {
        Ok(Self {
            url: config.nats_url.clone().unwrap_or_default(),
            credentials: config.nats_credentials.clone(),
            account: config.nats_account_seed.as_deref().map(AccountKey::from_seed).transpose()?,
        })
    }
}

impl fmt::Debug for NatsEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsEndpoints")
            .field("url", &self.url)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

/// Starts it and returns where it is once it answers.
pub(super) async fn start(
    config: &PlantConfig,
    supervisor: &Supervisor,
) -> Result<NatsEndpoints, PlantError> {
    let program = find_program()?;
    let home = config.dir.join("nats");
    closed_dir(&home)?;
    let ports = home.join("ports");
    if ports.exists() {
        fs::remove_dir_all(&ports).map_err(PlantError::io("removing old port files", &ports))?;
    }
    private_dir(&ports)?;

    let keys = Keys::load(&config.dir.join("keys"))?;
    let log = log_file(&config.dir, "nats");
    let settings = Settings { home: &home, ports: &ports, host: &config.nats_host, keys: &keys };
    let remembered = home.join("port");
    let wanted = fs::read_to_string(&remembered).ok().and_then(|port| port.trim().parse::<u16>().ok());
    // Agents keep the address they know, unless someone else has taken the port meanwhile.
    let free = wanted.filter(|port| TcpListener::bind((config.nats_host.as_str(), *port)).is_ok());
    let file = settings.write(free)?;

    let spec = ChildSpec {
        name: "NATS",
        program: program.clone(),
        args: vec!["-c".into(), file.display().to_string()],
        working_dir: home.clone(),
        log: log.clone(),
        user: None,
        stop_signal: Signal::SIGTERM,
    };
    supervisor.run(spec).await.map_err(|source| PlantError::Spawn { program, source })?;

    let port = wait_for_port(&ports, &log).await?;
    if free.is_none() {
        // A restart must come back on the same port.
        settings.write(Some(port))?;
        fs::write(&remembered, port.to_string())
            .map_err(PlantError::io("remembering the port", &remembered))?;
    }
    // A server that listens on every address is reached here through the loopback.
    let host = if config.nats_host == "0.0.0.0" { "127.0.0.1" } else { &config.nats_host };
    let account = AccountKey::from_seed(&keys.account)?;
    Ok(NatsEndpoints {
        url: format!("nats://{host}:{port}"),
        credentials: Some(issue_server_user(&account)?),
        account: Some(account),
    })
}

/// The port from the file that nats-server writes once it listens.
async fn wait_for_port(ports: &Path, log: &Path) -> Result<u16, PlantError> {
    let began = Instant::now();
    loop {
        let found = fs::read_dir(ports)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "ports"))
            .find_map(|entry| port_in(&fs::read_to_string(entry.path()).ok()?));
        if let Some(port) = found {
            return Ok(port);
        }
        if began.elapsed() > READY_WITHIN {
            return Err(PlantError::NotReady {
                service: "NATS",
                waited: READY_WITHIN,
                reason: "it has not said on which port it listens".into(),
                log: log.to_owned(),
                tail: tail(log),
            });
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// `{"nats":["nats://127.0.0.1:4222"],…}` is 4222.
fn port_in(text: &str) -> Option<u16> {
    let file: serde_json::Value = serde_json::from_str(text).ok()?;
    file["nats"][0].as_str()?.rsplit(':').next()?.parse().ok()
}

fn find_program() -> Result<PathBuf, PlantError> {
    let cache = std::env::var_os("BENCHTRAIL_CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("XDG_CACHE_HOME")?).join("benchtrail")))
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/benchtrail")))
        .unwrap_or_default()
        .join("tools/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::var_os("BENCHTRAIL_NATS_SERVER")
        .map(PathBuf::from)
        .into_iter()
        .chain(std::env::split_paths(&path).map(|dir| dir.join("nats-server")))
        .chain([cache.join("nats-server")])
        .find(|program| version(program).is_some_and(|version| version >= OLDEST))
        .ok_or(PlantError::NoNats { minimum: "2.10", cache })
}

/// `nats-server: v2.15.1` is (2, 15).
fn version(program: &Path) -> Option<(u32, u32)> {
    if !program.is_file() {
        return None;
    }
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.rsplit('v').next()?.trim().split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Seeds, made once: whoever has them is the operator or the account.
struct Keys {
    operator: KeyPair,
    account: String,
    system: KeyPair,
}

impl Keys {
    fn load(dir: &Path) -> Result<Self, PlantError> {
        closed_dir(dir)?;
        let seed = |name: &str, make: fn() -> KeyPair| {
            secret(&dir.join(name), || make().seed().expect("a new key pair has its seed"))
        };
        let pair =
            |seed: &str| KeyPair::from_seed(seed).map_err(|error| PlantError::Credentials(error.into()));
        Ok(Self {
            operator: pair(&seed("nats-operator.nk", KeyPair::new_operator)?)?,
            account: seed("nats-account.nk", KeyPair::new_account)?,
            system: pair(&seed("nats-system.nk", KeyPair::new_account)?)?,
        })
    }
}

struct Settings<'a> {
    home: &'a Path,
    ports: &'a Path,
    host: &'a str,
    keys: &'a Keys,
}

impl Settings<'_> {
    /// Writes the configuration file; without a port the server chooses a free one.
    fn write(&self, port: Option<u16>) -> Result<PathBuf, PlantError> {
        let Keys { operator, account, system } = self.keys;
        let account = AccountKey::from_seed(account)?.public_key();
        let system = system.public_key();
        let text = format!(
            "# Written at every start.\n\
             server_name: benchtrail\n\
             listen: \"{host}:{port}\"\n\
             ports_file_dir: \"{ports}\"\n\
             max_payload: 4MB\n\
             # What it holds is a cache of the log: losing it loses nothing.\n\
             jetstream {{ store_dir: \"{store}\", max_memory_store: 64MB, max_file_store: 8GB }}\n\
             operator: {operator_jwt}\n\
             system_account: {system}\n\
             resolver: MEMORY\n\
             resolver_preload {{\n  {account}: {account_jwt}\n  {system}: {system_jwt}\n}}\n",
            host = self.host,
            port = port.map_or(-1, i32::from),
            ports = self.ports.display(),
            store = self.home.join("jetstream").display(),
            operator_jwt = operator_jwt(operator, &system)?,
            account_jwt = account_jwt(operator, "benchtrail", &account, true)?,
            system_jwt = account_jwt(operator, "system", &system, false)?,
        );
        let file = self.home.join("nats.conf");
        fs::write(&file, text).map_err(PlantError::io("writing the configuration of NATS", &file))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_port_file() {
        assert_eq!(port_in(r#"{"nats":["nats://127.0.0.1:40123"],"monitoring":[]}"#), Some(40123));
        assert_eq!(port_in("{"), None);
    }
}
