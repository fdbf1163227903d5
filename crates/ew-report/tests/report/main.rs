//! Views of fixed analyses and of a fixed story of events.

#[cfg(test)]
mod browser;
#[cfg(test)]
mod catalogue;
#[cfg(test)]
mod common;
#[cfg(test)]
mod flow_completion;
#[cfg(test)]
mod hosts;
#[cfg(test)]
mod html;
#[cfg(test)]
mod k8s_netperf;
#[cfg(test)]
mod live;
#[cfg(test)]
mod prometheus;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod storage;
#[cfg(test)]
mod sweeps;
#[cfg(test)]
mod trends;
#[cfg(test)]
mod workloads;
