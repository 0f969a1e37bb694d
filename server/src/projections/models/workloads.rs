//! Workloads: `v_workloads`. Folded by [`super::projects`].

use events::Timestamp;
use events::envelope::Recorded;
use events::keys::WorkloadKey;
use events::workload::WorkloadCreated;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::access::{self, Rights};
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// A workload, as `v_workloads` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkloadRow {
    org: String,
    project_code: String,
    workload_code: String,
    pub(super) name: String,
    pub(super) archived: bool,
    model_code: String,
    framework_code: String,
    framework_version: String,
    quantization: Option<String>,
    engine_args_set_code: Option<String>,
    engine_args: Value,
    tool_code: String,
    tool_args: Value,
    endpoint_url: Option<String>,
    prompt_source_code: Option<String>,
    build_profile: Option<String>,
    keep_server: bool,
    cloned_from: Option<String>,
    pub(super) scenarios: i64,
    pub(super) runs: i64,
    created_at: Timestamp,
    pub(super) position: i64,
    visibility: String,
    owner: String,
}

impl WorkloadRow {
    pub(super) fn new(
        key: WorkloadKey,
        created: &WorkloadCreated,
        recorded: &Recorded,
        rights: Rights,
    ) -> Self {
        let spec = &created.spec;
        Self {
            org: key.org,
            project_code: key.project,
            workload_code: key.workload,
            name: created.name.clone(),
            archived: false,
            model_code: spec.model_code.clone(),
            framework_code: spec.framework_code.clone(),
            framework_version: spec.framework_version.clone(),
            quantization: spec.quantization.clone(),
            engine_args_set_code: spec.engine_args_set_code.clone(),
            engine_args: object(&spec.engine_args),
            tool_code: spec.tool_code.clone(),
            tool_args: object(&spec.tool_args),
            endpoint_url: spec.endpoint_url.clone(),
            prompt_source_code: spec.prompt_source_code.clone(),
            build_profile: spec.build_profile.clone(),
            keep_server: spec.keep_server,
            cloned_from: created.cloned_from.clone(),
            scenarios: 0,
            runs: 0,
            created_at: recorded.recorded_at,
            position: recorded.position,
            visibility: rights.visibility,
            owner: rights.owner,
        }
    }
}

fn object(map: &std::collections::BTreeMap<String, Value>) -> Value {
    Value::Object(map.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
}

impl Row for WorkloadRow {
    type Key = (String, String, String);
    const TABLE: &'static str = "workloads";
    const KEY: &'static [&'static str] = &["org", "project_code", "workload_code"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Json, Text, Time};
        let mut columns = vec![
            Column::shown("org", Text),
            Column::shown("project_code", Text),
            Column::shown("workload_code", Text),
            Column::shown("name", Text),
            Column::shown("archived", Bool),
            Column::shown("model_code", Text),
            Column::shown("framework_code", Text),
            Column::shown("framework_version", Text),
            Column::shown("quantization", Text),
            Column::shown("engine_args_set_code", Text),
            Column::shown("engine_args", Json),
            Column::shown("tool_code", Text),
            Column::shown("tool_args", Json),
            Column::shown("endpoint_url", Text),
            Column::shown("prompt_source_code", Text),
            Column::shown("build_profile", Text),
            Column::shown("keep_server", Bool),
            Column::shown("cloned_from", Text),
            Column::shown("scenarios", Int),
            Column::shown("runs", Int),
            Column::shown("created_at", Time),
            Column::shown("position", Int),
        ];
        columns.extend(access::columns());
        columns
    }
    fn key(&self) -> Self::Key {
        (self.org.clone(), self.project_code.clone(), self.workload_code.clone())
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
}
