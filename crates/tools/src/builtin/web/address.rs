//! Which addresses are public. Every address that may not be globally reachable counts as
//! private: this machine, its networks, cloud metadata services, and unassigned ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether this address is globally reachable, so that a request to it reveals nothing that is
/// only meant for this machine or its network.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_private = match (a, b, c) {
        // This network, private networks, loopback, link-local with the metadata of most clouds.
        (0 | 10 | 127, _, _) | (172, 16..=31, _) | (192, 168, _) | (169, 254, _) => true,
        // Carrier-grade NAT.
        (100, 64..=127, _) => true,
        // For protocols (one cloud has its metadata there), documentation, old relays, benchmarks.
        (192, 0, 0 | 2) | (198, 51, 100) | (203, 0, 113) | (192, 88, 99) | (198, 18 | 19, _) => {
            true
        }
        // Multicast, reserved, broadcast.
        (224..=255, _, _) => true,
        _ => false,
    };
    // In a public range, but it is the host of an Azure machine.
    const AZURE_HOST: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
    !is_private && address != AZURE_HOST
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let last_four = || {
        let [g, h] = [g.to_be_bytes(), h.to_be_bytes()];
        Ipv4Addr::new(g[0], g[1], h[0], h[1])
    };
    match (a, b) {
        // An IPv4-mapped address.
        (0, 0) if [c, d, e] == [0, 0, 0] && f == 0xffff => is_public_v4(last_four()),
        // The well-known NAT64 prefix.
        (0x64, 0xff9b) if [c, d, e, f] == [0, 0, 0, 0] => is_public_v4(last_four()),
        // For protocols, including tunnels that contain an IPv4 address; documentation; old tunnels.
        (0x2001, 0..=0x01ff | 0x0db8) | (0x2002, _) | (0x3fff, 0..=0x0fff) => false,
        // The global unicast range. Everything else is local, multicast or unassigned.
        _ => (0x2000..=0x3fff).contains(&a),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::is_public;

    #[test]
    fn addresses_of_this_machine_its_networks_and_its_cloud_are_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            let parsed: IpAddr = address.parse().unwrap();
            assert!(!is_public(parsed), "{address}");
        }
    }

    #[test]
    fn addresses_on_the_internet_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            let parsed: IpAddr = address.parse().unwrap();
            assert!(is_public(parsed), "{address}");
        }
    }
}
