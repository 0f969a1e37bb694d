//! The catalogue: `v_models`, `v_frameworks`, `v_accelerator_types`, `v_server_configs`, `v_tools`, the three layers of
//! engine arguments, and what was approved of them. Everyone may read the platform's entries, an organisation its own.

mod rows;

use events::envelope::Recorded;
use events::keys::PLATFORM_ORG;
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::rows::{accelerator_row, framework_row, model_row, set_row};
use crate::projections::table::{Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

/// What every catalogue row has besides its facts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    custom: bool,
    registered_at: Timestamp,
    position: i64,
    org: String,
    visibility: String,
    owner: String,
}

impl Entry {
    fn of(recorded: &Recorded) -> Self {
        Self {
            custom: recorded.stream.org() != PLATFORM_ORG,
            registered_at: recorded.recorded_at,
            position: recorded.position,
            org: recorded.stream.org().to_owned(),
            // Platform-wide facts are everyone's; an organisation's own are its own.
            visibility: if recorded.stream.org() == PLATFORM_ORG { "public" } else { "organization" }
                .to_owned(),
            owner: String::new(),
        }
    }

    fn columns() -> [Column; 6] {
        [
            Column::shown("custom", Kind::Bool),
            Column::shown("registered_at", Kind::Time),
            Column::shown("position", Kind::Int),
            Column::hidden("org", Kind::Text),
            Column::hidden("visibility", Kind::Text),
            Column::hidden("owner", Kind::Text),
        ]
    }
}

macro_rules! catalogue_row {
    ($(#[$doc:meta])* $row:ident, $table:literal, $key:ty, [$($key_column:ident),*],
     { $($field:ident: $type:ty = $kind:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Serialize, Deserialize)]
        pub struct $row {
            $($field: $type,)*
            #[serde(flatten)]
            entry: Entry,
        }

        impl Row for $row {
            type Key = $key;
            const TABLE: &'static str = $table;
            const KEY: &'static [&'static str] = &["org", $(stringify!($key_column)),*];

            fn columns() -> Vec<Column> {
                let mut columns = vec![$(Column::shown(stringify!($field), Kind::$kind)),*];
                columns.extend(Entry::columns());
                columns
            }
            fn key(&self) -> Self::Key {
                (self.entry.org.clone(), $(self.$key_column.clone()),*)
            }
        }
    };
}

catalogue_row!(
    /// A model.
    ModelRow, "models", (String, String), [model_code], {
    model_code: String = Text,
    display_name: String = Text,
    modality: String = Text,
    family: String = Text,
    params_b_total: Option<f64> = Float,
    params_b_active: Option<f64> = Float,
    max_context: Option<u32> = Int,
    layers: Option<u32> = Int,
    hidden_size: Option<u32> = Int,
    attention_heads: Option<u32> = Int,
    kv_heads: Option<u32> = Int,
    head_dim: Option<u32> = Int,
    attention_kind: Option<String> = Text,
    kv_cache_layers: Option<u32> = Int,
    kv_bytes_per_token_16bit: Option<f64> = Float,
    sliding_window: Option<u32> = Int,
    experts: Option<u32> = Int,
    experts_per_token: Option<u32> = Int,
    default_precision: Option<String> = Text,
    precisions: Vec<String> = Json,
    gated: bool = Bool,
    license: Option<String> = Text,
    field_notes: Value = Json,
    unverified: Vec<String> = Json,
    sources: Vec<String> = Json,
});

catalogue_row!(
    /// An accelerator type.
    AcceleratorRow, "accelerator_types", (String, String), [accelerator_code], {
    accelerator_code: String = Text,
    display_name: String = Text,
    vendor: String = Text,
    kind: String = Text,
    memory_gb: f64 = Float,
    bandwidth_gb_s: Option<f64> = Float,
    tdp_w: Option<f64> = Float,
    precisions: Vec<String> = Json,
    interconnect: Option<String> = Text,
    launch_year: Option<u32> = Int,
    compute_capability: Option<String> = Text,
    price_per_hour_usd: Option<f64> = Float,
    price_source: Option<String> = Text,
    price_date: Option<String> = Text,
    other_prices: Value = Json,
    notes: Option<String> = Text,
    unverified: Vec<String> = Json,
    sources: Vec<String> = Json,
});

