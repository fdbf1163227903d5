//! What a node's own routes show of the way to a pod, from `/proc/net/route`: the main table, by
//! IPv4. Pure.

use std::net::Ipv4Addr;

/// `/proc/net/route` of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteTable(Vec<Route>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Route {
    network: u32,
    mask: u32,
    metric: u32,
    gateway: Ipv4Addr,
    /// `None`: blackhole, unreachable or prohibit.
    device: Option<String>,
}

/// Where packets to an address go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Nowhere: no route matches.
    Missing,
    /// Nowhere: the route that matches is unreachable.
    Blocked {
        /// The route's.
        network: String,
    },
    /// To the default gateway, which may know the address or not.
    Default {
        /// That gateway.
        gateway: Ipv4Addr,
    },
    /// By a route of their own.
    Known {
        /// The route's.
        network: String,
        /// Through which interface.
        device: String,
    },
}

impl RouteTable {
    /// `None` for what is no such file.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        lines.next().filter(|head| head.starts_with("Iface"))?;
        lines.map(Route::parse).collect::<Option<_>>().map(Self)
    }

    /// By the longest prefix, and among those of a length by the lowest metric.
    pub(crate) fn way_to(&self, address: Ipv4Addr) -> Way {
        let matching = self.0.iter();
        let matching = matching.filter(|route| u32::from(address) & route.mask == route.network);
        let Some(route) = matching.min_by_key(|route| (!route.mask, route.metric)) else {
            return Way::Missing;
        };
        let network = format!(
            "{}/{}",
            Ipv4Addr::from(route.network),
            route.mask.count_ones()
        );
        match &route.device {
            None => Way::Blocked { network },
            Some(_) if route.mask == 0 => Way::Default {
                gateway: route.gateway,
            },
            Some(device) => Way::Known {
                network,
                device: device.clone(),
            },
        }
    }
}

impl Route {
    /// Iface, Destination, Gateway, Flags, RefCnt, Use, Metric, Mask, ...
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Numbers of the network's byte order, printed as little-endian machines read them.
        let address = |at: usize| {
            let number = u32::from_str_radix(fields.get(at)?, 16).ok()?;
            Some(number.swap_bytes())
        };
        let device = (*fields.first()?).to_owned();
        Some(Self {
            network: address(1)?,
            gateway: Ipv4Addr::from(address(2)?),
            metric: fields.get(6)?.parse().ok()?,
            mask: address(7)?,
            device: Some(device).filter(|device| device != "*"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.12 prints it.
    const TABLE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t010012C6\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth0\t000012C6\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        *\t000213C6\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        eth0\t000213C6\t020012C6\t0003\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
        *\t000313C6\t00000000\t0201\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        cni0\t000113C6\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";

    #[test]
    fn the_kernels_choice_is_ours() {
        let table = RouteTable::parse(TABLE).unwrap();
        let way = |address: &str| table.way_to(address.parse().unwrap());
        let blocked = |network: &str| Way::Blocked {
            network: network.to_owned(),
        };
        let known = |network: &str, device: &str| Way::Known {
            network: network.to_owned(),
            device: device.to_owned(),
        };
        assert_eq!(way("198.19.2.5"), blocked("198.19.2.0/24"));
        assert_eq!(way("198.19.3.5"), blocked("198.19.3.0/24"));
        assert_eq!(way("198.19.1.7"), known("198.19.1.0/24", "cni0"));
        assert_eq!(way("198.18.0.2"), known("198.18.0.0/24", "eth0"));
        let gateway = "198.18.0.1".parse().unwrap();
        assert_eq!(way("198.19.9.1"), Way::Default { gateway });
        let without_default: String = TABLE
            .lines()
            .filter(|line| !line.contains("010012C6"))
            .map(|line| format!("{line}\n"))
            .collect();
        let table = RouteTable::parse(&without_default).unwrap();
        assert_eq!(table.way_to("198.19.9.1".parse().unwrap()), Way::Missing);
    }

    #[test]
    fn what_is_no_table_shows_nothing() {
        assert_eq!(RouteTable::parse(""), None);
        assert_eq!(RouteTable::parse("cat: not found"), None);
        assert_eq!(RouteTable::parse(&TABLE[..TABLE.len() - 30]), None);
    }
}
