//! The table of commands: name, who may, what it does, what it takes and answers. A test reads it, so a command without
//! an entry fails; [`super::rpc`] carries them out.

use events::access::Role;
use events::api::*;
use events::api_catalogue::*;
use events::merkle::Checkpoint;
use schemars::JsonSchema;
use serde::Deserialize;

use super::contract::{SchemaOf, schema_of};
use super::router::Access;
use crate::commands::preview_commands;

/// One command.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// Its name in the path.
    pub name: &'static str,
    /// Who may use it.
    pub access: Access,
    /// What it does.
    pub about: &'static str,
    /// Its arguments.
    pub args: SchemaOf,
    /// Its answer.
    pub reply: SchemaOf,
}

/// A command with these arguments, which answers with its position and the keys it touched.
const fn command<Args: JsonSchema>(name: &'static str, access: Access, about: &'static str) -> Command {
    Command { name, access, about, args: schema_of::<Args>, reply: schema_of::<CommandReply> }
}

impl Command {
    /// With another answer.
    const fn gives<Reply: JsonSchema>(self) -> Self {
        Self { reply: schema_of::<Reply>, ..self }
    }
}

const VIEWER: Access = Access::Person(Role::Viewer);
const MEMBER: Access = Access::Person(Role::Member);
const ADMIN: Access = Access::Person(Role::Admin);

