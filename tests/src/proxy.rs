//! A way between the browser and the control plane that can be cut, or made to refuse: one request a connection, so
//! that each is seen.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What the way does with requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Lets them through.
    Open,
    /// Breaks every connection, and takes no other.
    Cut,
    /// Answers requests whose path begins so with this status, after breaking what is open.
    Refuse {
        /// How the path begins.
        path: &'static str,
        /// The HTTP status.
        status: u16,
        /// Further header lines, each with its end of line.
        headers: &'static str,
    },
}

/// The way.
pub struct Proxy {
    /// Its address, as the browser knows it.
    pub url: String,
    mode: watch::Sender<Mode>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// A way to what serves at `url`.
    pub async fn to(url: &str) -> Self {
        let target = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (mode, modes) = watch::channel(Mode::Open);
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, modes, noted) = (target.clone(), modes.clone(), Arc::clone(&noted));
                tokio::spawn(async move {
                    let _ = pass(client, &target, modes, &noted).await;
                });
            }
        });
        Self { url, mode, seen }
    }

    /// Changes what it does; connections that are open break.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// How many requests came whose path begins so.
    pub fn count(&self, path: &str) -> usize {
        self.seen.lock().expect("not poisoned").iter().filter(|p| p.starts_with(path)).count()
    }
}

async fn pass(
    mut client: TcpStream,
    target: &str,
    mut modes: watch::Receiver<Mode>,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mode = modes.borrow_and_update().clone();
    if mode == Mode::Cut {
        return Ok(()); // Dropped: the browser sees a reset.
    }
    let mut head = Vec::new();
    let end = loop {
        if let Some(end) = head.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        let mut piece = [0; 4096];
        let read = client.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        head.extend_from_slice(&piece[..read]);
    };
    let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock().expect("not poisoned").push(path.clone());
    if let Mode::Refuse { path: refused, status, headers } = mode
        && path.starts_with(refused)
    {
        let body = r#"{"code":"refused_by_test","message":"refused","details":null,"hint":"wait"}"#;
        let answer = format!(
            "HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n{body}",
            body.len()
        );
        client.write_all(answer.as_bytes()).await?;
        return client.shutdown().await;
    }
    let mut server = TcpStream::connect(target).await?;
    // One request a connection: the server closes it after its answer.
    let lines = String::from_utf8_lossy(&head[..end]).into_owned();
    let mut kept: Vec<&str> =
        lines.split("\r\n").filter(|l| !l.to_ascii_lowercase().starts_with("connection:")).collect();
    kept.push("connection: close");
    server.write_all(format!("{}\r\n\r\n", kept.join("\r\n")).as_bytes()).await?;
    server.write_all(&head[end + 4..]).await?;
    tokio::select! {
        done = copy_bidirectional(&mut client, &mut server) => done.map(|_| ()),
        _ = modes.changed() => Ok(()),
    }
}