catalogue_row!(
    /// A set of engine arguments.
    EngineArgsSetRow, "engine_args_sets", (String, String), [set_code], {
    set_code: String = Text,
    display_name: Option<String> = Text,
    framework_code: String = Text,
    framework_version: String = Text,
    min_framework_version: Option<String> = Text,
    tool_scope: Option<String> = Text,
    model_code: Option<String> = Text,
    model_link: Option<String> = Text,
    model_id: Option<String> = Text,
    model_family: Option<String> = Text,
    variant: Option<String> = Text,
    precision: Option<String> = Text,
    accelerator_codes: Vec<String> = Json,
    gpu_count: Option<u32> = Int,
    nodes: Option<u32> = Int,
    vram_minimum_gb: Option<f64> = Float,
    engine_args: Value = Json,
    env: Value = Json,
    companions: Value = Json,
    unsupported_flags: Vec<String> = Json,
    verified: bool = Bool,
    curated: bool = Bool,
    named_in_seeds: bool = Bool,
    archived: bool = Bool,
    version: i64 = Int,
    hardware_status: Option<String> = Text,
    cautions: Vec<String> = Json,
    notes: Option<String> = Text,
    derivation: Option<String> = Text,
    reference: Option<String> = Text,
    source_url: Option<String> = Text,
    source: Option<String> = Text,
    cloned_from: Option<String> = Text,
});

catalogue_row!(
    /// An argument that loads code or reads paths, as an administrator judged it.
    ApprovalRow, "approvals", (String, String, String, String), [program_code, model_code, key], {
    program_code: String = Text,
    model_code: String = Text,
    key: String = Text,
    value: Value = Json,
    approved: bool = Bool,
    reason: Option<String> = Text,
    decided_by: String = Text,
});

catalogue_row!(
    /// A framework version.
    FrameworkRow, "frameworks", (String, String, String), [framework_code, framework_version], {
    framework_code: String = Text,
    framework_version: String = Text,
    display_name: String = Text,
    serve_argv: Vec<String> = Json,
    flag_style: String = Text,
    readiness_path: String = Text,
    readiness_timeout_s: u32 = Int,
    serve_env: Value = Json,
    fetch_argv: Vec<String> = Json,
    companions: Value = Json,
    sidecar: bool = Bool,
    readiness_port_arg: Option<String> = Text,
    engine_args: Value = Json,
    container_image: Option<String> = Text,
    container_images: Value = Json,
    support_level: Option<String> = Text,
    vendors: Vec<String> = Json,
    modalities: Vec<String> = Json,
    min_compute_capability: Option<String> = Text,
    metrics_path: Option<String> = Text,
    default_port: Option<u32> = Int,
    sources: Vec<String> = Json,
});

catalogue_row!(
    /// A server configuration.
    ConfigRow, "server_configs", (String, String), [config_code], {
    config_code: String = Text,
    display_name: String = Text,
    accelerator_code: Option<String> = Text,
    gpu_count: u32 = Int,
    gpu_memory_gb: Option<f64> = Float,
    sources: Vec<String> = Json,
});

catalogue_row!(
    /// A benchmark tool.
    ToolRow, "tools", (String, String), [tool_code], {
    tool_code: String = Text,
    display_name: String = Text,
    modality: String = Text,
    argv: Vec<String> = Json,
    args: Value = Json,
    endpoints_argv: Vec<String> = Json,
    defaults: Value = Json,
    frameworks: Vec<String> = Json,
    families: Vec<String> = Json,
    install: Option<String> = Text,
});

/// Folds the catalogue's events.
#[derive(Debug, Default)]
pub struct Catalogue {
    models: Table<ModelRow>,
    accelerators: Table<AcceleratorRow>,
    frameworks: Table<FrameworkRow>,
    sets: Table<EngineArgsSetRow>,
    configs: Table<ConfigRow>,
    tools: Table<ToolRow>,
    approvals: Table<ApprovalRow>,
}

fn json<T: Serialize>(value: &T) -> Result<Value, FoldError> {
    serde_json::to_value(value).map_err(|e| FoldError(e.to_string()))
}

/// The parts of a stream's key after the organisation.
fn parts<const N: usize>(recorded: &Recorded) -> Result<[String; N], FoldError> {
    let parts: Vec<String> = recorded.stream.parts().into_iter().skip(1).collect();
    parts.try_into().map_err(|_| FoldError(format!("{} does not have {N} parts", recorded.stream)))
}

