//! One file per subcommand.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod dfsio;
pub(crate) mod doctor;
pub(crate) mod fan_in;
pub(crate) mod hosts;
pub(crate) mod image;
pub(crate) mod iperf3;
pub(crate) mod kubernetes;
pub(crate) mod lab;
pub(crate) mod line_rate;
pub(crate) mod networks;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod scenario;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod size;
pub(crate) mod stop;
pub(crate) mod storage;
pub(crate) mod testdfsio;
pub(crate) mod tools;
pub(crate) mod top;
