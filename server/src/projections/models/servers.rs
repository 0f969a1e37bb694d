//! Servers: `v_servers`. Last-seen times come from the presence table in the view; they are not events.

use events::envelope::Recorded;
use events::keys::ServerKey;
use events::server_host::{HostCapabilities, ServerState};
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::projections::table::{Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

/// A server, as `v_servers` shows it to its organisation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerRow {
    org: String,
    config_code: String,
    hostname: String,
    server: String,
    state: String,
    agent: Option<String>,
    agent_version: Option<String>,
    gpus: Value,
    gpu_name: Option<String>,
    gpu_count: i64,
    gpu_memory_bytes: Option<u64>,
    cpu_model: Option<String>,
    cpus: Option<u32>,
    cpu_sockets: Option<u32>,
    ram_total_bytes: Option<u64>,
    driver_version: Option<String>,
    os: Option<String>,
    kernel: Option<String>,
    executables: Vec<String>,
    models: Vec<String>,
    clock_offset_ms: Option<f64>,
    cost_per_hour_usd: Option<f64>,
    comment: Option<String>,
    ip_address: Option<String>,
    removed: bool,
    maintenance: bool,
    maintenance_reason: Option<String>,
    created_at: Timestamp,
    position: i64,
    visibility: String,
    owner: String,
}

/// The accelerators of a host in short: name of the first, how many, memory of the smallest.
pub(super) fn gpu_summary(host: &HostCapabilities) -> (Option<String>, i64, Option<u64>) {
    let name = host.gpus.first().map(|g| g.name.clone());
    (name, host.gpus.len() as i64, host.gpus.iter().filter_map(|g| g.memory_total_bytes).min())
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl ServerRow {
    fn host(&mut self, host: &HostCapabilities) {
        (self.gpu_name, self.gpu_count, self.gpu_memory_bytes) = gpu_summary(host);
        self.agent_version = some(&host.agent_version);
        self.gpus = serde_json::to_value(&host.gpus).unwrap_or_default();
        self.cpu_model = some(&host.cpu_model);
        self.cpus = (host.cpus > 0).then_some(host.cpus);
        self.cpu_sockets = (host.cpu_sockets > 0).then_some(host.cpu_sockets);
        self.ram_total_bytes = (host.ram_total_bytes > 0).then_some(host.ram_total_bytes);
        self.driver_version.clone_from(&host.driver_version);
        self.os = some(&host.os);
        self.kernel = some(&host.kernel);
        self.executables.clone_from(&host.executables);
        self.models.clone_from(&host.models);
        self.clock_offset_ms = host.clock_offset_ms;
    }
}

impl Row for ServerRow {
    type Key = String;
    const TABLE: &'static str = "servers";
    const KEY: &'static [&'static str] = &["server"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Float, Int, Json, Text, Time};
        vec![
            Column::shown("org", Text),
            Column::shown("config_code", Text),
            Column::shown("hostname", Text),
            Column::shown("server", Text),
            Column::shown("state", Text),
            Column::shown("agent", Text),
            Column::shown("agent_version", Text),
            Column::shown("gpus", Json),
            Column::shown("gpu_name", Text),
            Column::shown("gpu_count", Int),
            Column::shown("gpu_memory_bytes", Int),
            Column::shown("cpu_model", Text),
            Column::shown("cpus", Int),
            Column::shown("cpu_sockets", Int),
            Column::shown("ram_total_bytes", Int),
            Column::shown("driver_version", Text),
            Column::shown("os", Text),
            Column::shown("kernel", Text),
            Column::shown("executables", Json),
            Column::shown("models", Json),
            Column::shown("clock_offset_ms", Float),
            Column::shown("cost_per_hour_usd", Float),
            Column::shown("comment", Text),
            Column::shown("ip_address", Text),
            Column::shown("removed", Bool),
            Column::shown("maintenance", Bool),
            Column::shown("maintenance_reason", Text),
            Column::shown("created_at", Time),
            Column::shown("position", Int),
            Column::hidden("visibility", Text),
            Column::hidden("owner", Text),
        ]
    }
    fn key(&self) -> Self::Key {
        self.server.clone()
    }
}

/// Folds `server.*`.
#[derive(Debug, Default)]
pub struct Servers {
    servers: Table<ServerRow>,
}

impl Projection for Servers {
    fn name(&self) -> &'static str {
        "servers"
    }
    fn version(&self) -> i32 {
        4
    }
    fn interests(&self) -> &'static [&'static str] {
        &[
            "server.registered",
            "server.enrolled",
            "server.capabilities_reported",
            "server.state_changed",
            "server.removed",
            "server.maintenance_started",
            "server.maintenance_ended",
        ]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.servers]
    }
    fn wants(&mut self, recorded: &Recorded, _: &Event) {
        self.servers.want(recorded.stream.to_string());
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let server = recorded.stream.to_string();
        // One that was removed begins anew.
        if let Event::ServerRegistered(registered) = event
            && self.servers.get(&server).is_none_or(|row| row.removed)
        {
            let key = ServerKey::from_stream(&recorded.stream)?;
            self.servers.put(
                ServerRow {
                    org: key.org,
                    config_code: key.config,
                    hostname: key.hostname,
                    server,
                    state: ServerState::Registered.as_str().to_owned(),
                    agent: None,
                    agent_version: None,
                    gpus: Value::Array(Vec::new()),
                    gpu_name: None,
                    gpu_count: 0,
                    gpu_memory_bytes: None,
                    cpu_model: None,
                    cpus: None,
                    cpu_sockets: None,
                    ram_total_bytes: None,
                    driver_version: None,
                    os: None,
                    kernel: None,
                    executables: Vec::new(),
                    models: Vec::new(),
                    clock_offset_ms: None,
                    cost_per_hour_usd: registered.cost_per_hour_usd,
                    comment: registered.comment.clone(),
                    ip_address: registered.ip_address.clone(),
                    removed: false,
                    maintenance: false,
                    maintenance_reason: None,
                    created_at: recorded.recorded_at,
                    position: recorded.position,
                    visibility: "organization".to_owned(),
                    owner: String::new(),
                },
                recorded.position,
            );
            return Ok(());
        }
        let row = self
            .servers
            .get_mut(&server, recorded.position)
            .ok_or_else(|| FoldError(format!("{server} is not there")))?;
        match event {
            Event::ServerEnrolled(enrolled) => {
                row.agent = Some(enrolled.agent.clone());
                row.agent_version = Some(enrolled.agent_version.clone());
            }
            Event::ServerCapabilitiesReported(reported) => row.host(&reported.capabilities),
            Event::ServerStateChanged(changed) => row.state = changed.state.as_str().to_owned(),
            Event::ServerRegistered(registered) => {
                row.comment.clone_from(&registered.comment);
                row.cost_per_hour_usd = registered.cost_per_hour_usd;
                row.ip_address.clone_from(&registered.ip_address);
            }
            Event::ServerRemoved(_) => row.removed = true,
            Event::ServerMaintenanceStarted(started) => {
                row.maintenance = true;
                row.maintenance_reason = Some(started.reason.clone());
            }
            Event::ServerMaintenanceEnded(_) => {
                row.maintenance = false;
                row.maintenance_reason = None;
            }
            _ => {}
        }
        row.position = recorded.position;
        Ok(())
    }
}
