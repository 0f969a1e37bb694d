//! Two organisations with the same things in each, and everybody who may ask for them.

use events::Event;
use events::access::Role;
use events::job::JobCompleted;
use events::keys::StreamKey;
use events::project::ProjectVisibility;
use events::prompt_source::PromptSourceCalibrated;
use events::quota::Resource;
use events::report::ItemOutcome;
use events::summary::Summary;
use events::tool_output::{ToolInvocation, ToolOutputRecorded};
use events::tools::ToolCode;
use reqwest::Method;
use serde_json::{Value, json};
use server::api::limits::{Rate, Rates};
use server::auth::Principal;
use server::clock;
use server::commands::RequestMeta;
use server::commands::quotas::set_quotas;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::plane::agent::Agent;
use crate::plane::{Client, PASSWORD, Plane};
use crate::reading::{Read, Story, event, summary};

pub const ORGS: [&str; 2] = ["acme", "other"];
/// What every story leaves behind, see [`Story::leave_behind`].
pub const FILE_OF_ALL: &str = "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";
/// What each organisation's owner uploaded, and no command named.
pub const UPLOADED: &str = "an upload";
const VISIBILITIES: [ProjectVisibility; 3] =
    [ProjectVisibility::Private, ProjectVisibility::Organization, ProjectVisibility::Public];

/// Somebody who asks.
pub struct Caller {
    pub name: String,
    pub client: Client,
    /// The organisation; only of people, for an agent reads no more than anybody.
    pub org: Option<&'static str>,
    pub user: Option<String>,
    pub role: Option<Role>,
}

/// A project, and who may see it.
#[derive(Debug, Clone)]
pub struct Project {
    pub org: &'static str,
    pub code: String,
    pub visibility: ProjectVisibility,
    pub owner: String,
    /// The SHA-256 of a file of its first job.
    pub blob: String,
}

/// What stands in a view about one person: a text that is in the row, and whose it is.
pub struct Mark {
    pub view: &'static str,
    pub text: String,
    pub org: &'static str,
    /// Whose; `None` for the organisation's.
    pub user: Option<String>,
}

pub struct World {
    pub plane: Plane,
    pub callers: Vec<Caller>,
    pub projects: Vec<Project>,
    pub marks: Vec<Mark>,
}

impl Caller {
    pub fn is_admin_of(&self, org: &str) -> bool {
        self.org == Some(org) && self.role == Some(Role::Admin)
    }

    fn is(&self, org: &str, user: &str) -> bool {
        self.org == Some(org) && self.user.as_deref() == Some(user)
    }

    /// The rule of DESIGN: private is the creator's alone, administrators excluded; public includes anonymous readers.
    pub fn sees(&self, project: &Project) -> bool {
        match project.visibility {
            ProjectVisibility::Public => true,
            ProjectVisibility::Organization => self.org == Some(project.org),
            ProjectVisibility::Private => self.is(project.org, &project.owner),
        }
    }
}

fn scopes(role: Role) -> &'static [&'static str] {
    match role {
        Role::Viewer => &["read"],
        Role::Member => &["read", "write"],
        Role::Admin => &["read", "write", "admin"],
    }
}

impl World {
    pub async fn make() -> Self {
        // The matrix asks more than any person would.
        let rate = Rate::new(1_000_000, 1_000_000);
        let rates = Rates { person: rate, anonymous: rate, agent: rate };
        let plane = Plane::start_with(|config| {
            config.rates = rates;
            config.outbound.networks = "127.0.0.0/8".parse().unwrap();
        })
        .await;
        let mut world = Self { plane, callers: Vec::new(), projects: Vec::new(), marks: Vec::new() };
        let anonymous = world.plane.anonymous();
        world.callers.push(Caller {
            name: "anonymous".into(),
            client: anonymous,
            org: None,
            user: None,
            role: None,
        });
        for org in ORGS {
            for (name, role) in [
                ("viewer", Role::Viewer),
                ("member", Role::Member),
                ("owner", Role::Member),
                ("admin", Role::Admin),
            ] {
                world.person(org, name, role).await;
            }
            world.things(org).await;
        }
        let mut agents = Vec::new();
        for hostname in ["h1", "h2"] {
            let agent = Agent::enrol(&world.plane, hostname).await;
            let (name, client) = (format!("agent of {hostname}"), agent.client.clone());
            world.callers.push(Caller { name, client, org: None, user: None, role: None });
            agents.push(agent);
        }
        world.tell().await;
        world.misreport(&agents[0]).await;
        let head = world.plane.head().await;
        world.plane.state.projections.wait_for(head, std::time::Duration::from_secs(60)).await.unwrap();
        world
    }

