//! Runs as replicates: levels that vary from run to run, hosts of a large cluster, and changes in a
//! history of runs. Each bar is compared with the bound that a binomial count of that probability
//! exceeds once in a thousand tests; the seeds are fixed.

use super::{throughput, truth};
use crate::simulator::{Dice, Truth};
use crate::{run, scenario};
use ew_analyze::compare::{CompareOptions, Runs, compare, figures};
use ew_analyze::trend::{RunFigures, changes, trends};
use ew_model::Run;
use ew_model::comparison::{Change, Comparison, ComparisonNote, ComparisonVerdict, Method};

/// How much the level of a network varies from run to run.
const LEVEL_SPREAD: f64 = 0.01;

/// Above this many of `tests`, each true with probability 5%, there are in one of a thousand.
pub(super) fn bound(tests: usize) -> usize {
    let (n, p) = (tests as f64, 0.05);
    let mut probability = (1.0_f64 - p).powf(n);
    let (mut below, mut count) = (probability, 0.0);
    while below < 0.999 {
        probability *= (n - count) / (count + 1.0) * p / (1.0 - p);
        count += 1.0;
        below += probability;
    }
    count as usize
}

/// Runs of one network on several days.
fn days(network: &Truth, count: u64, seed: u64) -> Vec<Run> {
    let mut dice = Dice(seed);
    let mut day = |day| {
        let mut today = network.clone();
        let level = (LEVEL_SPREAD * dice.bell()).exp();
        for capacity in today.tx.iter_mut().chain(&mut today.rx) {
            *capacity *= level;
        }
        let mut run = run(&today, "mesh", &["samples=2"], seed * 100 + day);
        run.manifest.id = format!("run{day}");
        run
    };
    (0..count).map(&mut day).collect()
}

fn of_days(base: &[Run], other: &[Run], history: &[Run], threshold: Option<f64>) -> Comparison {
    let runs = Runs {
        base,
        other,
        history,
    };
    let options = CompareOptions {
        threshold,
        ..CompareOptions::default()
    };
    compare(&runs, &options).unwrap()
}

/// How many of so many comparisons of a network with itself are called different.
fn alarms(tests: u64, compared: impl Fn(&[Run]) -> Comparison) -> usize {
    let network = truth(4, 1.0);
    let is_alarm = |seed: &u64| {
        let comparison = compared(&days(&network, 9, 50_000 + seed));
        throughput(&comparison).change != Change::None
    };
    (0..tests).filter(is_alarm).count()
}

#[test]
fn a_level_that_varies_from_run_to_run_is_seldom_a_difference() {
    const TESTS: u64 = 200;
    let of_three = alarms(TESTS, |runs| of_days(&runs[..3], &runs[3..6], &[], None));
    let with_history = alarms(TESTS, |runs| {
        of_days(&runs[8..], &runs[7..8], &runs[..7], None)
    });
    let of_one = alarms(TESTS, |runs| of_days(&runs[..1], &runs[1..2], &[], None));
    println!("of {TESTS}: {of_three} of three runs, {with_history} with a history, {of_one} alone");
    let most = bound(TESTS as usize);
    assert!(
        of_three.max(with_history).max(of_one) <= most,
        "more than {most}"
    );
}

#[test]
fn three_runs_of_each_show_a_change_of_the_network() {
    let (good, bad) = (truth(4, 1.0), truth(4, 0.9));
    let (base, other) = (days(&good, 3, 61), days(&bad, 3, 62));
    let replicated = of_days(&base, &other, &[], Some(0.05));
    let metric = throughput(&replicated);
    assert_eq!(metric.method, Method::Runs { base: 3, other: 3 });
    assert_eq!(metric.change, Change::Worse);
    assert_eq!(replicated.verdict, ComparisonVerdict::Worse);
    let ratio = metric.ratio.unwrap();
    assert!(
        ratio.low.unwrap() < 0.9 && ratio.high.unwrap() > 0.9,
        "{ratio:?}"
    );
    assert!(ew_report::comparison_sentence(&replicated).starts_with("Worse by more than 5%"));
    // The same figures, of fewer runs than it takes.
    let two = of_days(&base[..2], &other, &[], Some(0.05));
    assert_eq!(throughput(&two).change, Change::Different);
    assert_eq!(two.verdict, ComparisonVerdict::Different);
    let has_more = two.notes.contains(&ComparisonNote::TooFewRuns);
    assert!(has_more, "{:?}", two.notes);
}