/// Every command.
pub const COMMANDS: &[Command] = &[
    command::<SignIn>("sign_in", Access::Anyone, "Starts a session.").gives::<Session>(),
    command::<NoArguments>("sign_out", Access::Anyone, "Ends the session.").gives::<Session>(),
    command::<CreateApiToken>(
        "create_api_token",
        Access::Person(Role::Viewer),
        "Makes an API token, shown once.",
    ),
    command::<RevokeApiToken>("revoke_api_token", Access::Person(Role::Viewer), "Revokes an API token."),
    command::<StartOidcSignIn>(
        "start_oidc_sign_in",
        Access::Anyone,
        "Sends the browser to the OpenID provider.",
    )
    .gives::<OidcStarted>(),
    command::<NoArguments>("sign_out_everywhere", Access::Session, "Ends every session of one's own."),
    command::<RevokeSession>("revoke_session", Access::Session, "Ends one of one's own sessions."),
    command::<ChangePassword>(
        "change_password",
        Access::Session,
        "Changes one's own password; other sessions end.",
    ),
    command::<ChangeName>("change_name", Access::Session, "Changes one's own name."),
    command::<CreateOrganization>(
        "create_organization",
        ADMIN,
        "Makes an organisation; its maker becomes its first administrator.",
    ),
    command::<RenameOrganization>(
        "rename_organization",
        ADMIN,
        "Gives the organisation another display name.",
    ),
    command::<SwitchOrganization>(
        "switch_organization",
        Access::Session,
        "Lets the session go on in another organisation of its owner's.",
    )
    .gives::<Session>(),
    command::<CreateInvitation>("create_invitation", ADMIN, "Makes a one-time link to the organisation."),
    command::<RevokeInvitation>("revoke_invitation", ADMIN, "Withdraws an invitation."),
    command::<DescribeInvitation>(
        "describe_invitation",
        Access::Anyone,
        "Says what an invitation's link leads to.",
    )
    .gives::<InvitationShown>(),
    command::<AcceptInvitation>(
        "accept_invitation",
        Access::Anyone,
        "Joins an organisation, with the caller's account, one that exists or a new one.",
    )
    .gives::<serde_json::Value>(),
    command::<SetMemberRole>(
        "set_member_role",
        ADMIN,
        "Gives a member another role; the last administrator stays.",
    ),
    command::<RemoveMember>(
        "remove_member",
        VIEWER,
        "Ends a membership: one's own, or, for administrators, anybody's.",
    ),
    command::<SetHfToken>(
        "set_hf_token",
        MEMBER,
        "Stores a Hugging Face token, sealed: one's own, or, for administrators, the organisation's.",
    ),
    command::<RemoveHfToken>("remove_hf_token", MEMBER, "Removes a stored Hugging Face token."),
    command::<SetNotificationPreferences>(
        "set_notification_preferences",
        Access::Session,
        "Says which e-mails one wants.",
    ),
    command::<CreateWebhook>(
        "create_webhook",
        Access::Session,
        "Adds a receiver of one's own for signed webhooks.",
    ),
    command::<RemoveWebhook>("remove_webhook", Access::Session, "Removes a receiver of one's own."),
    command::<TestNotification>(
        "test_notification",
        Access::Session,
        "Sends a message to see whether it arrives.",
    ),
    command::<NoArguments>(
        "create_checkpoint",
        Access::Person(Role::Viewer),
        "Signs the log's present head.",
    )
    .gives::<Checkpoint>(),
    command::<VerifyLog>(
        "verify_log",
        Access::Person(Role::Admin),
        "Walks the log and names the first position that does not fit.",
    )
    .gives::<serde_json::Value>(),
    command::<CreateProject>(
        "create_project",
        MEMBER,
        "Creates a project, with its workloads and their scenarios.",
    ),
    command::<RenameProject>("rename_project", MEMBER, "Gives a project another display name."),
    command::<SetProjectVisibility>(
        "set_project_visibility",
        MEMBER,
        "Changes who may see a project and its results.",
    ),
    command::<ArchiveProject>(
        "archive_project",
        MEMBER,
        "Archives a project: no more work, its results stay.",
    ),
    command::<CreateWorkload>("create_workload", MEMBER, "Adds a workload with its scenarios to a project."),
    command::<RenameWorkload>("rename_workload", MEMBER, "Gives a workload another display name."),
    command::<ArchiveWorkload>(
        "archive_workload",
        MEMBER,
        "Archives a workload: no more runs of it, its results stay.",
    ),
    command::<CheckReadiness>(
        "check_readiness",
        Access::Person(Role::Viewer),
        "Says what stands in a workload's way, and the cures.",
    )
    .gives::<Readiness>(),
    command::<CheckReadiness>(
        "preview_commands",
        Access::Person(Role::Viewer),
        "Shows the command lines of every scenario.",
    )
    .gives::<preview_commands::Preview>(),
    command::<StartRun>("start_run", MEMBER, "Executes a workload on a server."),
    command::<CancelRun>("cancel_run", MEMBER, "Stops a run."),
    command::<CancelJob>("cancel_job", MEMBER, "Stops a job of a run."),
    command::<RetryJob>("retry_job", MEMBER, "Has a failed job tried again in its run."),
    command::<Rerun>("rerun", MEMBER, "Executes the scenarios of an earlier run again, as a run of its own."),
    command::<CloneWorkload>(
        "clone_workload",
        MEMBER,
        "Makes the same workload again, as a draft, with what is to be changed.",
    ),
    command::<CancelStaleJobs>(
        "cancel_stale_jobs",
        MEMBER,
        "Stops the runs that wait for servers from which nothing is heard.",
    ),
    command::<FlagResult>("flag_result", MEMBER, "Doubts a result; it is shown with a badge."),
    command::<ClearFlag>("clear_flag", MEMBER, "Clears a doubt, with a reason."),
    command::<IngestInferencexResults>(
        "ingest_inferencex_results",
        MEMBER,
        "Completes a job of InferenceX with its result.",
    ),
    command::<CreatePromptSource>(
        "create_prompt_source",
        MEMBER,
        "Uploads prompts, audio manifests or questions under a code.",
    ),
    command::<ImportResults>(
        "import_results",
        MEMBER,
        "Brings results of tools that ran elsewhere into a project.",
    ),
    command::<CreateServer>(
        "create_server_config_instance",
        Access::Person(Role::Admin),
        "Registers a server and makes its agent's one-time token.",
    ),
    command::<SetServerMaintenance>(
        "set_server_maintenance",
        Access::Person(Role::Admin),
        "Begins or ends a server's maintenance: it gets no new jobs meanwhile.",
    ),
    command::<RemoveServer>(
        "remove_server",
        Access::Person(Role::Admin),
        "Removes a server without work; its agent is let in no more.",
    ),
    command::<RegisterModel>(
        "register_model",
        Access::Person(Role::Admin),
        "Adds a model to the organisation's catalogue, or changes it.",
    ),
    command::<RegisterFrameworkVersion>(
        "register_framework_version",
        Access::Person(Role::Admin),
        "Adds a framework version to the organisation's catalogue, or changes it.",
    ),
    command::<RegisterAccelerator>(
        "register_accelerator",
        Access::Person(Role::Admin),
        "Adds an accelerator type to the organisation's catalogue, or changes it.",
    ),
    command::<RegisterServerConfig>(
        "register_server_config",
        Access::Person(Role::Admin),
        "Adds a server configuration to the organisation's catalogue, or changes it.",
    ),
    command::<CreateEngineArgsSet>(
        "create_engine_args_set",
        MEMBER,
        "Makes a set of engine arguments for the organisation.",
    ),
    command::<CloneEngineArgsSet>("clone_engine_args_set", MEMBER, "Makes a set like another, with changes."),
    command::<UpdateEngineArgsSet>(
        "update_engine_args_set",
        MEMBER,
        "Changes a set of the organisation; workloads keep the version they were made with.",
    ),
    command::<ArchiveEngineArgsSet>(
        "archive_engine_args_set",
        MEMBER,
        "Archives a set of the organisation: no new workload may name it.",
    ),
    command::<DiffEngineArgsSets>(
        "diff_engine_args_sets",
        Access::Person(Role::Viewer),
        "Says how two sets differ, or one from the framework's defaults.",
    )
    .gives::<EngineArgsSetsDiff>(),
    command::<ApproveDangerousArgs>(
        "approve_dangerous_args",
        Access::Person(Role::Admin),
        "Approves arguments that load code or read paths, for one program and one model.",
    ),
    command::<RevokeDangerousArgs>(
        "revoke_dangerous_args",
        Access::Person(Role::Admin),
        "Takes such approvals back.",
    ),
    command::<SaveToolArgsSet>(
        "save_tool_args_set",
        MEMBER,
        "Keeps arguments of a tool under a name for the organisation.",
    ),
    command::<RemoveToolArgsSet>(
        "remove_tool_args_set",
        MEMBER,
        "Removes such a set; workloads keep theirs.",
    ),
    command::<SaveView>(
        "save_view",
        Access::Person(Role::Viewer),
        "Keeps an address of the page under a name.",
    ),
    command::<RemoveView>("remove_view", Access::Person(Role::Viewer), "Removes a saved view."),
];

/// `POST /api/rpc/verify_log`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VerifyLog {
    /// The first position to look at; 1 by default.
    #[serde(default)]
    pub(super) p_from: Option<i64>,
    /// The last position to look at; the head by default.
    #[serde(default)]
    pub(super) p_to: Option<i64>,
}

/// A command without arguments: `{}`.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct NoArguments {}
