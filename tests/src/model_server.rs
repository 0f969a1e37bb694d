//! llama.cpp's own server with the real small model, started by the test itself: an endpoint that runs already.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::binaries::{cache, gemma, repository};
use crate::eventually;
use crate::process::Process;

/// A model server that nobody but the test started.
pub struct ModelServer {
    process: Process,
    /// Where it serves.
    pub url: String,
}

impl ModelServer {
    /// Starts it and waits until it answers. Its log goes to `log`.
    pub async fn start(log: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port();
        let mut command = Command::new(repository().join("scripts/llama-server"));
        command
            .env("BENCHTRAIL_CACHE", cache())
            .arg("--model")
            .arg(gemma())
            .args(["--alias", "google/gemma-3-270m", "--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["--ctx-size", "2048", "--parallel", "2"]);
        let process = Process::start("llama-server", command, log);
        let mut server = Self { process, url: format!("http://127.0.0.1:{port}") };
        let health = format!("{}/health", server.url);
        let process = std::sync::Mutex::new(&mut server.process);
        eventually("the model server to be ready", || async {
            process.lock().expect("not poisoned").assert_running();
            crate::api::http().get(&health).send().await.ok()?.status().is_success().then_some(())
        })
        .await;
        server
    }

    /// Fails the test when it has ended.
    pub fn assert_running(&mut self) {
        self.process.assert_running();
    }
}
