//! Ports for data next to the listener's: UDP sockets and listeners of streams.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The range that firewalls let through, as one round uses it up.
#[derive(Debug)]
pub(crate) struct DataPorts {
    first: u16,
    last: u16,
    /// How many ports have been tried.
    tried: AtomicU32,
    /// None was free.
    ran_out: AtomicBool,
}

impl DataPorts {
    /// First and last port; (0, 0) for any.
    pub(crate) fn new((first, last): (u16, u16)) -> Self {
        Self {
            first,
            last,
            tried: AtomicU32::new(0),
            ran_out: AtomicBool::new(false),
        }
    }

    /// The port of the range that a chosen source port maps to. Without a range it is that one.
    pub(crate) fn within(&self, chosen: u16) -> u16 {
        match self.first {
            0 => chosen,
            first => first + (u32::from(chosen) % self.count()) as u16,
        }
    }

    fn count(&self) -> u32 {
        u32::from(self.last.saturating_sub(self.first)) + 1
    }

    /// Binds to the chosen port or to the next free one of the range; when there is none, to one of
    /// the kernel's choice. Returns whether it is of the range.
    pub(crate) fn bind(
        &self,
        address: IpAddr,
        chosen: Option<u16>,
        bind: impl Fn(SocketAddr) -> io::Result<()>,
    ) -> io::Result<bool> {
        if let Some(port) = chosen {
            match bind(SocketAddr::new(address, self.within(port))) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                outcome => return outcome.map(|()| true),
            }
        }
        let ports = self.count();
        if !self.ran_out.load(Ordering::Relaxed) {
            for _ in 0..ports {
                let offset = self.tried.fetch_add(1, Ordering::Relaxed) % ports;
                let port = self.first + offset as u16;
                match bind(SocketAddr::new(address, port)) {
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                    outcome => return outcome.map(|()| true),
                }
            }
            self.ran_out.store(true, Ordering::Relaxed);
        }
        bind(SocketAddr::new(address, 0)).map(|()| false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::net::Ipv4Addr;

    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn every_port_is_taken_once_then_the_kernel_chooses() {
        let ports = DataPorts::new((5401, 5403));
        let taken = RefCell::new(vec![5402]);
        let bind = |at: SocketAddr| {
            if at.port() > 0 && taken.borrow().contains(&at.port()) {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            taken.borrow_mut().push(at.port());
            Ok(())
        };
        let inside: Vec<bool> = (0..4)
            .map(|_| ports.bind(HOME, None, bind).unwrap())
            .collect();
        assert_eq!(inside, [true, true, false, false]);
        assert_eq!(*taken.borrow(), [5402, 5401, 5403, 0, 0]);
    }

    #[test]
    fn without_a_range_the_kernel_chooses() {
        let ports = DataPorts::new((0, 0));
        assert!(
            ports
                .bind(HOME, None, |at| {
                    assert_eq!(at.port(), 0);
                    Ok(())
                })
                .unwrap()
        );
    }

    #[test]
    fn other_errors_are_the_callers() {
        let ports = DataPorts::new((5401, 5403));
        let refused = ports.bind(HOME, None, |_| Err(io::ErrorKind::AddrNotAvailable.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
    }
}
