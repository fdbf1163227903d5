//! Values of flags that several groups of flags have: ports, times.

use anyhow::Context;
use std::time::Duration;

pub(crate) fn parse_ports(text: &str) -> anyhow::Result<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |part: &str| {
        part.trim()
            .parse::<u16>()
            .with_context(|| format!("`{part}` is not a port; write 5401-5499"))
    };
    let (first, last) = (port(first)?, port(last)?);
    anyhow::ensure!(
        first <= last && first > 0,
        "{first}-{last} is no port range; write the lower one first, from 1"
    );
    Ok((first, last))
}

/// Ports to listen at, or 0 for any.
pub(crate) fn parse_dial_ports(text: &str) -> anyhow::Result<(u16, u16)> {
    match text {
        "0" => Ok((0, 0)),
        ports => parse_ports(ports),
    }
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, ew_model::units::UnitError> {
    ew_model::units::parse_duration_ns(text).map(Duration::from_nanos)
}
