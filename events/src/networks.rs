//! Which addresses may be connected to where people, or answers of strangers, name them.
//!
//! One rule for the control plane, the agent and the load generators: what is public may be asked; this host, the
//! networks around it and a cloud's metadata service only where somebody in charge of the host said so.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::LazyLock;

use ipnet::IpNet;

/// The variable of the environment that a load generator takes its networks from.
pub const NETWORKS_ENV: &str = "METRUM_ALLOWED_NETWORKS";

/// Not public, by IANA's special-purpose registries for IPv4 (RFC 6890 and its successors) and IPv6.
const RESERVED: &[&str] = &[
    "0.0.0.0/8",       // this network
    "10.0.0.0/8",      // private
    "100.64.0.0/10",   // shared by carriers
    "127.0.0.0/8",     // this host
    "169.254.0.0/16",  // link-local, clouds' metadata services among them
    "172.16.0.0/12",   // private
    "192.0.0.0/24",    // protocol assignments
    "192.0.2.0/24",    // documentation
    "192.88.99.0/24",  // 6to4 relays
    "192.168.0.0/16",  // private
    "198.18.0.0/15",   // benchmarks of network devices
    "198.51.100.0/24", // documentation
    "203.0.113.0/24",  // documentation
    "224.0.0.0/4",     // multicast
    "240.0.0.0/4",     // reserved, broadcast
    "::/96",           // unspecified, this host, IPv4-compatible
    "64:ff9b::/96",    // NAT64: stands for an IPv4 address, a private one too
    "64:ff9b:1::/48",  // local NAT64
    "100::/64",        // discard
    "2001::/23",       // protocol assignments, Teredo
    "2001:db8::/32",   // documentation
    "2002::/16",       // 6to4: stands for an IPv4 address
    "3fff::/20",       // documentation
    "5f00::/16",       // segment routing
    "fc00::/7",        // unique local
    "fe80::/10",       // link-local
    "fec0::/10",       // site-local
    "ff00::/8",        // multicast
];

static RANGES: LazyLock<Vec<IpNet>> =
    LazyLock::new(|| RESERVED.iter().map(|range| range.parse().expect("the ranges are our own")).collect());

/// Whether an address is somewhere in the public internet.
pub fn is_public(address: IpAddr) -> bool {
    // ::ffff:10.0.0.1 is 10.0.0.1.
    let address = address.to_canonical();
    !RANGES.iter().any(|range| range.contains(&address))
}

/// The public internet, and what was named beside it: whole ranges, and single services.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks {
    ranges: Vec<IpNet>,
    services: Vec<SocketAddr>,
}

impl Networks {
    /// The public internet and these ranges.
    pub fn of(ranges: impl IntoIterator<Item = IpNet>) -> Self {
        Self { ranges: ranges.into_iter().collect(), services: Vec::new() }
    }

    /// One service more: its address at its port, and no other port of the same host.
    #[must_use]
    pub fn with_service(mut self, service: SocketAddr) -> Self {
        self.services.push(service);
        self
    }

    /// Whether a range that was named holds this address.
    pub fn names(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.ranges.iter().any(|range| range.contains(&address))
    }

    /// Whether connections may go to this address, whatever the port.
    pub fn allows(&self, address: IpAddr) -> bool {
        is_public(address) || self.names(address)
    }

    /// Whether connections may go to this address at this port.
    pub fn allows_service(&self, service: SocketAddr) -> bool {
        let same = |own: &SocketAddr| {
            own.ip().to_canonical() == service.ip().to_canonical() && own.port() == service.port()
        };
        self.allows(service.ip()) || self.services.iter().any(same)
    }
}

/// What is wrong with a list of networks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a range such as 10.20.0.0/16 nor a service such as 127.0.0.1:8000")]
pub struct BadNetwork(String);

impl FromStr for Networks {
    type Err = BadNetwork;

    /// Ranges and services with commas between; nothing at all is the public internet alone.
    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let mut networks = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match (part.parse(), part.parse()) {
                (Ok(range), _) => networks.ranges.push(range),
                (_, Ok(service)) => networks.services.push(service),
                _ => return Err(BadNetwork(part.chars().take(100).collect())),
            }
        }
        Ok(networks)
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.ranges.iter().map(ToString::to_string);
        let parts: Vec<String> = ranges.chain(self.services.iter().map(ToString::to_string)).collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(text: &str) -> Networks {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_allows_what_it_holds_and_nothing_beside() {
        let networks = networks("10.20.0.0/16");
        assert!(networks.allows("10.20.3.4".parse().unwrap()));
        assert!(networks.allows("::ffff:10.20.3.4".parse().unwrap()));
        assert!(networks.allows("93.184.216.34".parse().unwrap()));
        for other in ["10.21.0.1", "169.254.169.254", "127.0.0.1", "::1", "fd00::1", "64:ff9b::a14:304"] {
            assert!(!networks.allows(other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn a_service_is_one_port_of_its_host() {
        let networks = networks("127.0.0.1:8001, [::1]:8002");
        assert!(networks.allows_service("127.0.0.1:8001".parse().unwrap()));
        assert!(networks.allows_service("[::ffff:127.0.0.1]:8001".parse().unwrap()));
        assert!(networks.allows_service("[::1]:8002".parse().unwrap()));
        assert!(!networks.allows_service("127.0.0.1:8002".parse().unwrap()));
        assert!(!networks.allows("127.0.0.1".parse().unwrap()), "the host as a whole");
    }

    #[test]
    fn networks_are_read_as_they_are_written() {
        for text in ["", "10.0.0.0/8", "10.0.0.0/8,fd00::/8,127.0.0.1:8001,[::1]:8002"] {
            assert_eq!(networks(text).to_string(), text);
        }
        for bad in ["10.0.0.1", "localhost", "10.0.0.0/33", "127.0.0.1:x"] {
            assert!(bad.parse::<Networks>().is_err(), "{bad}");
        }
    }
}
