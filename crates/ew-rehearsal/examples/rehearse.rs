//! `make sim`: worlds of the seeds given, several at once, and what is wrong with each.
//! `rehearse A-B`: the worlds A to B. `rehearse A`: world A, with its trace. `rehearse hosts N`:
//! `qualify` on N hosts of which nothing is wrong.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use ew_rehearsal::{Trace, draw, draw_healthy, rehearse, violations};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

fn main() {
    let mut words = std::env::args().skip(1);
    let seeds = words.next().unwrap_or_else(|| "1-1000".into());
    let bound = |text: &str| text.parse::<u64>().ok();
    if let ("hosts", Some(hosts)) = (seeds.as_str(), words.next()) {
        return match bound(&hosts) {
            Some(hosts) => healthy(hosts as usize),
            None => usage(),
        };
    }
    match seeds.split_once('-') {
        Some((first, last)) => match (bound(first), bound(last)) {
            (Some(first), Some(last)) => many(first..=last),
            _ => usage(),
        },
        None => match bound(&seeds) {
            Some(seed) => one(seed),
            None => usage(),
        },
    }
}

fn usage() {
    println!("usage: rehearse A-B, rehearse A for the trace of one world, or rehearse hosts N");
    std::process::exit(2);
}

fn many(seeds: RangeInclusive<u64>) {
    let began = Instant::now();
    let (next, wrong) = (AtomicU64::new(*seeds.start()), AtomicU64::new(0));
    let ends: Mutex<BTreeMap<String, u64>> = Mutex::default();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > *seeds.end() {
                        return;
                    }
                    let (end, found) = of(seed);
                    if let Ok(mut ends) = ends.lock() {
                        *ends.entry(end).or_default() += 1;
                    }
                    if !found.is_empty() {
                        wrong.fetch_add(1, Ordering::Relaxed);
                        println!(
                            "seed {seed}: {} violations, first: {}",
                            found.len(),
                            found[0]
                        );
                    }
                }
            });
        }
    });
    let count = seeds.end() - seeds.start() + 1;
    let seconds = began.elapsed().as_secs_f64();
    if let Ok(ends) = ends.lock() {
        println!("ends: {ends:?}");
    }
    println!(
        "{count} worlds, {} with a violation, {seconds:.1} s, {:.0} a minute on {workers} cores",
        wrong.load(Ordering::Relaxed),
        60.0 * count as f64 / seconds
    );
    if wrong.load(Ordering::Relaxed) > 0 {
        std::process::exit(1);
    }
}

/// How the run ended, in a word, and what is wrong with it.
fn of(seed: u64) -> (String, Vec<String>) {
    let trace = match rehearse(draw(seed)) {
        Ok(trace) => trace,
        Err(error) => return ("none".into(), vec![error.to_string()]),
    };
    let end = format!("{:?}", trace.driven);
    let word = end.split([' ', '{']).next().unwrap_or_default().to_owned();
    (word, violations(&trace))
}

fn healthy(hosts: usize) {
    let began = Instant::now();
    match rehearse(draw_healthy(1, hosts)) {
        Ok(trace) => {
            let violations = violations(&trace);
            violations.iter().for_each(|found| println!("{found}"));
            println!(
                "{hosts} hosts: {:?} after {:.1} s of virtual time, {} events, in {:.1} s",
                trace.driven,
                trace.took_ns as f64 / 1e9,
                trace.events.len(),
                began.elapsed().as_secs_f64()
            );
            if !violations.is_empty() {
                std::process::exit(1);
            }
        }
        Err(error) => {
            println!("{error}");
            std::process::exit(1);
        }
    }
}

fn one(seed: u64) {
    let drawn = draw(seed);
    for (number, host) in drawn.hosts.iter().enumerate() {
        for fault in &host.faults {
            println!("host {number}: {fault:?}");
        }
    }
    println!("interrupts: {:?}", drawn.interrupts_ns);
    match rehearse(drawn) {
        Ok(trace) => print(&trace),
        Err(error) => println!("{error}"),
    }
}

fn print(trace: &Trace) {
    for event in &trace.events {
        let text = format!("{:?}", event.event);
        let text: String = text.chars().take(240).collect();
        println!("{:>9.3} {text}", event.at_ns as f64 / 1e9);
    }
    println!(
        "{:?} after {:.3} s",
        trace.driven,
        trace.took_ns as f64 / 1e9
    );
    println!("trace {}", trace.hash().unwrap_or_default());
    violations(trace)
        .iter()
        .for_each(|found| println!("{found}"));
}
