//! When bytes arrived: asked of the kernel, which stamps each packet as it comes in.
//!
//! A load generator with hundreds of streams reads some of them late, and on a busy machine it is not running when
//! a token comes. Its own clock would then measure itself. The kernel's stamp does not depend on when it is read.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// A stamp older than this is not believed: the calendar clock was set meanwhile.
const OLDEST: Duration = Duration::from_secs(60);

/// Reads whose moment the kernel told, and others.
#[derive(Debug, Default)]
pub struct Stamps {
    /// Told by the kernel.
    pub kernel: AtomicU64,
    /// Taken by this process when it read.
    pub process: AtomicU64,
}

/// Of all connections of this process.
pub static STAMPS: Stamps = Stamps { kernel: AtomicU64::new(0), process: AtomicU64::new(0) };

impl Stamps {
    /// `kernel`, `process` or `mixed`; none before the first read.
    pub fn source(&self) -> Option<&'static str> {
        match (self.kernel.load(Relaxed), self.process.load(Relaxed)) {
            (0, 0) => None,
            (_, 0) => Some("kernel"),
            (0, _) => Some("process"),
            // The kernel needs a moment to begin stamping after the first socket asks for it.
            (kernel, process) if process * 100 < kernel => Some("kernel"),
            _ => Some("mixed"),
        }
    }
}

/// Has the kernel begin to stamp packets now, and go on for as long as this process lives: it does so only while some
/// socket wants it, and needs a moment to begin. The first answers of a run should not meet that moment.
pub fn begin_stamping() {
    static WANTED: OnceLock<Option<UdpSocket>> = OnceLock::new();
    WANTED.get_or_init(|| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).ok()?;
        Some(socket)
    });
}

/// Asks the kernel to stamp what arrives on `tcp`. False where it will not.
pub fn request_stamps(tcp: &TcpStream) -> bool {
    setsockopt(tcp, sockopt::ReceiveTimestampns, &true).is_ok()
}

/// Room for the control message that carries a stamp.
pub fn control_buffer() -> Vec<u8> {
    nix::cmsg_space!(nix::sys::time::TimeSpec)
}

/// Reads what has arrived, and when its last packet did.
pub fn poll_receive(
    tcp: &TcpStream,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
    control: &mut [u8],
) -> Poll<io::Result<(usize, Instant)>> {
    loop {
        ready!(tcp.poll_read_ready(cx))?;
        match tcp.try_io(Interest::READABLE, || receive(tcp, buffer, control)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Poll::Ready(Err(error)),
            Ok((count, at)) => {
                if count > 0 && count < buffer.len() {
                    // Nothing is left: say so without asking the kernel, which would answer "would block". What comes
                    // from now on makes a new event.
                    let nothing = || Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock));
                    let _ = tcp.try_io(Interest::READABLE, nothing);
                }
                return Poll::Ready(Ok((count, at)));
            }
        }
    }
}

fn receive(tcp: &TcpStream, buffer: &mut [u8], control: &mut [u8]) -> io::Result<(usize, Instant)> {
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(tcp.as_raw_fd(), &mut parts, Some(control), MsgFlags::empty())?;
    let now = Instant::now();
    let stamp = message.cmsgs().ok().and_then(|messages| {
        messages.into_iter().find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
            _ => None,
        })
    });
    let age = stamp.filter(|stamp| !stamp.is_zero()).and_then(|stamp| {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        clock.checked_sub(stamp).filter(|age| *age < OLDEST)
    });
    match age.and_then(|age| now.checked_sub(age)) {
        Some(at) => {
            STAMPS.kernel.fetch_add(1, Relaxed);
            Ok((message.bytes, at))
        }
        None => {
            STAMPS.process.fetch_add(1, Relaxed);
            Ok((message.bytes, now))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::io::Write;

    #[tokio::test]
    async fn a_late_read_still_knows_when_the_bytes_arrived() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let tcp = TcpStream::connect(address).await.unwrap();
        assert!(request_stamps(&tcp));
        let (mut peer, _) = listener.accept().unwrap();
        let (mut buffer, mut control) = (vec![0; 64], control_buffer());
        // The kernel begins to stamp a little after it is first asked to: warm it up.
        let began = Instant::now();
        let stamped = loop {
            let before = STAMPS.kernel.load(Relaxed);
            peer.write_all(b"x").unwrap();
            let sent = Instant::now();
            std::thread::sleep(Duration::from_millis(30)); // this process is busy elsewhere
            let (count, at) = poll_fn(|cx| poll_receive(&tcp, cx, &mut buffer, &mut control)).await.unwrap();
            assert_eq!(count, 1);
            if STAMPS.kernel.load(Relaxed) > before {
                break at.saturating_duration_since(sent);
            }
            assert!(began.elapsed() < Duration::from_secs(10), "the kernel stamps nothing");
        };
        assert!(stamped < Duration::from_millis(20), "{stamped:?} after it was sent");
    }
}
