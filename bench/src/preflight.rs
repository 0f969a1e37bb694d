//! Is the clock right? Asked of four public time servers before a run (RFC 5905, client mode).

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::{UdpSocket, lookup_host};

/// The servers asked.
pub const NTP_SERVERS: [&str; 4] =
    ["pool.ntp.org", "time.google.com", "time.cloudflare.com", "time.apple.com"];

/// The largest offset with which a run may start.
pub const MAX_OFFSET: Duration = Duration::from_secs(1);

const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Seconds from 1900, where NTP begins, to 1970.
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// What the time servers said.
#[derive(Clone, Debug, PartialEq)]
pub enum Clock {
    /// Checked: the offset in milliseconds, positive when this clock is behind.
    Offset(f64),
    /// No server answered.
    Unreachable,
}

/// Asks all of `servers` (`HOST` or `HOST:PORT`; [`NTP_SERVERS`] where none are given) at once; the median answer counts.
pub async fn check_clock(servers: &[String]) -> Clock {
    let with_port = |server: &str| match server.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => server.to_owned(),
        _ => format!("{server}:123"),
    };
    let servers: Vec<String> = match servers.is_empty() {
        true => NTP_SERVERS.map(with_port).to_vec(),
        false => servers.iter().map(|server| with_port(server)).collect(),
    };
    let asked = servers.into_iter().map(ask);
    let mut offsets: Vec<f64> = futures::future::join_all(asked).await.into_iter().flatten().collect();
    if offsets.is_empty() {
        return Clock::Unreachable;
    }
    offsets.sort_by(f64::total_cmp);
    Clock::Offset(offsets[(offsets.len() - 1) / 2])
}

async fn ask(server: String) -> Option<f64> {
    tokio::time::timeout(ANSWER_LIMIT, async {
        let address = lookup_host(server).await.ok()?.find(SocketAddr::is_ipv4)?;
        let socket = UdpSocket::bind("0.0.0.0:0").await.ok()?;
        socket.connect(address).await.ok()?;
        let mut packet = [0u8; 48];
        packet[0] = 0b00_100_011; // version 4, client
        let sent = unix_seconds();
        packet[40..48].copy_from_slice(&to_ntp(sent).to_be_bytes());
        let expected: [u8; 8] = packet[40..48].try_into().ok()?;
        socket.send(&packet).await.ok()?;
        let mut answer = [0u8; 48];
        let length = socket.recv(&mut answer).await.ok()?;
        offset_ms(&answer[..length], expected, sent, unix_seconds())
    })
    .await
    .ok()
    .flatten()
}

/// The offset an answer implies, if it is a valid answer to our question.
fn offset_ms(answer: &[u8], expected_origin: [u8; 8], sent: f64, received: f64) -> Option<f64> {
    let stratum = *answer.get(1)?;
    if answer.len() < 48 || answer[24..32] != expected_origin || stratum == 0 || stratum > 15 {
        return None;
    }
    let at = |from: usize| Some(from_ntp(u64::from_be_bytes(answer.get(from..from + 8)?.try_into().ok()?)));
    let (arrived, left) = (at(32)?, at(40)?);
    Some(((arrived - sent) + (left - received)) / 2.0 * 1e3)
}

fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn to_ntp(unix: f64) -> u64 {
    let seconds = unix.floor();
    ((seconds as u64 + NTP_TO_UNIX) << 32) | ((unix - seconds) * 4_294_967_296.0) as u64
}

fn from_ntp(stamp: u64) -> f64 {
    (stamp >> 32) as f64 - NTP_TO_UNIX as f64 + (stamp & 0xFFFF_FFFF) as f64 / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_half_the_sum_of_both_ways() {
        let mut answer = [0u8; 48];
        answer[1] = 2;
        answer[32..40].copy_from_slice(&to_ntp(1_800_000_005.1).to_be_bytes());
        answer[40..48].copy_from_slice(&to_ntp(1_800_000_005.1).to_be_bytes());
        let found = offset_ms(&answer, [0; 8], 1_800_000_000.0, 1_800_000_000.2).unwrap();
        assert!((found - 5000.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn an_answer_to_another_question_is_ignored() {
        let mut answer = [0u8; 48];
        answer[1] = 2;
        assert_eq!(offset_ms(&answer, [1; 8], 0.0, 0.0), None);
        assert_eq!(offset_ms(&answer[..10], [0; 8], 0.0, 0.0), None);
    }
}
