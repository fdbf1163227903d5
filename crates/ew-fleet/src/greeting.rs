//! What a host says of itself before it gets the binary: its kind of machine, and how it wants it.

/// What is in the greeting line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) system: String,
    pub(crate) machine: String,
    /// How it wants the binary.
    pub(crate) packing: Packing,
    /// It is still there from an earlier run.
    pub(crate) is_kept: bool,
}

/// How the payload travels, as the host's script asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// gzip's format: the host has gzip.
    Gzip,
    /// As it is.
    Plain,
    /// Not at all: the host has kept it, or got it from a neighbour.
    Unsent,
}

impl Greeting {
    /// From what follows the greeting's first word; missing words are empty.
    pub(crate) fn parse(rest: &str) -> Self {
        let mut words = rest.split_whitespace().map(str::to_owned);
        let (system, machine) = (words.next(), words.next());
        let how = words.next();
        Self {
            system: system.unwrap_or_default(),
            machine: machine.unwrap_or_default(),
            packing: match how.as_deref() {
                Some("gzip") => Packing::Gzip,
                Some("kept" | "relayed") => Packing::Unsent,
                _ => Packing::Plain,
            },
            is_kept: how.as_deref() == Some("kept"),
        }
    }

    /// Whether a Linux binary for `built_for` can run there.
    pub(crate) fn runs(&self, built_for: &'static str) -> bool {
        self.system == "Linux" && kin(built_for).contains(&self.machine.as_str())
    }
}

/// What `uname -m` prints where a binary for `built_for` runs: 32-bit binaries run on their 64-bit
/// kin.
pub(crate) fn kin(built_for: &'static str) -> Vec<&'static str> {
    match built_for {
        "i686" => vec!["i386", "i486", "i586", "i686", "x86_64"],
        "armv7l" => vec!["armv7l", "armv8l", "aarch64"],
        "x86_64" => vec!["x86_64", "amd64"],
        "aarch64" => vec!["aarch64", "arm64"],
        other => vec![other],
    }
}