    pub fn caller(&self, name: &str) -> &Caller {
        self.callers.iter().find(|caller| caller.name == name).expect("a caller of this name")
    }

    fn mark(&mut self, view: &'static str, text: impl Into<String>, org: &'static str, user: Option<&str>) {
        self.marks.push(Mark { view, text: text.into(), org, user: user.map(str::to_owned) });
    }

    /// An account, with one of everything that belongs to a person.
    async fn person(&mut self, org: &'static str, name: &str, role: Role) {
        let plane = &self.plane;
        let email = format!("{name}@{org}.example");
        let user = plane.account_in(org, &email, role).await;
        let client = Client::with_token(
            &plane.url,
            &plane.token_of(user, org, role, scopes(role), clock::now()).await,
        );
        let user = user.to_string();
        let mut page = plane.anonymous();
        page.sign_in(&email, PASSWORD).await.ok();
        let token_name = format!("token of {name} of {org}");
        let token = json!({"p_name": token_name, "p_scopes": ["read"], "p_expires_in_days": 1});
        page.rpc("create_api_token", &token).await.ok();
        let hook = json!({"p_url": "http://127.0.0.1:1/nobody", "p_kinds": ["run_failed"]});
        let hook = page.rpc("create_webhook", &hook).await.ok();
        page.rpc("test_notification", &json!({"p_webhook_id": hook["webhook_id"]})).await.ok();
        let saved = json!({"p_name": format!("{name} of {org}"), "p_page": "/reporting"});
        let saved = page.rpc("save_view", &saved).await.ok();
        let secret = if role >= Role::Member {
            let args = json!({"p_token": format!("hf_TokenOf{name}Of{org}0123456789")});
            page.rpc("set_hf_token", &args).await.ok();
            let rows = page.get("/api/v_secrets?scope=eq.user").await.ok();
            rows[0]["secret_id"].as_str().map(str::to_owned)
        } else {
            None
        };
        let sessions = page.get("/api/v_sessions").await.ok();
        let session = sessions[0]["session_id"].as_str().unwrap().to_owned();
        let hook = hook["webhook_id"].as_str().unwrap().to_owned();
        let saved = saved["view_code"].as_str().unwrap().to_owned();
        self.mark("v_members", &user, org, None);
        self.mark("v_api_tokens", token_name, org, Some(&user));
        self.mark("v_webhooks", &hook, org, Some(&user));
        self.mark("v_notifications", hook, org, Some(&user));
        self.mark("v_saved_views", saved, org, Some(&user));
        self.mark("v_sessions", session, org, Some(&user));
        if let Some(secret) = secret {
            self.mark("v_secrets", secret, org, Some(&user));
        }
        // What the account did stands in its own stream of the audit trail.
        self.mark("v_audit", format!("access/{org}/{user}"), org, Some(&user));
        let name = format!("{name} of {org}");
        self.callers.push(Caller { name, client, org: Some(org), user: Some(user), role: Some(role) });
    }

