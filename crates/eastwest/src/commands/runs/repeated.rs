//! The command of a stored run, with other options.

use clap::{Arg, ArgAction, Command};
use std::collections::VecDeque;

/// The file with the stored run's own result.
const RESULT: &str = "output";

/// An option with its value, or another word.
struct Piece<'c> {
    option: Option<&'c Arg>,
    words: Vec<String>,
}

/// The command with `more` behind it: an option that is in both is there once, unless it is
/// repeatable. The file of the stored run's result is skipped, which would be overwritten.
pub(super) fn with_options(command: &[String], more: &[String], cli: &Command) -> Vec<String> {
    let name = command.first().map(String::as_str).unwrap_or_default();
    let Some(known) = cli.find_subcommand(name) else {
        return [command, more].concat();
    };
    let given = pieces(more, known);
    let is_replaced = |piece: &Piece<'_>| {
        let Some(option) = piece.option else {
            return false;
        };
        let mut options = given.iter().filter_map(|piece| piece.option);
        let is_given = options.any(|other| other.get_id() == option.get_id());
        let is_repeatable = matches!(option.get_action(), ArgAction::Append);
        option.get_id() == RESULT || (is_given && !is_repeatable)
    };
    let kept = pieces(command, known).into_iter();
    let kept = kept.filter(|piece| !is_replaced(piece));
    let kept = kept.flat_map(|piece| piece.words);
    kept.chain(more.iter().cloned()).collect()
}

/// As clap separates them: `--set=a=b`, `--set a=b`, `-qP4` is `-q -P 4`.
fn pieces<'c>(words: &[String], known: &'c Command) -> Vec<Piece<'c>> {
    let mut pieces = Vec::new();
    let mut open: VecDeque<String> = words.iter().cloned().collect();
    while let Some(word) = open.pop_front() {
        let Some((option, behind)) = option_of(&word, known) else {
            let words = vec![word];
            pieces.push(Piece {
                option: None,
                words,
            });
            continue;
        };
        let mut words = vec![word.clone()];
        let takes_value = option.get_action().takes_values();
        match behind {
            Some(flags) if !takes_value => {
                words[0].truncate(word.len() - flags.len());
                open.push_front(format!("-{flags}"));
            }
            None if takes_value => {
                let is_optional = option.get_num_args().is_some_and(|n| n.min_values() == 0);
                let is_value = |next: &String| !is_optional || !next.starts_with('-');
                words.extend(open.pop_front_if(|next| is_value(next)));
            }
            _ => {}
        }
        let option = Some(option);
        pieces.push(Piece { option, words });
    }
    pieces
}

/// The option that a word is, and what is in the word behind its name.
fn option_of<'c, 'w>(word: &'w str, known: &'c Command) -> Option<(&'c Arg, Option<&'w str>)> {
    let mut options = known.get_arguments();
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let is_name = |option: &&Arg| {
            let aliases = option.get_all_aliases().unwrap_or_default();
            option.get_long() == Some(name) || aliases.contains(&name)
        };
        return Some((options.find(is_name)?, value));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let option = options.find(|option| option.get_short() == Some(letter))?;
    let behind = letters.as_str();
    Some((option, (!behind.is_empty()).then_some(behind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    fn repeated(command: &str, more: &str) -> String {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let (command, more): (Vec<String>, Vec<String>) = (words(command), words(more));
        with_options(&command, &more, &cli::definition()).join(" ")
    }

    #[test]
    fn options_are_replaced_and_the_result_is_not_overwritten() {
        for (command, more, expected) in [
            (
                "run pair a b --output=1.html --seed 7",
                "--output 2.html",
                "run pair a b --seed 7 --output 2.html",
            ),
            ("pair a b -O 1.html -q", "", "pair a b -q"),
            ("mesh -qyP4 n[1-4]", "-q -P 8", "mesh -y n[1-4] -q -P 8"),
            ("run --seed 7 -t5", "--seed=8", "run -t5 --seed=8"),
            (
                "run --web -w a -w b",
                "--web -w c",
                "run -w a -w b --web -w c",
            ),
            ("demo --output x", "--json", "demo --json"),
        ] {
            assert_eq!(repeated(command, more), expected, "{command} -- {more}");
        }
    }
}
