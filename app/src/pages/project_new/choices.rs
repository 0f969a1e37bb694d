//! What there is to choose for a workload: models, frameworks, formats, sets and inputs that go together.

use events::tools::ToolCode;

use super::draft::Draft;
use crate::format::counted;
use crate::row::Row;

impl Draft {
    /// The server that is chosen; where that is not there (any more), one that is online, or any.
    pub fn settle_on<'s>(&mut self, servers: &'s [Row]) -> Option<&'s Row> {
        let chosen = servers.iter().find(|s| s.text("server") == self.server);
        let found =
            chosen.or_else(|| servers.iter().find(|s| s.text("state") == "online")).or(servers.first());
        if let Some(server) = found.filter(|_| chosen.is_none()) {
            self.server = server.text("server");
        }
        found
    }

    /// Chooses what is sensible on a server: a model of the tool's kind that it has, and a framework it can start.
    pub fn suit(&mut self, server: Option<&Row>, models: &[Row], frameworks: &[Row], tools: &[Row]) {
        let has = |row: &Row, list: &str, code: &str| row.list(list).iter().any(|c| c == code);
        let fitting = models_of(&self.tool, models, tools);
        if !fitting.iter().any(|m| m.text("model_code") == self.model) {
            let there =
                fitting.iter().find(|m| server.is_some_and(|s| has(s, "models", &m.text("model_code"))));
            self.model = there.or(fitting.first()).map(|m| m.text("model_code")).unwrap_or_default();
        }
        let allowed = frameworks_of(&self.tool, frameworks, tools);
        if !allowed.iter().any(|f| f.text("framework_code") == self.framework) {
            // The first framework whose program the server has.
            let there = allowed.iter().find(|f| {
                let program = f.list("serve_argv").into_iter().next();
                program.is_some_and(|p| server.is_some_and(|s| has(s, "executables", &p)))
            });
            self.framework = there.or(allowed.first()).map(|f| f.text("framework_code")).unwrap_or_default();
        }
        let versions = versions(frameworks, &self.framework);
        if !versions.contains(&self.version) {
            self.version = versions.last().cloned().unwrap_or_default();
        }
    }
}

/// What a tool measures: its row in the catalogue.
fn tool_row<'a>(tool: &str, tools: &'a [Row]) -> Option<&'a Row> {
    tools.iter().find(|t| t.text("tool_code") == tool)
}

/// The models that a tool measures; every one while the catalogue of tools is not read.
pub fn models_of<'a>(tool: &str, models: &'a [Row], tools: &[Row]) -> Vec<&'a Row> {
    let Some(row) = tool_row(tool, tools) else { return models.iter().collect() };
    let (modality, families) = (row.text("modality"), row.list("families"));
    let fits = |m: &&Row| {
        let family = families.is_empty() || families.contains(&m.text("family"));
        (modality.is_empty() || m.text("modality") == modality) && family
    };
    models.iter().filter(fits).collect()
}

/// The frameworks that serve what a tool measures; sidecars serve nothing by themselves.
pub fn frameworks_of<'a>(tool: &str, frameworks: &'a [Row], tools: &[Row]) -> Vec<&'a Row> {
    let tool = tool_row(tool, tools);
    let allowed = tool.map(|t| t.list("frameworks")).unwrap_or_default();
    let modality = tool.map(|t| t.text("modality")).unwrap_or_default();
    let serves = |f: &Row| {
        let modalities = f.list("modalities");
        modality.is_empty() || modalities.is_empty() || modalities.contains(&modality)
    };
    let named = |f: &Row| allowed.is_empty() || allowed.contains(&f.text("framework_code"));
    frameworks.iter().filter(|f| !f.is("sidecar") && named(f) && serves(f)).collect()
}

/// The versions of a framework, in the order of the catalogue.
pub fn versions(frameworks: &[Row], code: &str) -> Vec<String> {
    frameworks
        .iter()
        .filter(|f| f.text("framework_code") == code)
        .filter_map(|f| f.maybe_text("framework_version").or_else(|| f.maybe_text("version")))
        .collect()
}