    /// What belongs to an organisation.
    async fn things(&mut self, org: &'static str) {
        let admin = self.caller(&format!("admin of {org}")).client.clone();
        let done = async |command: &str, args: Value| admin.rpc(command, &args).await.ok();
        let named = |what: &str| format!("{what}-of-{org}");
        let invitation = done("create_invitation", json!({"p_role": "viewer"})).await;
        let (model, framework) = (named("model"), named("framework"));
        let facts = json!({"display_name": model, "modality": "llm", "gated": false});
        done("register_model", json!({"p_model_code": model, "p_facts": facts})).await;
        let facts = json!({
            "display_name": framework, "serve_argv": ["serve", "--port={agent.port}", "--model={model}"],
            "flag_style": "equals", "readiness_path": "/health", "readiness_timeout_s": 60,
            "engine_args": {"threads": {"cli_flag": "--threads", "type": "int", "min": 1}},
        });
        let args = json!({"p_framework_code": framework, "p_framework_version": "1.0", "p_facts": facts});
        done("register_framework_version", args).await;
        let facts = json!({"display_name": named("accelerator"), "vendor": "X", "memory_gb": 48});
        done("register_accelerator", json!({"p_accelerator_code": named("accelerator"), "p_facts": facts}))
            .await;
        let facts = json!({"display_name": named("config"), "accelerator_code": named("accelerator"), "gpu_count": 4,
                           "gpu_memory_gb": 48});
        done("register_server_config", json!({"p_config_code": named("config"), "p_facts": facts})).await;
        let args = json!({"p_set_code": named("set"), "p_framework_code": framework, "p_framework_version": "1.0",
                          "p_values": {"threads": 4}, "p_notes": "measured"});
        done("create_engine_args_set", args).await;
        let args =
            json!({"p_program_code": "metrumbench-llm", "p_model_code": model, "p_args": {"insecure": true}});
        done("approve_dangerous_args", args).await;
        let args = json!({"p_config_code": "local-cpu", "p_hostname": named("host")});
        done("create_server_config_instance", args).await;
        let args = json!({"p_prompt_source_code": named("prompts"), "p_type": "prompt_library",
                          "p_content": "{\"prompt\": \"What?\"}\n"});
        done("create_prompt_source", args).await;
        let args = json!({"p_tool_code": "metrumbench-llm", "p_name": named("args"), "p_values": {"request_timeout": 600}});
        done("save_tool_args_set", args).await;
        let saved = json!({"p_name": named("shared"), "p_page": "/reporting", "p_shared": true});
        let saved = done("save_view", saved).await;

        // The operator's doing.
        let meta = RequestMeta { correlation_id: Uuid::now_v7(), idempotency_key: None, now: clock::now() };
        let quotas = [(Resource::Projects, Some(1000))].into();
        set_quotas(&self.plane.state, &Principal::operator(org), org, &quotas, meta).await.unwrap();

        self.mark("v_quotas", format!("\"org\":\"{org}\""), org, None);
        self.mark("v_invitations", invitation["invitation_id"].as_str().unwrap(), org, None);
        self.mark("v_saved_views", saved["view_code"].as_str().unwrap(), org, None);
        self.mark("v_organizations", format!("\"org\":\"{org}\""), org, None);
        self.mark("v_notification_preferences", format!("\"org\":\"{org}\""), org, None);
        for (view, what) in [
            ("v_servers", "host"),
            ("v_dangerous_arg_approvals", "model"),
            ("v_tool_args_sets", "args"),
            ("v_models", "model"),
            ("v_frameworks", "framework"),
            ("v_framework_engine_args_templates", "framework"),
            ("v_framework_engine_args_sets", "set"),
            ("v_framework_engine_args_values", "set"),
            ("v_accelerator_types", "accelerator"),
            ("v_server_configs", "config"),
            ("v_prompt_sources", "prompts"),
            ("v_prompt_libraries_with_prompt_count", "prompts"),
            ("v_prompt_source_calibrations", "prompts"),
        ] {
            self.mark(view, format!("{what}-of-{org}"), org, None);
        }
    }

    /// In each organisation a project of each visibility, with a run of every tool, an import, and a file.
    async fn tell(&mut self) {
        let state = &self.plane.state;
        let read = Read {
            log: state.log.clone(),
            pool: state.pool.clone(),
            reader: state.reader.clone(),
            projections: state.projections.clone(),
            stop: CancellationToken::new(),
            url: String::new(),
        };
        for org in ORGS {
            let owner = self.caller(&format!("owner of {org}"));
            let path = format!("/api/uploads/{}", hex::encode(Sha256::digest(UPLOADED)));
            owner.client.send(owner.client.request(Method::PUT, &path).body(UPLOADED)).await.ok();
            let owner = owner.user.clone().unwrap();
            for visibility in VISIBILITIES {
                let code = format!("{}-of-{org}", visibility.as_str());
                let story = Story {
                    org: org.into(),
                    project: code.clone(),
                    owner: owner.clone(),
                    visibility,
                    concurrencies: vec![8],
                    seconds: 5,
                    ..Story::default()
                };
                story.tell(&read).await;
                story.leave_behind(&read, 8).await;
                // A run nobody doubts, and one of each tool.
                Story { run: 2, flagged: false, ..story.clone() }.again(&read).await;
                for (run, tool) in (3..).zip(ToolCode::ALL) {
                    let story = Story { run, tool: tool.as_str(), ..story.clone() };
                    story.create_run(&read).await;
                    story.begin_job(&read, 8).await;
                    finish(&read, &story, *tool).await;
                }
                // As jobs of this project once taught the organisation's library; nobody is told which.
                let source = StreamKey::new("prompt_source", &[org, &format!("prompts-of-{org}")]);
                let learnt = PromptSourceCalibrated {
                    model_code: "m".into(),
                    words_per_token: 0.75,
                    overhead_tokens: 4.0,
                    requests: 10,
                    job: Some(story.job(8).stream().to_string()),
                };
                let learnt = event(&source, 0.0, &Event::PromptSourceCalibrated(learnt));
                read.append(&source, vec![learnt]).await;
                let blob = self.import(org, &code).await;
                self.projects.push(Project { org, code, visibility, owner: owner.clone(), blob });
            }
        }
    }

