//! Which addresses are public: all but those that IANA's special-purpose registries keep for something else.

use std::net::IpAddr;
use std::sync::LazyLock;

use ipnet::IpNet;

/// Not public, by the registries for IPv4 (RFC 6890 and its successors) and IPv6.
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
pub(super) fn is_public(address: IpAddr) -> bool {
    // ::ffff:10.0.0.1 is 10.0.0.1.
    let address = address.to_canonical();
    !RANGES.iter().any(|range| range.contains(&address))
}