#[test]
fn a_history_that_varies_widens_the_interval() {
    let network = truth(4, 1.0);
    let runs = days(&network, 10, 63);
    let alone = of_days(&runs[8..9], &runs[9..], &[], None);
    let unsteady = |run: &Run| {
        let mut run = run.clone();
        let factor = if run.manifest.id.ends_with(['1', '3', '6', '7']) {
            0.8
        } else {
            1.0
        };
        for row in &mut run.flows {
            if let Some(receiver) = &mut row.receiver {
                receiver.bytes = (receiver.bytes as f64 * factor) as u64;
            }
        }
        run
    };
    let history: Vec<Run> = runs[..8].iter().map(unsteady).collect();
    let with = of_days(&runs[8..9], &runs[9..], &history, None);
    let width = |comparison: &Comparison| {
        let ratio = throughput(comparison).ratio.unwrap();
        ratio.high.unwrap() / ratio.low.unwrap()
    };
    assert_eq!(throughput(&with).spread.history, 8);
    assert!(
        throughput(&with).spread.deviation > 0.05,
        "{:?}",
        throughput(&with).spread
    );
    assert!(
        width(&with) > 1.3 && width(&alone) < 1.1,
        "{}",
        width(&with)
    );
}

#[test]
fn one_host_of_a_hundred_is_named_with_six_samples() {
    const TESTS: u64 = 60;
    let good = truth(100, 1.0);
    let mut bad = good.clone();
    for end in [&mut bad.tx, &mut bad.rx] {
        end[41] *= 0.8;
    }
    let options = CompareOptions {
        threshold: Some(0.05),
        each_host: true,
        names: None,
    };
    let named = |seed: &u64| -> Vec<String> {
        // One plan, as with the same --seed; other noise.
        let scenario = scenario("permutation", &["samples=6"]);
        let plan = ew_plan::plan(&scenario, &good.inventory, *seed).unwrap();
        let base = good.run(scenario.clone(), plan.clone(), 7_000 + seed);
        let other = bad.run(scenario, plan, 8_000 + seed);
        let runs = Runs {
            base: &[base],
            other: &[other],
            history: &[],
        };
        let comparison = compare(&runs, &options).unwrap();
        let beyond = throughput(&comparison).hosts_beyond_threshold();
        beyond.map(|(host, _, _)| host.to_owned()).collect()
    };
    let found: Vec<Vec<String>> = (0..TESTS).map(|seed| named(&seed)).collect();
    let right = found
        .iter()
        .filter(|hosts| hosts.iter().any(|h| h == "r1h42"))
        .count();
    let others = found
        .iter()
        .filter(|hosts| hosts.iter().any(|h| h != "r1h42"))
        .count();
    println!("of {TESTS}: named in {right}, others in {others}");
    // 60 of 60 is 95% or more with 95% confidence: 0.95^60 is 4.6%.
    assert!(right as u64 == TESTS, "named in {right} of {TESTS}");
    assert!(others <= bound(TESTS as usize), "others named in {others}");
}

fn history(levels: impl Iterator<Item = f64>) -> Vec<RunFigures> {
    let figures = |(index, factor): (usize, f64)| {
        let seed = 900 + index as u64;
        let run = run(&truth(3, factor), "mesh", &["samples=1"], seed);
        RunFigures {
            run_id: format!("run{index}"),
            started_unix_ns: index as u64,
            figures: figures(&run),
        }
    };
    levels.enumerate().map(figures).collect()
}

#[test]
fn a_change_is_marked_at_its_run_and_nowhere_else() {
    let mut dice = Dice(17);
    let mut level = |factor: f64| factor * (LEVEL_SPREAD * dice.bell()).exp();
    let runs = history((0..30).map(|i| level(if i < 19 { 1.0 } else { 0.9 })));
    let found = trends(&runs, |_, _| true);
    let throughput = &found[0];
    assert_eq!(throughput.points.len(), 30);
    let marked: Vec<&str> = throughput
        .changes
        .iter()
        .map(|c| c.run_id.as_str())
        .collect();
    assert_eq!(marked, ["run19"]);
    let change = &throughput.changes[0];
    assert!(
        (change.ratio() - 0.9).abs() < 0.02 && change.change == Change::Worse,
        "{change:?}"
    );
    assert_eq!(throughput.regression(), Some(change));
    let same = history((0..30).map(|_| level(1.0)));
    assert!(trends(&same, |_, _| true)[0].changes.is_empty());
}

#[test]
fn changes_are_found_and_histories_without_one_seldom_show_any() {
    const TESTS: usize = 400;
    let series = |seed: u64, at: usize| -> Vec<f64> {
        let mut dice = Dice(seed);
        let level = |i| if i < at { 0.0 } else { -0.05 };
        (0..30)
            .map(|i| level(i) + LEVEL_SPREAD * dice.bell())
            .collect()
    };
    let same = (0..TESTS as u64).filter(|seed| !changes(&series(*seed, 30), 0.05).is_empty());
    let alarms = same.count();
    let right = |seed: &u64| {
        let at = 3 + (*seed as usize * 7) % 25;
        let found = changes(&series(10_000 + seed, at), 0.05);
        found.iter().any(|cut| cut.at == at)
    };
    let found = (0..100).filter(right).count();
    println!("{alarms} of {TESTS} without a change, {found} of 100 found at their run");
    assert!(alarms <= bound(TESTS), "{alarms} of {TESTS}");
    // A fall by five run-to-run spreads may look as if it came a run earlier or later.
    assert!(found >= 90, "{found} of 100");
}