    /// An agent reports about a job of each project that it never claimed: what is refused is told in its server's stream.
    async fn misreport(&self, agent: &Agent) {
        for Project { org, code, .. } in &self.projects {
            let job = json!({"org": org, "project": code, "workload": "w1", "run": 1,
                             "scenario": "c8-isl512-osl256"});
            let lines = json!({"kind": "log", "job": job, "attempt": 1, "log":
                {"source": "agent", "first_line": 1, "lines": ["x"]}});
            let outcomes = agent.report(&[(clock::now(), lines)]).await;
            assert!(matches!(outcomes[0], ItemOutcome::Rejected { .. }), "{outcomes:?}");
        }
    }

    /// A result that another tool measured; gives its file's hash.
    async fn import(&self, org: &str, project: &str) -> String {
        let file = json!({
            "model_id": project, "num_prompts": 100, "max_concurrency": 8, "duration": 8.0, "completed": 100,
            "total_input_tokens": 6400, "total_output_tokens": 6400, "request_throughput": 12.5,
            "output_throughput": 800.0, "total_token_throughput": 1600.0,
        });
        let args = json!({"p_project_code": project, "p_format": "vllm_bench_serve", "p_content": file.to_string(),
                          "p_model_code": "google/gemma-3-270m"});
        let reply = self.caller(&format!("owner of {org}")).client.rpc("import_results", &args).await.ok();
        reply["file_sha256"].as_str().unwrap().to_owned()
    }
}

/// The end of a job of some tool: its output, and that it is done.
async fn finish(read: &Read, story: &Story, tool: ToolCode) {
    let invocation = ToolInvocation {
        tool_code: tool.as_str().into(),
        tool_version: "1".into(),
        argv: vec![tool.as_str().into()],
        exit_code: Some(0),
        summary_sha256: "ab".repeat(32),
    };
    let external = |own: Value| {
        let mut output = json!({"attempt": 1, "invocation": invocation, "load": {},
                                "figures": {"requests_succeeded": 98, "requests_failed": 2}});
        output.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        Event::ExternalOutputRecorded(serde_json::from_value(output).unwrap())
    };
    let hash = "cd".repeat(32);
    // Without telemetry a result is doubted, and what is doubted has no rank.
    story.load(read, 8).await;
    let output = match tool {
        ToolCode::Inferencex => external(json!({"inferencex": {"dimensions": {}, "per_gpu": {}}})),
        ToolCode::GenaiPerf => external(json!({})),
        ToolCode::KvCacheOffload => {
            external(json!({"kv_cache": {"tier": "cpu", "dataset": "sharegpt", "figures": {}}}))
        }
        ToolCode::Kyai => external(json!({"kyai": {
            "dataset": story.project, "dataset_sha256": hash, "generation_prompt_sha256": hash,
            "judge_prompt_sha256": hash, "judge": "judge 1", "questions": 100, "scored": 98, "errors": 2, "score": 0.5,
        }})),
        ToolCode::MetrumbenchLlm
        | ToolCode::MetrumbenchVlm
        | ToolCode::MetrumbenchAsr
        | ToolCode::MetrumbenchImagegen => {
            let summary = Summary { tool: tool.as_str().into(), ..summary(20.0, 5000, false) };
            Event::ToolOutputRecorded(Box::new(ToolOutputRecorded { attempt: 1, invocation, summary }))
        }
    };
    let completed = Event::JobCompleted(JobCompleted { attempt: 1, telemetry_samples: 6, log_lines: 2 });
    let job = story.job(8).stream();
    // With the last sample: what is not covered is doubted too.
    let end = 20.0 + f64::from(story.seconds);
    read.append(&job, vec![event(&job, end, &output), event(&job, end + 0.5, &completed)]).await;
}
