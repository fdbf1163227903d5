//! Subnets, by address and prefix.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IP subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subnet {
    first: IpAddr,
    prefix_bits: u8,
}

/// Why a text is no subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubnetError(String);

impl fmt::Display for SubnetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no subnet; write 10.20.0.0/16 or fd00::/64",
            self.0
        )
    }
}

impl std::error::Error for SubnetError {}

impl Subnet {
    /// Whether the prefix is the whole address.
    #[must_use]
    pub fn is_one_address(&self) -> bool {
        let longest = if self.first.is_ipv4() { 32 } else { 128 };
        self.prefix_bits >= longest
    }

    /// The subnet of an address; a prefix longer than the address is cut to it.
    #[must_use]
    pub fn of(address: IpAddr, prefix_bits: u8) -> Self {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = prefix_bits.min(longest);
        let first = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX
                    .checked_shl(32 - u32::from(prefix_bits))
                    .unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(prefix_bits))
                    .unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
            }
        };
        Self { first, prefix_bits }
    }

    /// Whether an address is in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.first.is_ipv4() && Self::of(address, self.prefix_bits) == *self
    }
}

impl FromStr for Subnet {
    type Err = SubnetError;

    fn from_str(text: &str) -> Result<Self, SubnetError> {
        let wrong = || SubnetError(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.trim().parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        match prefix <= longest {
            true => Ok(Self::of(address, prefix)),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix_bits)
    }
}
