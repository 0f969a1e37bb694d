//! One thread that starts the plant's children, restarts those that die, and stops them all.
//!
//! The kernel sends a child its parent-death signal when the *thread* that started it ends, so all children are started
//! by this one thread, which lives as long as the plant.

use std::{
    fs::OpenOptions,
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::{
        prctl,
        signal::{Signal, kill},
    },
    unistd::{Gid, Pid, Uid, getppid},
};

const POLL: Duration = Duration::from_millis(50);
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// A child that ran this long was well: its next restart is quick again.
const WELL_AFTER: Duration = Duration::from_secs(30);

/// How to start one child, and how to end it.
#[derive(Clone, Debug)]
pub(super) struct ChildSpec {
    /// For messages.
    pub name: &'static str,
    pub program: PathBuf,
    pub args: Vec<String>,
    pub working_dir: PathBuf,
    /// Where its output goes, appended.
    pub log: PathBuf,
    /// The user to run as, when not our own.
    pub user: Option<(Uid, Gid)>,
    /// Sent when the plant stops, and by the kernel should this process die without stopping it.
    pub stop_signal: Signal,
}

impl ChildSpec {
    fn spawn(&self) -> io::Result<Child> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .current_dir(&self.working_dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // A group of its own: Ctrl-C in the terminal reaches us, and we stop the children in order.
            .process_group(0);
        if let Some((uid, gid)) = self.user {
            command.uid(uid.as_raw()).gid(gid.as_raw());
        }
        let parent = Pid::this();
        let signal = self.stop_signal;
        // SAFETY: runs in the forked child before exec; prctl and getppid are async-signal-safe and allocate nothing.
        // It runs after the change of user, which would reset the parent-death signal.
        unsafe {
            command.pre_exec(move || {
                prctl::set_pdeathsig(signal)?;
                if getppid() == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
            });
        }
        command.spawn()
    }
}

enum Order {
    Start(ChildSpec, Sender<io::Result<u32>>),
    Stop(Sender<()>),
}

/// A handle to the thread. Dropping it stops the children too, without waiting for them.
#[derive(Debug)]
pub(super) struct Supervisor {
    orders: Sender<Order>,
}

impl Supervisor {
    pub fn start() -> io::Result<Self> {
        let (orders, inbox) = channel();
        thread::Builder::new().name("plant".into()).spawn(move || supervise(&inbox))?;
        Ok(Self { orders })
    }

    /// Starts a child and keeps it running until the plant stops; returns its process id.
    pub async fn run(&self, spec: ChildSpec) -> io::Result<u32> {
        let (reply, answer) = channel();
        self.orders
            .send(Order::Start(spec, reply))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        tokio::task::spawn_blocking(move || answer.recv())
            .await
            .map_err(io::Error::other)?
            .map_err(io::Error::other)?
    }

    /// Stops every child, last started first, and returns when all have ended.
    pub async fn stop(self) {
        let (reply, done) = channel();
        if self.orders.send(Order::Stop(reply)).is_ok() {
            let _ = tokio::task::spawn_blocking(move || done.recv()).await;
        }
    }
}

struct Supervised {
    spec: ChildSpec,
    child: Option<Child>,
    started: Instant,
    backoff: Duration,
}

fn supervise(inbox: &Receiver<Order>) {
    let mut children: Vec<Supervised> = Vec::new();
    loop {
        match inbox.recv_timeout(POLL) {
            Ok(Order::Start(spec, reply)) => {
                let spawned = spec.spawn();
                let _ = reply.send(match &spawned {
                    Ok(child) => Ok(child.id()),
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                });
                if let Ok(child) = spawned {
                    children.push(Supervised {
                        spec,
                        child: Some(child),
                        started: Instant::now(),
                        backoff: FIRST_BACKOFF,
                    });
                }
            }
            Ok(Order::Stop(reply)) => {
                stop_all(children);
                let _ = reply.send(());
                return;
            }
            Err(RecvTimeoutError::Disconnected) => return stop_all(children),
            Err(RecvTimeoutError::Timeout) => children.iter_mut().for_each(restart_if_ended),
        }
    }
}

fn restart_if_ended(supervised: &mut Supervised) {
    let name = supervised.spec.name;
    if let Some(child) = &mut supervised.child {
        match child.try_wait() {
            Ok(None) => return,
            Ok(Some(status)) => {
                if supervised.started.elapsed() > WELL_AFTER {
                    supervised.backoff = FIRST_BACKOFF;
                }
                let cause = match (status.code(), status.signal()) {
                    (Some(code), _) => format!("status {code}"),
                    (None, signal) => format!("signal {}", signal.unwrap_or_default()),
                };
                tracing::warn!(service = name, cause, backoff = ?supervised.backoff, log = %supervised.spec.log.display(), "a service of the plant ended; starting it again");
            }
            Err(error) => {
                tracing::warn!(service = name, %error, "a service of the plant cannot be watched; starting it again")
            }
        }
        supervised.child = None;
        supervised.started = Instant::now();
        return;
    }
    if supervised.started.elapsed() < supervised.backoff {
        return;
    }
    supervised.backoff = (supervised.backoff * 2).min(LONGEST_BACKOFF);
    supervised.started = Instant::now();
    match supervised.spec.spawn() {
        Ok(child) => supervised.child = Some(child),
        Err(error) => {
            tracing::error!(service = name, %error, "a service of the plant could not be started again")
        }
    }
}

fn stop_all(children: Vec<Supervised>) {
    for mut supervised in children.into_iter().rev() {
        let Some(child) = &mut supervised.child else { continue };
        let pid = Pid::from_raw(child.id().cast_signed());
        let _ = kill(pid, supervised.spec.stop_signal);
        // PostgreSQL may have to write a large checkpoint first.
        let patience = Instant::now() + Duration::from_secs(30);
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() > patience {
                tracing::warn!(
                    service = supervised.spec.name,
                    "a service of the plant did not stop in time; killing it"
                );
                let _ = child.kill();
                let _ = child.wait();
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}
