//! The commands about people: those that begin and end sessions answer with a cookie, the rest is dispatched like any.

use events::access::Role;
use events::api::{
    AcceptInvitation, ChangePassword, CommandReply, CreateApiToken, OidcStarted, RevokeApiToken, SignIn,
    StartOidcSignIn, SwitchOrganization,
};
use http::{HeaderValue, StatusCode};
use serde_json::json;

use super::{Answer, Call, done, reply};
use crate::api::edge;
use crate::api::error::Failure;
use crate::api::extract::RequestContext;
use crate::api::oidc::set_cookie as oidc_cookie;
use crate::auth::api_tokens::{self, Owner};
use crate::auth::sessions::{self, Ending, NewSession};
use crate::auth::{AuthError, Denied, Principal, oidc};
use crate::commands::invitations::Accepted;
use crate::commands::{account, hf_token, invitations, notifications, organizations};

/// Commands whose answers hold a session, which is never handed out twice. Ending one twice is fine.
pub(super) const UNREPEATED: &[&str] = &[
    "sign_in",
    "sign_out",
    "accept_invitation",
    "sign_out_everywhere",
    "switch_organization",
    "start_oidc_sign_in",
];

impl Call {
    /// Carries out a command about people; `None` where it is none.
    pub(super) async fn people(&self, name: &str) -> Option<Result<Answer, Failure>> {
        let (state, principal) = (&self.state, &self.principal);
        macro_rules! command {
            ($path:path) => {
                match self.args() {
                    Ok(args) => done($path(state, principal, args, self.meta()).await),
                    Err(failure) => Err(failure),
                }
            };
        }
        Some(match name {
            "sign_in" => self.sign_in().await,
            "sign_out" => self.sign_out().await,
            "sign_out_everywhere" => self.sign_out_everywhere().await,
            "start_oidc_sign_in" => self.start_oidc_sign_in().await,
            "switch_organization" => self.switch_organization().await,
            "accept_invitation" => self.accept_invitation().await,
            "change_password" => self.change_password().await,
            "create_api_token" => self.create_api_token().await,
            "revoke_api_token" => self.revoke_api_token().await,
            "describe_invitation" => match self.args() {
                Ok(args) => done(invitations::describe_invitation(state, args, self.meta()).await),
                Err(failure) => Err(failure),
            },
            "create_organization" => command!(organizations::create_organization),
            "rename_organization" => command!(organizations::rename_organization),
            "set_member_role" => command!(organizations::set_member_role),
            "remove_member" => command!(organizations::remove_member),
            "create_invitation" => command!(invitations::create_invitation),
            "revoke_invitation" => command!(invitations::revoke_invitation),
            "change_name" => command!(account::change_name),
            "set_hf_token" => command!(hf_token::set_hf_token),
            "remove_hf_token" => command!(hf_token::remove_hf_token),
            "set_notification_preferences" => command!(notifications::set_notification_preferences),
            "create_webhook" => command!(notifications::create_webhook),
            "remove_webhook" => command!(notifications::remove_webhook),
            "test_notification" => command!(notifications::test_notification),
            "revoke_session" => command!(account::revoke_session),
            _ => return None,
        })
    }

    fn cookie(&self) -> Option<String> {
        edge::cookie(&self.headers, sessions::COOKIE)
    }

    async fn sign_in(&self) -> Result<Answer, Failure> {
        let args: SignIn = self.args()?;
        let RequestContext { address, correlation_id, now } = self.context;
        let new = sessions::sign_in(&self.state, args, address, Some(correlation_id), now).await?;
        self.begun(&new).await
    }

    /// The answer of a sign-in. The browser gets a new session; an older one ends.
    async fn begun(&self, new: &NewSession) -> Result<Answer, Failure> {
        if let Some(old) = self.cookie() {
            sessions::replace(&self.state.pool, &old).await?;
        }
        let mut answer = Answer::of(&new.session)?;
        answer.cookie = Some(self.set_cookie(new.secret.reveal(), new.max_age_s));
        Ok(answer)
    }

