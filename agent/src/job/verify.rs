//! Whether a job really comes from the control plane this agent enrolled with.

use ed25519_dalek::{Signature, VerifyingKey};
use events::keys::ServerKey;
use events::report::{AssignedJob, SignedJob};
use events::timestamp::Timestamp;

/// Why a job is not carried out, before anything in it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotVerified {
    /// It was signed by another key, or changed on the way.
    #[error(
        "the job's signature does not fit the key pinned at enrolment: it was changed on the way, or the control plane has a new key (then enrol this host anew)"
    )]
    Signature,
    /// It is signed, but not a job.
    #[error("the job is not understood: {0}. Are agent and control plane of the same version?")]
    Malformed(String),
    /// It is another host's.
    #[error("the job is for server {theirs}, this agent stands for {ours}")]
    OtherServer {
        /// The job's server.
        theirs: String,
        /// This agent's server.
        ours: String,
    },
    /// It came too late.
    #[error("the job had to be started before {expires_at}; it is {now} now. Check this host's clock")]
    Expired {
        /// When it expired.
        expires_at: Timestamp,
        /// This host's clock.
        now: Timestamp,
    },
}

/// Checks the signature over the job's exact bytes, then whom and when it is for.
///
/// # Errors
/// [`NotVerified`].
pub fn verify(
    signed: &SignedJob,
    key: &VerifyingKey,
    server: &ServerKey,
    now: Timestamp,
) -> Result<AssignedJob, NotVerified> {
    let signature: [u8; 64] = hex::decode(&signed.signature)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(NotVerified::Signature)?;
    key.verify_strict(signed.payload.as_bytes(), &Signature::from_bytes(&signature))
        .map_err(|_| NotVerified::Signature)?;
    let job: AssignedJob =
        serde_json::from_str(&signed.payload).map_err(|e| NotVerified::Malformed(e.to_string()))?;
    if job.server != *server {
        return Err(NotVerified::OtherServer {
            theirs: job.server.stream().to_string(),
            ours: server.stream().to_string(),
        });
    }
    if job.expires_at < now {
        return Err(NotVerified::Expired { expires_at: job.expires_at, now });
    }
    Ok(job)
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer, SigningKey};
    use serde_json::{Value, json};

    use super::*;

    fn job() -> Value {
        json!({
            "job": {"org": "acme", "project": "p", "workload": "w", "run": 1, "scenario": "c1"},
            "attempt": 1,
            "server": {"org": "acme", "config": "cpu", "hostname": "h"},
            "claimed_at": "2026-01-01T00:00:00.000000Z",
            "expires_at": "2026-01-01T00:10:00.000000Z",
            "workload": {"model_code": "m", "framework_code": "openai", "framework_version": "1", "tool_code": "metrumbench-llm"},
            "scenario": {"concurrency": 1, "num_requests": 1, "streaming": true},
            "commands": {"serve_argv": [], "tool_argv": ["metrumbench-llm"], "readiness_path": "", "readiness_timeout_s": 1, "job_timeout_s": 1, "templates": []},
            "sample_interval_ms": 1000,
        })
    }

    fn sign(payload: &str, key: &SigningKey) -> SignedJob {
        SignedJob {
            payload: payload.to_owned(),
            signature: hex::encode(key.sign(payload.as_bytes()).to_bytes()),
        }
    }

    fn check(signed: &SignedJob, hostname: &str, now: &str) -> Result<AssignedJob, NotVerified> {
        let server = ServerKey { org: "acme".into(), config: "cpu".into(), hostname: hostname.into() };
        let key = SigningKey::from_bytes(&[7; 32]).verifying_key();
        verify(signed, &key, &server, now.parse().unwrap())
    }

    const IN_TIME: &str = "2026-01-01T00:05:00Z";

    #[test]
    fn a_job_signed_by_the_pinned_key_for_this_server_is_taken() {
        let signed = sign(&job().to_string(), &SigningKey::from_bytes(&[7; 32]));
        assert_eq!(check(&signed, "h", IN_TIME).unwrap().attempt, 1);
    }

    #[test]
    fn a_job_signed_by_another_key_is_refused() {
        let signed = sign(&job().to_string(), &SigningKey::from_bytes(&[8; 32]));
        assert_eq!(check(&signed, "h", IN_TIME), Err(NotVerified::Signature));
    }

    #[test]
    fn a_job_changed_by_one_byte_is_refused() {
        let mut signed = sign(&job().to_string(), &SigningKey::from_bytes(&[7; 32]));
        signed.payload = signed.payload.replace("\"attempt\":1", "\"attempt\":2");
        assert_eq!(check(&signed, "h", IN_TIME), Err(NotVerified::Signature));
    }

    #[test]
    fn a_job_without_a_proper_signature_is_refused() {
        for signature in ["", "00", "zz"] {
            let signed = SignedJob { payload: job().to_string(), signature: signature.into() };
            assert_eq!(check(&signed, "h", IN_TIME), Err(NotVerified::Signature));
        }
    }

    #[test]
    fn another_servers_job_is_refused() {
        let signed = sign(&job().to_string(), &SigningKey::from_bytes(&[7; 32]));
        assert!(matches!(check(&signed, "other", IN_TIME), Err(NotVerified::OtherServer { .. })));
    }

    #[test]
    fn an_expired_job_is_refused() {
        let signed = sign(&job().to_string(), &SigningKey::from_bytes(&[7; 32]));
        let late = check(&signed, "h", "2026-01-01T00:10:01Z");
        assert!(matches!(late, Err(NotVerified::Expired { .. })));
    }

    #[test]
    fn what_is_signed_but_no_job_is_refused() {
        let signed = sign("{}", &SigningKey::from_bytes(&[7; 32]));
        assert!(matches!(check(&signed, "h", IN_TIME), Err(NotVerified::Malformed(_))));
    }
}
