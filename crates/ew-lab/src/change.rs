//! Changes of a running lab: whatever differs from before is programmed anew, and nothing else.

use std::fs;
use std::process::Command;

use ew_model::topology::BackgroundSpec;
use ew_sys::namespace::{self, ProcessHandle};

use crate::batch;
use crate::control_group;
use crate::error::LabError;
use crate::fabric::{Fabric, Router};
use crate::intruder::{self, Intruder};
use crate::keeper;
use crate::lab::{Lab, POLITE_END_LIMIT};
use crate::shaping::{self, Step};
use crate::spec::{CONTROLLER, LabSpec};
use crate::wiring;

impl Lab {
    pub(crate) fn change_to(&mut self, changed: LabSpec) -> Result<(), LabError> {
        let before = std::mem::replace(&mut self.state.current, changed);
        if let Err(error) = self.program(&before) {
            self.state.current = before;
            return Err(error);
        }
        self.state.save(&self.dir)
    }

    fn program(&self, before: &LabSpec) -> Result<(), LabError> {
        let spec = &self.state.current;
        self.program_links(&Fabric::of(spec), &Fabric::of(before))?;
        for host in spec.hosts() {
            if before
                .find_host(&host.name)
                .is_none_or(|(_, was)| was != host)
            {
                self.program_host(&host.name, before)?;
            }
        }
        self.program_background(&before.topology.background)
    }

    fn program_links(&self, fabric: &Fabric, before: &Fabric) -> Result<(), LabError> {
        let spec = &self.state.current;
        let changed = fabric.links.iter().zip(&before.links);
        let mut changed = changed.filter(|(now, was)| now.path != was.path).peekable();
        if changed.peek().is_none() {
            return Ok(());
        }
        for (link, was) in changed {
            for router in [link.lower.router, link.upper.router] {
                let node = fabric.node(router);
                let rate = shaping::port_rate(spec, link, router, Step::Change);
                self.batch(&node, "tc", &rate)?;
                let loss = shaping::port_loss(link, router);
                if loss != shaping::port_loss(was, router) {
                    self.batch(&node, "tc", &loss)
                        .map_err(keeper::loss_refused)?;
                }
            }
        }
        self.program_routes(fabric)
    }

    /// Links that are plugged in or out, at first; the kernel forgets routes over those that are
    /// not.
    fn program_routes(&self, fabric: &Fabric) -> Result<(), LabError> {
        for router in &fabric.routers {
            let ends = wiring::link_ends(fabric, *router);
            self.batch(&fabric.node(*router), "ip", &ends)?;
        }
        for router in &fabric.routers {
            let routes = wiring::routes(fabric, *router);
            self.batch(&fabric.node(*router), "ip", &routes)?;
        }
        self.batch(CONTROLLER, "ip", &wiring::controller_routes(fabric))
    }

    fn program_host(&self, name: &str, before: &LabSpec) -> Result<(), LabError> {
        let unknown = || self.unknown_host(name);
        let spec = &self.state.current;
        let (rack, host) = spec.find_host(name).ok_or_else(unknown)?;
        let (_, was) = before.find_host(name).ok_or_else(unknown)?;
        let leaf = Fabric::of(spec).node(Router::Leaf(rack));
        let (nic, nic_was) = (&host.nic, &was.nic);
        if nic.mtu_bytes != nic_was.mtu_bytes || nic.tx_bits_per_sec != nic_was.tx_bits_per_sec {
            self.batch(name, "ip", &wiring::host_devices(host))?;
            self.batch(&leaf, "ip", &wiring::leaf_mtu(host))?;
        }
        let is_new_shaper = host.shaper != was.shaper;
        self.batch(name, "tc", &shaping::send_rate(host, is_new_shaper))?;
        let receive = shaping::receive_rate(spec, host, Step::Change);
        self.batch(&leaf, "tc", &receive)?;
        if nic.link_up != nic_was.link_up {
            let port = wiring::leaf_port(spec.addresses(), rack, host);
            self.batch(&leaf, "ip", &port)?;
        }
        if host.congestion_control != was.congestion_control {
            let route = wiring::host_route(spec.addresses(), rack, host);
            self.batch(name, "ip", &route)?;
        }
        let losses = |nic: &ew_model::topology::NicSpec| (nic.tx_loss_share, nic.rx_loss_share);
        if losses(nic) != losses(nic_was) {
            self.batch(&leaf, "tc", &shaping::host_loss(host))
                .map_err(keeper::loss_refused)?;
        }
        self.program_processes(name, before)
    }

    /// What of a change concerns a host's processes.
    fn program_processes(&self, name: &str, before: &LabSpec) -> Result<(), LabError> {
        let unknown = || self.unknown_host(name);
        let (_, host) = self.state.current.find_host(name).ok_or_else(unknown)?;
        let (_, was) = before.find_host(name).ok_or_else(unknown)?;
        if host.receive_buffer_bytes != was.receive_buffer_bytes {
            self.set_buffer(name, keeper::RECEIVE_BUFFER, host.receive_buffer_bytes)?;
        }
        if host.send_buffer_bytes != was.send_buffer_bytes {
            self.set_buffer(name, keeper::SEND_BUFFER, host.send_buffer_bytes)?;
        }
        if host.cpu_quota_cores != was.cpu_quota_cores {
            self.set_cpu_quota(name, host.cpu_quota_cores)?;
        }
        let controller = self.state.current.controller_address();
        let wanted = intruder::of_host(controller, host);
        if wanted != intruder::of_host(controller, was) {
            self.end_intruders(name);
            self.start_on_host(name, &wanted)?;
        }
        Ok(())
    }