    async fn sign_out(&self) -> Result<Answer, Failure> {
        self.no_args()?;
        if let (Some(cookie), Principal::User { .. }) = (self.cookie(), &self.principal) {
            let RequestContext { correlation_id, now, .. } = self.context;
            sessions::end(&self.state, &self.principal, Ending::This(cookie), Some(correlation_id), now)
                .await?;
        }
        let mut answer = Answer::of(&sessions::describe(&self.state, &Principal::Anonymous).await?)?;
        answer.cookie = Some(self.set_cookie("", 0));
        Ok(answer)
    }

    async fn sign_out_everywhere(&self) -> Result<Answer, Failure> {
        self.no_args()?;
        let reply = account::sign_out_everywhere(&self.state, &self.principal, self.meta()).await;
        let mut answer = done(reply)?;
        answer.cookie = Some(self.set_cookie("", 0));
        Ok(answer)
    }

    async fn switch_organization(&self) -> Result<Answer, Failure> {
        let args: SwitchOrganization = self.args()?;
        let cookie = self.cookie().ok_or(Denied::OnlySessions)?;
        let RequestContext { correlation_id, now, .. } = self.context;
        let correlation = Some(correlation_id);
        let session =
            sessions::switch(&self.state, &self.principal, &cookie, &args.p_org_code, correlation, now)
                .await?;
        Answer::of(&session)
    }

    async fn accept_invitation(&self) -> Result<Answer, Failure> {
        let args: AcceptInvitation = self.args()?;
        let (address, meta) = (self.context.address, self.meta());
        match invitations::accept_invitation(&self.state, &self.principal, args, address, meta).await? {
            Accepted::Joined(reply) => Answer::of(&reply),
            Accepted::SignedIn(new) => self.begun(&new).await,
        }
    }

    async fn start_oidc_sign_in(&self) -> Result<Answer, Failure> {
        let args: StartOidcSignIn = self.args()?;
        let begun =
            oidc::begin(&self.state, &args.p_return_to, args.p_invitation.as_deref(), self.context.now)
                .await?;
        let mut answer = Answer::of(&OidcStarted { authorization_url: begun.url.into() })?;
        answer.cookie = Some(oidc_cookie(&self.state.config, begun.cookie.reveal(), oidc::LIFETIME_S));
        Ok(answer)
    }

    async fn change_password(&self) -> Result<Answer, Failure> {
        let args: ChangePassword = self.args()?;
        let (address, meta) = (self.context.address, self.meta());
        done(account::change_password(&self.state, &self.principal, args, self.cookie(), address, meta).await)
    }

    fn set_cookie(&self, value: &str, max_age_s: i64) -> HeaderValue {
        sessions::set_cookie(&self.state.config, value, max_age_s)
    }

    /// A token that may only read changes nothing, its owner's tokens and saved views included.
    pub(super) fn not_read_only(&self) -> Result<(), Failure> {
        if !self.principal.is_read_only_token() {
            return Ok(());
        }
        Err(Failure::new(
            StatusCode::FORBIDDEN,
            "scope_missing",
            "a token with the scope `read` changes nothing",
            "sign in, or use a token with the scope `write`",
        ))
    }

    async fn create_api_token(&self) -> Result<Answer, Failure> {
        let args: CreateApiToken = self.args()?;
        self.not_read_only()?;
        let caller = self.principal.require(Role::Viewer)?;
        let user = caller.user.parse().map_err(|_| AuthError::NotFound("account"))?;
        let owner = Owner { user, org: caller.org, role: caller.role };
        let new = api_tokens::create(
            &self.state.log,
            &self.state.pool,
            &owner,
            &args,
            self.principal.actor(),
            Some(self.context.correlation_id),
            self.context.now,
        )
        .await?;
        let reply: CommandReply = reply(
            new.position,
            [("token_id", json!(new.id.to_string())), ("token", json!(new.secret.reveal()))],
        );
        Answer::of(&reply)
    }

    async fn revoke_api_token(&self) -> Result<Answer, Failure> {
        let args: RevokeApiToken = self.args()?;
        self.not_read_only()?;
        let correlation_id = Some(self.context.correlation_id);
        let now = self.context.now;
        let state = &self.state;
        let position =
            api_tokens::revoke(&state.log, &state.pool, &self.principal, &args, correlation_id, now).await?;
        Answer::of(&reply(position, [("token_id", json!(args.p_token_id))]))
    }
}
