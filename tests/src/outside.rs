//! What a control plane talks to outside: a mail server, an OpenID provider, a receiver of webhooks. Real ones, each in a
//! process or task of its own.

use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::binaries::{cache, repository};
use crate::eventually;
use crate::process::Process;

/// A process that prints, in lines.
struct Printing {
    process: Process,
    _folder: tempfile::TempDir,
}

impl Printing {
    fn start(name: &str, command: Command) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let process = Process::start(name, command, &folder.path().join("output"));
        Self { process, _folder: folder }
    }

    async fn line(&mut self, number: usize) -> String {
        let process = Mutex::new(&mut self.process);
        eventually("a line of the process", || async {
            let mut process = process.lock().expect("not poisoned");
            process.assert_running();
            let output = process.output();
            // A line that is not ended is not whole.
            let whole = output.rfind('\n').map(|end| &output[..end])?;
            whole.lines().nth(number).map(str::to_owned)
        })
        .await
    }
}

/// A mail server that takes everything.
pub struct MailServer {
    printing: Printing,
    /// For `BENCHTRAIL_SMTP_URL`.
    pub url: String,
}

impl MailServer {
    /// Starts it on a free port.
    pub async fn start() -> Self {
        let python = cache().join("venv-tools/bin/python");
        assert!(python.exists(), "run `scripts/setup test` first");
        let mut command = Command::new(python);
        command.arg(repository().join("server/tests/notify/mail_server.py"));
        let mut printing = Printing::start("the mail server", command);
        let port = printing.line(0).await;
        Self { printing, url: format!("smtp://127.0.0.1:{port}") }
    }

    /// The message of this number, from 0, once it came.
    pub async fn message(&mut self, number: usize) -> Value {
        serde_json::from_str(&self.printing.line(number + 1).await).expect("JSON")
    }
}

/// An OpenID provider that signs one person in, whoever comes.
pub struct OidcProvider {
    _printing: Printing,
    /// What it calls itself.
    pub issuer: String,
}

impl OidcProvider {
    /// Starts it for a control plane at `url`.
    pub async fn start(url: &str, email: &str) -> Self {
        let modules = cache().join("npm/oidc");
        assert!(modules.join("node_modules/oidc-provider").is_dir(), "run `scripts/setup test` first");
        let mut command = Command::new("node");
        command.arg(repository().join("server/tests/oidc/provider.mjs")).arg(modules).args([
            &format!("{url}/api/oidc/callback"),
            "userinfo",
            email,
        ]);
        let mut printing = Printing::start("the OpenID provider", command);
        // It may warn before it says its address.
        let mut issuer = String::new();
        for number in 0.. {
            issuer = printing.line(number).await;
            if issuer.starts_with("http://") {
                break;
            }
        }
        Self { _printing: printing, issuer }
    }
}

/// A receiver of webhooks, which keeps what it is sent.
pub struct Receiver {
    /// Where messages are posted.
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Receiver {
    /// Starts it on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/hook", listener.local_addr().expect("bound"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = Vec::new();
                let mut piece = [0; 4096];
                while !is_whole(&bytes) {
                    match stream.read(&mut piece).await {
                        Ok(n) if n > 0 => bytes.extend_from_slice(&piece[..n]),
                        _ => break,
                    }
                }
                kept.lock().expect("not poisoned").push(String::from_utf8_lossy(&bytes).into_owned());
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
            }
        });
        Self { url, requests, task }
    }

    /// The request of this number, from 0, as it was sent, once it came.
    pub async fn request(&self, number: usize) -> String {
        eventually("a webhook's message", || async {
            self.requests.lock().expect("not poisoned").get(number).cloned()
        })
        .await
    }
}

/// Whether a request's head and body are there.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok());
    body.len() >= length.unwrap_or(0)
}