    fn program_background(&self, before: &[BackgroundSpec]) -> Result<(), LabError> {
        let fabric = Fabric::of(&self.state.current);
        let background = &self.state.current.topology.background;
        if background == before {
            return Ok(());
        }
        for traffic in before.iter().filter(|was| !background.contains(was)) {
            // All that leaves the rack ends; what is to go on begins again.
            self.end_intruders(&fabric.node(Router::Leaf(traffic.from.index())));
        }
        self.start_background(&fabric, before)
    }

    pub(crate) fn start_intruders(&self) -> Result<(), LabError> {
        let spec = &self.state.current;
        for host in spec.hosts() {
            let wanted = intruder::of_host(spec.controller_address(), host);
            self.start_on_host(&host.name, &wanted)?;
        }
        self.start_background(&Fabric::of(spec), &[])
    }

    fn start_on_host(&self, host: &str, intruders: &[Intruder]) -> Result<(), LabError> {
        for intruder in intruders {
            intruder::check(*intruder)?;
            if let Intruder::Neighbour { to, .. } = *intruder {
                self.ensure_sink(CONTROLLER, to)?;
            }
            self.start_intruder(host, *intruder)?;
        }
        Ok(())
    }

    /// Starts the background traffic that does not run already.
    fn start_background(&self, fabric: &Fabric, before: &[BackgroundSpec]) -> Result<(), LabError> {
        for traffic in &self.state.current.topology.background {
            let leaf = |rack: usize| fabric.node(Router::Leaf(rack));
            let from = leaf(traffic.from.index());
            let runs = before.contains(traffic) && self.has(&from, |pid| !intruder::is_sink(pid));
            if runs {
                continue;
            }
            let intruder = intruder::of_background(fabric.addresses, traffic);
            let to = fabric.addresses.tenant(traffic.to.index());
            self.ensure_sink(&leaf(traffic.to.index()), to)?;
            self.start_intruder(&from, intruder)?;
        }
        Ok(())
    }

    fn ensure_sink(&self, node: &str, at: std::net::IpAddr) -> Result<(), LabError> {
        if self.has(node, intruder::is_sink) {
            return Ok(());
        }
        self.start_intruder(node, Intruder::Sink { at })
    }

    fn has(&self, node: &str, which: impl Fn(u32) -> bool) -> bool {
        let inside = self.processes().remove(node).unwrap_or_default();
        let mut intruders = inside.into_iter().filter(|pid| intruder::is_intruder(*pid));
        intruders.any(which)
    }

    fn start_intruder(&self, node: &str, intruder: Intruder) -> Result<(), LabError> {
        let mut command = self.program.command();
        let keeper = (self.state.keeper_pid, self.state.keeper_start_ticks);
        let log = self.dir.join("intruders.log");
        intruder::prepare(&mut command, intruder, keeper, &log)?;
        self.enter_command(node, &mut command)?;
        command
            .spawn()
            .map_err(LabError::io_named("start", "a process of a fault"))?;
        Ok(())
    }

    fn end_intruders(&self, node: &str) {
        let inside = self.processes().remove(node).unwrap_or_default();
        let is_sender = |pid: &u32| intruder::is_intruder(*pid) && !intruder::is_sink(*pid);
        for pid in inside.into_iter().filter(is_sender) {
            if let Ok(handle) = ProcessHandle::open(pid) {
                // One that ends by itself in this moment is as good.
                let _ = handle.end(true);
                let _ = handle.wait_ended(POLITE_END_LIMIT);
                namespace::reap_child(pid);
            }
        }
    }

    /// Applies to sockets opened from now on. Without a limit the machine's own values are
    /// restored.
    fn set_buffer(&self, host: &str, file: &str, bytes: Option<u64>) -> Result<(), LabError> {
        let path = format!("/proc/sys/{file}");
        let triple = match bytes {
            Some(bytes) => keeper::buffer_triple(bytes),
            None => fs::read_to_string(&path).map_err(LabError::io_named("read", &path))?,
        };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo \"$1\" > \"$2\"", "sh", triple.trim(), &path]);
        self.enter_command(host, &mut command)?;
        let output = command.output().map_err(LabError::io_named("run", "sh"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(LabError::Command {
            command: format!("set {path} on {host}"),
            output: String::from_utf8_lossy(&output.stderr).trim().into(),
        })
    }

    /// Applies to processes that run already as well.
    fn set_cpu_quota(&self, host: &str, cores: Option<f64>) -> Result<(), LabError> {
        let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        control_group::set_quota(self.name(), host, cores.unwrap_or(all as f64))?;
        for pid in self.processes().remove(host).unwrap_or_default() {
            control_group::adopt(self.name(), host, pid);
        }
        Ok(())
    }

    fn batch(&self, node: &str, tool: &'static str, text: &str) -> Result<(), LabError> {
        if text.is_empty() {
            return Ok(());
        }
        batch::run_batch(tool, text, |command| {
            namespace::enter_before_exec(command, self.entrance(node)?);
            Ok(())
        })
    }
}
