//! What encapsulates packets on their way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One encapsulation.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
pub struct Tunnel {
    /// Which.
    pub kind: TunnelKind,
    /// Whether its outer packets are IPv6; else IPv4. Nothing for [`TunnelKind::Other`].
    pub outer_ipv6: bool,
    /// Bytes beyond the minimum: Geneve's options, GRE's key, checksum and sequence number, UDP
    /// around ESP. For [`TunnelKind::Other`]: all it adds.
    pub extra_bytes: u32,
}

/// A kind of encapsulation.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum TunnelKind {
    /// Ethernet in UDP (RFC 7348).
    Vxlan,
    /// Ethernet in UDP (RFC 8926).
    Geneve,
    /// IP in GRE (RFC 2784, RFC 2890).
    Gre,
    /// Ethernet in GRE.
    Gretap,
    /// IP in IP (RFC 2003, RFC 2473).
    Ipip,
    /// IP in UDP, encrypted.
    Wireguard,
    /// IP in ESP, tunnel mode (RFC 4303) with AES-GCM (RFC 4106).
    Ipsec,
    /// Some bytes.
    Other,
}

impl TunnelKind {
    /// All of them that have a name.
    pub const NAMED: [Self; 7] = [
        Self::Vxlan,
        Self::Geneve,
        Self::Gre,
        Self::Gretap,
        Self::Ipip,
        Self::Wireguard,
        Self::Ipsec,
    ];

    /// The word used on the command line and in reports, mostly the kernel's own for the link.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::Gre => "gre",
            Self::Gretap => "gretap",
            Self::Ipip => "ipip",
            Self::Wireguard => "wireguard",
            Self::Ipsec => "ipsec",
            Self::Other => "encapsulation",
        }
    }
}
