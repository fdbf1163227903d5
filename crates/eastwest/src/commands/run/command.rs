//! The command line, for the record.

use crate::sinks::parse_url;

/// Flags whose URL may contain a secret: the record of a run, and every report of it, is passed on.
const WITH_SECRETS: [&str; 2] = ["--webhook", "--remote-write"];

/// This process's command line; of URLs that may contain a secret only scheme and host.
pub(crate) fn recorded_command() -> Vec<String> {
    let words = std::env::args_os();
    without_secrets(words.map(|word| word.to_string_lossy().into()))
}

fn without_secrets(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_url = false;
    let recorded = |word: String| {
        let was_flag = std::mem::replace(&mut is_url, WITH_SECRETS.contains(&&*word));
        match word.split_once('=') {
            _ if was_flag => shown(&word),
            Some((flag, url)) if WITH_SECRETS.contains(&flag) => format!("{flag}={}", shown(url)),
            _ => word,
        }
    };
    words.map(recorded).collect()
}

fn shown(url: &str) -> String {
    parse_url(url).map_or_else(|_| "...".to_owned(), |url| url.shown().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_recorded() {
        let given = "eastwest run --webhook https://hooks.example:8443/T0/secret?key=1 -c prod \
                     --remote-write=http://prometheus:9090/api/v1/write?token=secret -O x=y";
        let recorded = without_secrets(given.split_whitespace().map(str::to_owned));
        assert_eq!(
            recorded.join(" "),
            "eastwest run --webhook https://hooks.example:8443 -c prod \
             --remote-write=http://prometheus:9090 -O x=y"
        );
    }
}
