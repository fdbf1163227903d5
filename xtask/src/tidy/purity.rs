//! The pure crates are given the time and know no sockets.

use super::source::{Source, for_each_level, ident, is_punct};
use super::violation::Violation;
use proc_macro2::{Ident, TokenTree};

const PURE: &[&str] = &[
    "ew-model",
    "ew-plan",
    "ew-proto",
    "ew-sim",
    "ew-stats",
    "ew-evidence",
    "ew-fit",
    "ew-analyze",
    "ew-analyze-storage",
];

/// What may not be taken from a module of this name.
const BANNED: &[(&str, &[&str], &str)] = &[
    (
        "time",
        &["Instant", "SystemTime", "UNIX_EPOCH"],
        "take the time as an argument (`now_ns`)",
    ),
    (
        "net",
        &[
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "UnixStream",
            "UnixListener",
            "UnixDatagram",
            "ToSocketAddrs",
        ],
        "take bytes as an argument; sockets belong to ew-engine, ew-agent and ew-fleet",
    ),
];

/// Violations of one file. Tests may read clocks.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = vec![];
    if !PURE.contains(&source.package.as_str()) {
        return violations;
    }
    for_each_level(&source.shipped_tokens(), &mut |level| {
        for index in 0..level.len() {
            for (name, fix) in banned_at(&level[index..]) {
                let what = format!("`{name}` in {}, which is pure", source.package);
                violations.push(source.violation(name.span().start().line, what, fix));
            }
        }
    });
    violations
}

/// Banned names behind `module::`, alone or in braces.
fn banned_at(tokens: &[TokenTree]) -> Vec<(Ident, &'static str)> {
    let module = ident(tokens.first());
    let rule = BANNED
        .iter()
        .find(|(name, ..)| module.is_some_and(|m| m == name));
    let (Some((_, names, fix)), true) = (rule, is_path(tokens)) else {
        return vec![];
    };
    let mut found = vec![];
    match tokens.get(3) {
        Some(TokenTree::Ident(name)) => found.push(name.clone()),
        Some(TokenTree::Group(group)) => {
            for_each_level(&group.stream(), &mut |level| {
                found.extend(level.iter().filter_map(|t| ident(Some(t))).cloned());
            });
        }
        _ => {}
    }
    found.retain(|name| names.iter().any(|banned| name == banned));
    found.into_iter().map(|name| (name, *fix)).collect()
}

fn is_path(tokens: &[TokenTree]) -> bool {
    is_punct(tokens.get(1), ':') && is_punct(tokens.get(2), ':')
}

#[cfg(test)]
mod tests {
    use super::super::source::snippet;
    use super::*;

    fn lines(package: &str, text: &str) -> Vec<usize> {
        let violations = check(&snippet(package, "src/a.rs", text));
        violations.iter().map(|v| v.line).collect()
    }

    #[test]
    fn clocks_and_sockets_are_found_in_every_form() {
        for text in [
            "use std::time::Instant;",
            "use std::time::{Duration, SystemTime};",
            "use std::{fmt, time::{Duration, Instant as Clock}};",
            "fn a() { std::time::Instant::now(); }",
            "use std::net::TcpStream;",
            "use std::os::unix::net::{UnixStream};",
        ] {
            assert_eq!(lines("ew-proto", text), [1], "{text}");
            assert!(lines("ew-engine", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn addresses_durations_and_our_own_words_are_fine() {
        for text in [
            "use std::net::{IpAddr, SocketAddr};",
            "use std::time::Duration;",
            "fn a() { WorkloadKind::TcpStream; Instant; }",
            "// std::time::Instant\nfn a() { b(\"std::time::Instant\") }",
            "#[cfg(test)] mod tests { use std::time::Instant; }",
        ] {
            assert!(lines("ew-plan", text).is_empty(), "{text}");
        }
    }
}
