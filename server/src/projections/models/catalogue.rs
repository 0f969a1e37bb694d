//! The catalogue: `v_models`, `v_frameworks`, `v_server_configs`, `v_tools`. Everyone may read it.

use events::envelope::Recorded;
use events::keys::PLATFORM_ORG;
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::projections::table::{Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

/// What every catalogue row has besides its facts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    registered_at: Timestamp,
    position: i64,
    org: String,
    visibility: String,
    owner: String,
}

impl Entry {
    fn of(recorded: &Recorded) -> Self {
        Self {
            registered_at: recorded.recorded_at,
            position: recorded.position,
            org: recorded.stream.org().to_owned(),
            // Platform-wide facts are everyone's; an organisation's own are its own.
            visibility: if recorded.stream.org() == PLATFORM_ORG { "public" } else { "organization" }
                .to_owned(),
            owner: String::new(),
        }
    }

    fn columns() -> [Column; 5] {
        [
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
            const KEY: &'static [&'static str] = &[$(stringify!($key_column)),*];

            fn columns() -> Vec<Column> {
                let mut columns = vec![$(Column::shown(stringify!($field), Kind::$kind)),*];
                columns.extend(Entry::columns());
                columns
            }
            fn key(&self) -> Self::Key {
                catalogue_key(($(self.$key_column.clone(),)*))
            }
        }
    };
}

/// A key of one part is that part; of several, a tuple.
trait CatalogueKey {
    type Key;
    fn key(self) -> Self::Key;
}
impl CatalogueKey for (String,) {
    type Key = String;
    fn key(self) -> String {
        self.0
    }
}
impl CatalogueKey for (String, String) {
    type Key = (String, String);
    fn key(self) -> (String, String) {
        self
    }
}
fn catalogue_key<K: CatalogueKey>(parts: K) -> K::Key {
    parts.key()
}

catalogue_row!(
    /// A model.
    ModelRow, "models", String, [model_code], {
    model_code: String = Text,
    display_name: String = Text,
    modality: String = Text,
    family: String = Text,
    params_b_total: Option<f64> = Float,
    max_context: Option<u32> = Int,
    attention_heads: Option<u32> = Int,
    default_precision: Option<String> = Text,
    gated: bool = Bool,
    license: Option<String> = Text,
    sources: Vec<String> = Json,
});

catalogue_row!(
    /// A framework version.
    FrameworkRow, "frameworks", (String, String), [framework_code, framework_version], {
    framework_code: String = Text,
    framework_version: String = Text,
    display_name: String = Text,
    serve_argv: Vec<String> = Json,
    flag_style: String = Text,
    readiness_path: String = Text,
    readiness_timeout_s: u32 = Int,
    engine_args: Value = Json,
    container_image: Option<String> = Text,
    sources: Vec<String> = Json,
});

catalogue_row!(
    /// A server configuration.
    ConfigRow, "server_configs", String, [config_code], {
    config_code: String = Text,
    display_name: String = Text,
    accelerator_code: Option<String> = Text,
    gpu_count: u32 = Int,
    gpu_memory_gb: Option<f64> = Float,
    sources: Vec<String> = Json,
});

catalogue_row!(
    /// A benchmark tool.
    ToolRow, "tools", String, [tool_code], {
    tool_code: String = Text,
    display_name: String = Text,
    modality: String = Text,
    argv: Vec<String> = Json,
    args: Value = Json,
});

/// Folds `model.registered`, `framework.registered`, `config.registered`, `tool.registered`.
#[derive(Debug, Default)]
pub struct Catalogue {
    models: Table<ModelRow>,
    frameworks: Table<FrameworkRow>,
    configs: Table<ConfigRow>,
    tools: Table<ToolRow>,
}

fn json<T: Serialize>(value: &T) -> Result<Value, FoldError> {
    serde_json::to_value(value).map_err(|e| FoldError(e.to_string()))
}

impl Projection for Catalogue {
    fn name(&self) -> &'static str {
        "catalogue"
    }
    fn version(&self) -> i32 {
        1
    }
    fn interests(&self) -> &'static [&'static str] {
        &["model.registered", "framework.registered", "config.registered", "tool.registered"]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.models, &mut self.frameworks, &mut self.configs, &mut self.tools]
    }
    fn wants(&mut self, _: &Recorded, _: &Event) {
        // Each event says everything about its subject: nothing earlier is looked at.
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let mut parts = recorded.stream.parts().into_iter().skip(1);
        let mut part =
            || parts.next().ok_or_else(|| FoldError(format!("{} names too little", recorded.stream)));
        let (entry, position) = (Entry::of(recorded), recorded.position);
        match event {
            Event::ModelRegistered(model) => self.models.put(
                ModelRow {
                    model_code: part()?,
                    display_name: model.display_name.clone(),
                    modality: model.modality.clone(),
                    family: model.family.clone(),
                    params_b_total: model.params_b_total,
                    max_context: model.max_context,
                    attention_heads: model.attention_heads,
                    default_precision: model.default_precision.clone(),
                    gated: model.gated,
                    license: model.license.clone(),
                    sources: model.sources.clone(),
                    entry,
                },
                position,
            ),
            Event::FrameworkRegistered(framework) => self.frameworks.put(
                FrameworkRow {
                    framework_code: part()?,
                    framework_version: part()?,
                    display_name: framework.display_name.clone(),
                    serve_argv: framework.serve_argv.clone(),
                    flag_style: framework.flag_style.clone(),
                    readiness_path: framework.readiness_path.clone(),
                    readiness_timeout_s: framework.readiness_timeout_s,
                    engine_args: json(&framework.engine_args)?,
                    container_image: framework.container_image.clone(),
                    sources: framework.sources.clone(),
                    entry,
                },
                position,
            ),
            Event::ServerConfigRegistered(config) => self.configs.put(
                ConfigRow {
                    config_code: part()?,
                    display_name: config.display_name.clone(),
                    accelerator_code: config.accelerator_code.clone(),
                    gpu_count: config.gpu_count,
                    gpu_memory_gb: config.gpu_memory_gb,
                    sources: config.sources.clone(),
                    entry,
                },
                position,
            ),
            Event::ToolRegistered(tool) => self.tools.put(
                ToolRow {
                    tool_code: part()?,
                    display_name: tool.display_name.clone(),
                    modality: tool.modality.clone(),
                    argv: tool.argv.clone(),
                    args: json(&tool.args)?,
                    entry,
                },
                position,
            ),
            _ => {}
        }
        Ok(())
    }
}