impl Projection for Catalogue {
    fn name(&self) -> &'static str {
        "catalogue"
    }
    fn version(&self) -> i32 {
        4
    }
    fn interests(&self) -> &'static [&'static str] {
        &[
            "model.registered",
            "accelerator.registered",
            "framework.registered",
            "engine_args_set.registered",
            "engine_args_set.archived",
            "config.registered",
            "tool.registered",
            "approval.granted",
            "approval.revoked",
        ]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![
            &mut self.models,
            &mut self.accelerators,
            &mut self.frameworks,
            &mut self.sets,
            &mut self.configs,
            &mut self.tools,
            &mut self.approvals,
        ]
    }
    fn wants(&mut self, recorded: &Recorded, event: &Event) {
        // Most events say everything about their subject. These change a part of what is there.
        let org = recorded.stream.org().to_owned();
        match event {
            Event::EngineArgsSetArchived(_) => {
                if let Ok([code]) = parts::<1>(recorded) {
                    self.sets.want((org, code));
                }
            }
            Event::ApprovalRevoked(revoked) => {
                if let Ok([program, model]) = parts::<2>(recorded) {
                    for key in &revoked.keys {
                        self.approvals.want((org.clone(), program.clone(), model.clone(), key.clone()));
                    }
                }
            }
            _ => {}
        }
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let (entry, position) = (Entry::of(recorded), recorded.position);
        match event {
            Event::ModelRegistered(model) => self.models.put(model_row(recorded, model, entry)?, position),
            Event::AcceleratorRegistered(accelerator) => {
                self.accelerators.put(accelerator_row(recorded, accelerator, entry)?, position);
            }
            Event::FrameworkRegistered(framework) => {
                self.frameworks.put(framework_row(recorded, framework, entry)?, position);
            }
            Event::EngineArgsSetRegistered(set) => self.sets.put(set_row(recorded, set, entry)?, position),
            Event::EngineArgsSetArchived(_) => {
                let [code] = parts(recorded)?;
                let row = self.sets.get_mut(&(entry.org.clone(), code), position);
                let row = row.ok_or_else(|| FoldError(format!("{} is not there", recorded.stream)))?;
                row.archived = true;
                row.version = recorded.version;
                row.entry.position = position;
            }
            Event::ServerConfigRegistered(config) => {
                let [config_code] = parts(recorded)?;
                let row = ConfigRow {
                    config_code,
                    display_name: config.display_name.clone(),
                    accelerator_code: config.accelerator_code.clone(),
                    gpu_count: config.gpu_count,
                    gpu_memory_gb: config.gpu_memory_gb,
                    sources: config.sources.clone(),
                    entry,
                };
                self.configs.put(row, position);
            }
            Event::ToolRegistered(tool) => {
                let [tool_code] = parts(recorded)?;
                let row = ToolRow {
                    tool_code,
                    display_name: tool.display_name.clone(),
                    modality: tool.modality.clone(),
                    argv: tool.argv.clone(),
                    args: json(&tool.args)?,
                    endpoints_argv: tool.endpoints_argv.clone(),
                    defaults: json(&tool.defaults)?,
                    frameworks: tool.frameworks.clone(),
                    families: tool.families.clone(),
                    install: tool.install.clone(),
                    entry,
                };
                self.tools.put(row, position);
            }
            Event::ApprovalGranted(granted) => {
                let [program_code, model_code] = parts(recorded)?;
                for (key, value) in &granted.args {
                    let row = ApprovalRow {
                        program_code: program_code.clone(),
                        model_code: model_code.clone(),
                        key: key.clone(),
                        value: value.clone(),
                        approved: true,
                        reason: granted.reason.clone(),
                        decided_by: recorded.actor.id.clone(),
                        entry: entry.clone(),
                    };
                    self.approvals.put(row, position);
                }
            }
            Event::ApprovalRevoked(revoked) => {
                let [program, model] = parts(recorded)?;
                for key in &revoked.keys {
                    let of = (entry.org.clone(), program.clone(), model.clone(), key.clone());
                    let Some(row) = self.approvals.get_mut(&of, position) else { continue };
                    row.approved = false;
                    row.reason.clone_from(&revoked.reason);
                    row.decided_by.clone_from(&recorded.actor.id);
                    row.entry = entry.clone();
                }
            }
            _ => {}
        }
        Ok(())
    }
}