/// Each code once, in the order of the catalogue.
pub fn codes<'a>(rows: impl IntoIterator<Item = &'a Row>, column: &str) -> Vec<String> {
    let mut codes: Vec<String> = Vec::new();
    for row in rows {
        let code = row.text(column);
        if !code.is_empty() && !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes
}

/// The numeric formats that are known for a model and a framework: those the model is published in, then those the
/// framework can make of it.
pub fn quantizations(draft: &Draft, models: &[Row], frameworks: &[Row]) -> Vec<String> {
    let model = models.iter().find(|m| m.text("model_code") == draft.model);
    let framework = frameworks.iter().find(|f| {
        f.text("framework_code") == draft.framework && f.text("framework_version") == draft.version
    });
    let made = framework
        .and_then(|f| f.value("engine_args")?.get("quantization")?.get("choices")?.as_array().cloned())
        .unwrap_or_default();
    let mut known = model.map(|m| m.list("precisions")).unwrap_or_default();
    for format in made.iter().filter_map(|f| f.as_str()) {
        if !known.iter().any(|k| k == format) {
            known.push(format.to_owned());
        }
    }
    known
}

/// The builds of a draft's framework version, as code and words; none where there is nothing to choose.
pub fn build_options(frameworks: &[Row], draft: &Draft) -> Vec<(String, String)> {
    let framework = frameworks.iter().find(|f| {
        f.text("framework_code") == draft.framework && f.text("framework_version") == draft.version
    });
    let images =
        framework.and_then(|f| f.value("container_images")?.as_object().cloned()).unwrap_or_default();
    if images.len() < 2 && draft.build_profile.is_empty() {
        return Vec::new();
    }
    let word = |code: &str| match code {
        "nvidia" => "CUDA".to_owned(),
        "cpu" => "CPU".to_owned(),
        "google-tpu" => "TPU".to_owned(),
        "intel-xpu" => "Intel XPU".to_owned(),
        other => match other.strip_prefix("amd") {
            Some("") => "ROCm".to_owned(),
            Some(chip) => format!("ROCm, {}", chip.trim_start_matches('-').to_uppercase()),
            None => other.to_owned(),
        },
    };
    let first = std::iter::once((String::new(), "by the server’s hardware".to_owned()));
    first.chain(images.keys().map(|code| (code.clone(), word(code)))).collect()
}

/// The sets of engine arguments for a framework, as code and words: those for the model first, then those for any.
pub fn set_options(sets: &[Row], draft: &Draft) -> Vec<(String, String)> {
    let mut found: Vec<(bool, String, String)> = sets
        .iter()
        .filter(|s| s.text("framework_code") == draft.framework)
        .filter(|s| s.maybe_text("model_code").is_none_or(|code| code.is_empty() || code == draft.model))
        .map(|s| {
            let code = s.text("set_code");
            let verified = if s.is("verified") { " · verified" } else { "" };
            let custom = if s.is("custom") { " (custom)" } else { "" };
            (s.text("model_code") != draft.model, code.clone(), format!("{code}{custom}{verified}"))
        })
        .collect();
    found.sort();
    let none = std::iter::once((String::new(), "none: the framework's defaults".to_owned()));
    none.chain(found.into_iter().map(|(_, code, words)| (code, words))).collect()
}

/// The sources of inputs of the tool's kind, as code and words.
pub fn source_options(sources: &[Row], tool: ToolCode) -> Vec<(String, String)> {
    let wanted = tool.prompt_source_type().map(|kind| kind.as_str());
    let first = match tool {
        ToolCode::MetrumbenchAsr => "none yet: speech to text needs audio",
        ToolCode::Kyai => "a built-in set of questions",
        _ => "made up by the tool",
    };
    let fitting = sources.iter().filter(|s| Some(s.text("source_type").as_str()) == wanted).map(|s| {
        let code = s.text("prompt_source_code");
        let words = match s.whole("prompt_count") {
            Some(n) => format!("{code} · {}", counted(n, "prompt")),
            None => code.clone(),
        };
        (code, words)
    });
    std::iter::once((String::new(), first.to_owned())).chain(fitting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn row(value: Value) -> Row {
        serde_json::from_value(value).expect("a row")
    }

    #[test]
    fn each_workload_keeps_its_own_server_while_that_is_there() {
        let servers = [
            row(json!({"server": "server/o/a/h1", "state": "offline"})),
            row(json!({"server": "server/o/a/h2", "state": "online"})),
        ];
        let mut fresh = Draft::default();
        assert!(fresh.settle_on(&servers).is_some());
        assert_eq!(fresh.server, "server/o/a/h2");
        let mut chosen = Draft { server: "server/o/a/h1".into(), ..Draft::default() };
        chosen.settle_on(&servers);
        assert_eq!(chosen.server, "server/o/a/h1");
        chosen.settle_on(&servers[1..]);
        assert_eq!(chosen.server, "server/o/a/h2");
        assert!(fresh.settle_on(&[]).is_none());
    }

    #[test]
    fn a_fresh_draft_suits_the_server_it_is_for() {
        let server = row(json!({"models": ["google/gemma-3-270m-it"], "executables": ["llama-server"]}));
        let models = [
            row(json!({"model_code": "meta-llama/Llama-3.3-70B"})),
            row(json!({"model_code": "google/gemma-3-270m-it"})),
        ];
        let frameworks = [
            row(
                json!({"framework_code": "vllm", "framework_version": "0.28.0", "serve_argv": ["vllm", "serve"]}),
            ),
            row(
                json!({"framework_code": "llama-cpp", "framework_version": "b6000", "serve_argv": ["llama-server"]}),
            ),
        ];
        let mut draft = Draft::default();
        draft.suit(Some(&server), &models, &frameworks, &[]);
        assert_eq!(
            (draft.model.as_str(), draft.framework.as_str(), draft.version.as_str()),
            ("google/gemma-3-270m-it", "llama-cpp", "b6000")
        );
        assert!(draft.input().is_ok());
    }

    #[test]
    fn a_kind_of_workload_offers_its_models_and_frameworks() {
        let models = [
            row(json!({"model_code": "llama", "modality": "llm", "family": "llama"})),
            row(json!({"model_code": "whisper", "modality": "asr", "family": "whisper"})),
            row(json!({"model_code": "parakeet", "modality": "asr", "family": "parakeet"})),
        ];
        let frameworks = [
            row(json!({"framework_code": "sglang", "framework_version": "1"})),
            row(json!({"framework_code": "vllm", "framework_version": "2"})),
        ];
        let tools = [row(
            json!({"tool_code": "metrumbench-asr", "modality": "asr", "frameworks": ["vllm"], "families": ["whisper"]}),
        )];
        let mut draft = Draft { tool: "metrumbench-asr".into(), model: "llama".into(), ..Draft::default() };
        draft.suit(None, &models, &frameworks, &tools);
        assert_eq!(
            (draft.model.as_str(), draft.framework.as_str(), draft.version.as_str()),
            ("whisper", "vllm", "2")
        );
    }

    #[test]
    fn a_sidecar_and_what_serves_another_kind_are_not_offered() {
        let frameworks = [
            row(json!({"framework_code": "lmcache-server", "sidecar": true})),
            row(json!({"framework_code": "vllm-omni", "modalities": ["imagegen"]})),
            row(json!({"framework_code": "tgi", "modalities": ["llm"]})),
        ];
        let tools = [row(json!({"tool_code": "kyai", "modality": "llm"}))];
        assert_eq!(frameworks_of("kyai", &frameworks, &tools), [&frameworks[2]]);
    }

    #[test]
    fn builds_are_offered_where_there_are_several() {
        let of = |images: Value| {
            let row =
                row(json!({"framework_code": "f", "framework_version": "1", "container_images": images}));
            let draft = Draft { framework: "f".into(), version: "1".into(), ..Draft::default() };
            let options = build_options(&[row], &draft);
            options.into_iter().map(|(code, words)| format!("{code}={words}")).collect::<Vec<_>>()
        };
        assert_eq!(of(json!({"nvidia": "a"})), Vec::<String>::new());
        assert_eq!(
            of(json!({"nvidia": "a", "amd": "b", "amd-mi355": "c"})),
            ["=by the server’s hardware", "amd=ROCm", "amd-mi355=ROCm, MI355", "nvidia=CUDA"]
        );
    }

    #[test]
    fn formats_are_the_models_then_the_frameworks() {
        let models = [row(json!({"model_code": "m", "precisions": ["bf16", "fp8"]}))];
        let frameworks = [row(
            json!({"framework_code": "f", "framework_version": "1", "engine_args": {"quantization": {"choices": ["awq", "fp8"]}}}),
        )];
        let draft =
            Draft { model: "m".into(), framework: "f".into(), version: "1".into(), ..Draft::default() };
        assert_eq!(quantizations(&draft, &models, &frameworks), ["bf16", "fp8", "awq"]);
    }
}
