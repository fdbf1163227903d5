//! A run written, cut, read back, listed and pruned.

#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

use ew_model::barrier::{Barrier, BarrierKind};
use ew_model::facts::{CpuCounters, HostSample, InterfaceCounters, InterfaceFacts};
use ew_model::latency::{Histogram, Latency};
use ew_model::plan::End;
use ew_model::record::{CpuUse, DatagramCounts, EndRecord, FigureNote, Interval, StreamRecord};
use ew_model::scenario::{Expect, Scenario};
use ew_model::telemetry::{CauseCounters, ProcessTraffic, ReadingCost, SoftnetCounters};
use ew_model::workload::{Workload, WorkloadKind};
use ew_model::*;
use ew_store::{
    EVENTS_FILE, EventWriter, EventsFile, FORMAT_VERSION, MANIFEST_FILE, PruneRule, RunWriter,
    StoreError, add_barriers, describe_tables, list, load, load_manifest, make_run_id, plan_hash,
    prune, resolve, write_file, write_findings,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[test]
fn what_is_recorded_is_read_back() {
    let temp_dir = TempDir::new().unwrap();
    let path = write_run(temp_dir.path(), &events());
    let run = load(&path).unwrap();
    assert_eq!(run.manifest.outcome, Outcome::Partial);
    assert_eq!(run.manifest.format_version, FORMAT_VERSION);
    assert_eq!(path.file_name().unwrap().to_str(), Some(&*run.manifest.id));
    assert_eq!(run.plan, plan());
    assert_eq!(run.flows, [measured(), missing()]);
    assert_eq!(run.facts[&HostId(0)], facts());
    assert_eq!(run.failed[&HostId(2)], "Connection refused");
    assert!(!run.lost.contains_key(&HostId(0)), "it came back");
    assert_eq!(run.lost[&HostId(1)], "silent for 3 s");
    assert_eq!(run.clock_error_ns[&HostId(0)], 900);
    assert_eq!(run.samples[&HostId(0)], [sample()]);
    assert_eq!(run.rejected_connections[&HostId(0)], 5);
    assert_eq!(run.warnings, ["rack r2 has one host"]);
    assert_eq!(
        run.unclean,
        [("b".to_owned(), "not seen ending".to_owned())]
    );
    let leftovers = fs::read_dir(&path).unwrap().count();
    assert_eq!(leftovers, 7, "manifest, events, five tables and no drafts");
}

#[test]
fn live_views_are_not_recorded() {
    let temp_dir = TempDir::new().unwrap();
    let mut writer = RunWriter::create(temp_dir.path(), manifest(7)).unwrap();
    let progress = RunEvent::Progress {
        bits_per_sec: Some(1.0),
        hosts_alive: 2,
        left_ns: 3,
    };
    writer.events().append(&at(1, progress)).unwrap();
    assert_eq!(fs::read(writer.path().join(EVENTS_FILE)).unwrap(), b"");
}

#[test]
fn a_run_that_is_killed_is_readable_at_any_moment() {
    let temp_dir = TempDir::new().unwrap();
    let mut writer = RunWriter::create(temp_dir.path(), manifest(7)).unwrap();
    assert_eq!(load(writer.path()).unwrap().flows, []);
    for (count, event) in events().iter().enumerate() {
        writer.events().append(event).unwrap();
        let text = fs::read_to_string(writer.path().join(EVENTS_FILE)).unwrap();
        assert_eq!(text.lines().count(), count + 1);
    }
    let run = load(writer.path()).unwrap();
    assert_eq!(run.flows.len(), 2);
    assert_eq!(
        run.manifest.outcome,
        Outcome::Partial,
        "reported by the last event"
    );
    let end = fs::read(writer.path().join(EVENTS_FILE)).unwrap();
    let path = writer.path().to_path_buf();
    drop(writer);
    // Cut at every byte: never an error, never more than was there.
    for length in (0..end.len()).step_by(7) {
        fs::write(path.join(EVENTS_FILE), &end[..length]).unwrap();
        let cut = load(&path).unwrap();
        assert!(cut.flows.len() <= run.flows.len());
        let whole = length == 0 || end[..length].ends_with(b"\n") || end[length] == b'\n';
        let reported = cut.warnings.iter().any(|w| w.contains("cut short"));
        assert_eq!(reported, !whole, "{length}");
    }
}

#[test]
fn events_of_a_large_run_are_short_and_read_back_in_their_order() {
    let temp_dir = TempDir::new().unwrap();
    let mut manifest = manifest(7);
    let host = manifest.inventory.hosts[0].clone();
    manifest.inventory.hosts = vec![host; 400];
    let mut writer = RunWriter::create(temp_dir.path(), manifest.clone()).unwrap();
    let mut plain_bytes = 0;
    let mut record = |at_ns, event| {
        let recorded = at(at_ns, event);
        plain_bytes += serde_json::to_vec(&recorded).unwrap().len();
        writer.events().append(&recorded).unwrap();
    };
    for second in 1..=5 {
        for host in 0..400 {
            let agent_ns = second * 1_000_000_000 + u64::from(host);
            let sample = HostSample {
                agent_ns,
                ..sample()
            };
            let host = HostId(host);
            record(agent_ns, RunEvent::HostSampled { host, sample });
        }
        let message = format!("second {second}");
        record(second * 1_000_000_000 + 500, RunEvent::Warning { message });
    }
    let path = writer.path().to_path_buf();
    let finished = writer.finish(manifest).unwrap();
    let run = load(&path).unwrap();
    assert_eq!(finished, run);
    let events_bytes = fs::metadata(path.join(EVENTS_FILE)).unwrap().len() as usize;
    assert!(
        events_bytes < plain_bytes / 5,
        "{events_bytes} of {plain_bytes}"
    );
    assert_eq!((run.samples.len(), run.warnings.len()), (400, 5));
    for (host, samples) in &run.samples {
        let times: Vec<u64> = samples.iter().map(|sample| sample.agent_ns).collect();
        let expected: Vec<u64> = (1..=5)
            .map(|s| s * 1_000_000_000 + u64::from(host.0))
            .collect();
        assert_eq!(times, expected);
        assert_eq!(samples[0].cpus, sample().cpus);
    }
    // Torn anywhere, what is before is there.
    let whole = fs::read(path.join(EVENTS_FILE)).unwrap();
    for length in (0..whole.len()).step_by(whole.len() / 40) {
        fs::write(path.join(EVENTS_FILE), &whole[..length]).unwrap();
        let cut = load(&path).unwrap();
        assert!(!cut.warnings.contains(&"second 5".to_owned()), "{length}");
        let mut begun = cut.samples.iter();
        assert!(begun.all(|(host, own)| run.samples[host].starts_with(own)));
    }
}

#[test]
fn damage_in_the_middle_is_named_with_its_line() {
    let temp_dir = TempDir::new().unwrap();
    let path = write_run(temp_dir.path(), &events());
    let text = fs::read_to_string(path.join(EVENTS_FILE)).unwrap();
    let broken: Vec<&str> = text
        .lines()
        .enumerate()
        .map(|(index, line)| if index == 2 { &line[..10] } else { line })
        .collect();
    fs::write(path.join(EVENTS_FILE), broken.join("\n")).unwrap();
    let error = load(&path).unwrap_err();
    assert!(
        matches!(error, StoreError::BadEvent { line: 3, .. }),
        "{error}"
    );
}

#[test]
fn newer_formats_are_refused_and_newer_events_passed_over() {
    let temp_dir = TempDir::new().unwrap();
    let path = write_run(temp_dir.path(), &events());
    let mut file = OpenOptions::new()
        .append(true)
        .open(path.join(EVENTS_FILE))
        .unwrap();
    for _ in 0..2 {
        let line = r#"{"at_ns":9,"event":{"type":"moon-phase","data":{"phase":"full"}}}"#;
        writeln!(file, "{line}").unwrap();
    }
    let run = load(&path).unwrap();
    assert_eq!(run.flows.len(), 2);
    let warning = run.warnings.last().unwrap();
    assert!(
        warning.contains("2 events") && warning.contains("moon-phase"),
        "{warning}"
    );
    let newer = FORMAT_VERSION + 1;
    let text = format!("{{\"format_version\": {newer}, \"anything\": []}}");
    fs::write(path.join(MANIFEST_FILE), text).unwrap();
    let error = load(&path).unwrap_err();
    assert!(matches!(error, StoreError::NewerVersion { .. }), "{error}");
    let error = list(temp_dir.path()).unwrap().unreadable.pop().unwrap();
    assert!(error.to_string().contains("newer eastwest"), "{error}");
    assert!(prune(temp_dir.path(), &everything()).unwrap().is_empty());
    assert!(matches!(
        load(temp_dir.path()),
        Err(StoreError::NotARun { .. })
    ));
}

#[test]
fn tables_are_parquet_with_nulls_for_what_is_missing() {
    let temp_dir = TempDir::new().unwrap();
    let path = write_run(temp_dir.path(), &events());
    for table in describe_tables() {
        let rows = rows(&path.join(table.file));
        let names: Vec<&str> = table.columns.iter().map(|c| c.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(rows[0].keys().collect::<Vec<_>>(), sorted, "{}", table.file);
    }
    let flows = rows(&path.join("flows.parquet"));
    assert_eq!(flows.len(), 2);
    assert_eq!(flows[0]["stage_name"], Field::Str("inside".into()));
    assert_eq!(flows[0]["pattern"], Field::Str("permutation".into()));
    assert_eq!(flows[0]["src"], Field::Str("a".into()));
    assert_eq!(flows[0]["src_rack"], Field::Str("r1".into()));
    assert_eq!(flows[0]["dst_rack"], Field::Null);
    assert_eq!(flows[0]["rx_bytes"], Field::Long(25_000_000));
    assert_eq!(flows[0]["bits_per_sec"], Field::Double(1e8));
    assert_eq!(flows[0]["retransmits"], Field::Long(3));
    assert_eq!(flows[0]["rtt_us"], Field::Long(250));
    assert_eq!(flows[0]["min_rtt_us"], Field::Null);
    assert_eq!(flows[0]["busy_us"], Field::Long(17));
    check_workload_columns(&flows[0]);
    assert_eq!(flows[1]["latency_bucket_ns"], Field::Null);
    assert_eq!(flows[1]["tx_remarks"], Field::Null);
    assert_eq!(flows[1]["outcome"], Field::Str("missing".into()));
    assert_eq!(flows[1]["missing_reason"], Field::Str("b was lost".into()));
    assert_eq!(flows[1]["bits_per_sec"], Field::Null);
    assert_eq!(flows[1]["rx_bytes"], Field::Null);
    let intervals = rows(&path.join("intervals.parquet"));
    assert_eq!(intervals.len(), 2);
    assert_eq!(intervals[1]["offset_ns"], Field::Long(1_000_000_000));
    let hosts = rows(&path.join("hosts.parquet"));
    assert_eq!(hosts.len(), 2);
    assert_eq!(hosts[0]["kind"], Field::Str("cpu".into()));
    assert_eq!(hosts[0]["softirq_ticks"], Field::Long(11));
    assert_eq!(hosts[0]["steal_ticks"], Field::Null);
    assert_eq!(hosts[0]["rx_bytes"], Field::Null);
    assert_eq!(hosts[0]["clock_offset_ns"], Field::Long(-40));
    assert_eq!(hosts[1]["name"], Field::Str("eth0".into()));
    assert_eq!(hosts[1]["tx_drops"], Field::Long(2));
    assert_eq!(hosts[1]["read_cpu_ns"], Field::Long(300_000));
    check_cause_tables(&path);
}

fn check_cause_tables(path: &Path) {
    let counters = rows(&path.join("counters.parquet"));
    let squeezed = counters
        .iter()
        .find(|row| row["counter"] == Field::Str("squeezed".into()));
    let squeezed = squeezed.unwrap();
    assert_eq!(squeezed["source"], Field::Str("softnet".into()));
    assert_eq!(squeezed["name"], Field::Str("3".into()));
    assert_eq!(squeezed["value"], Field::Long(0));
    let traffic = rows(&path.join("traffic.parquet"));
    assert_eq!(traffic.len(), 1);
    assert_eq!(traffic[0]["pid"], Field::Long(4711));
    assert_eq!(traffic[0]["command"], Field::Str("backup".into()));
    assert_eq!(traffic[0]["peer"], Field::Null);
    assert_eq!(traffic[0]["agent_ns"], Field::Long(45));
    assert_eq!(traffic[0]["sent_bytes"], Field::Long(900));
}

fn check_workload_columns(row: &BTreeMap<String, Field>) {
    let long = |name: &str| match &row[name] {
        Field::Long(value) => *value,
        other => panic!("{name}: {other}"),
    };
    let longs = |name: &str| match &row[name] {
        Field::ListInternal(list) => list.elements().to_vec(),
        other => panic!("{name}: {other}"),
    };
    assert_eq!((long("transactions"), long("latency_count")), (4, 4));
    assert_eq!((long("latency_p50_ns"), long("latency_p90_ns")), (400, 900));
    assert_eq!(
        (long("latency_p9999_ns"), long("latency_mean_ns")),
        (900, 525)
    );
    assert_eq!(longs("latency_bucket_ns"), [400, 900].map(Field::Long));
    assert_eq!(longs("latency_bucket_count"), [3, 1].map(Field::Long));
    assert_eq!(
        (long("uncorrected_p999_ns"), long("connect_max_ns")),
        (390, 70)
    );
    assert_eq!(
        (long("datagrams_lost"), long("datagrams_received")),
        (10, 90)
    );
    assert_eq!(
        (long("datagrams_reordered"), long("datagrams_duplicate")),
        (3, 2)
    );
    assert_eq!(
        (long("jitter_ns"), long("tx_cpu_busy_ns"), long("tx_cpus")),
        (55, 800, 2)
    );
    assert_eq!(row["rx_cpu_busy_ns"], Field::Null);
    let notes = "sender-did-not-touch-bytes,paced-by-kernel";
    assert_eq!(row["tx_remarks"], Field::Str(notes.into()));
    assert_eq!(row["rx_remarks"], Field::Str(String::new()));
}

#[test]
fn every_column_is_in_the_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/run-directory.md");
    let reference = fs::read_to_string(path).unwrap();
    for table in describe_tables() {
        for column in table.columns {
            let name = format!("`{}`", column.name);
            let row = |line: &&str| line.starts_with("| `") && line.contains(&name);
            let rows: Vec<&str> = reference.lines().filter(row).collect();
            let kind = format!("| {} |", column.kind);
            let is_there = rows.iter().any(|line| line.contains(&kind));
            assert!(is_there, "{}: {name} {}", table.file, column.kind);
        }
    }
}

#[test]
fn a_run_without_events_has_empty_tables() {
    let temp_dir = TempDir::new().unwrap();
    let path = write_run(temp_dir.path(), &[]);
    for table in describe_tables() {
        let metadata = open(&path.join(table.file)).metadata().clone();
        let file = metadata.file_metadata();
        assert_eq!(file.num_rows(), 0);
        assert_eq!(file.schema().get_fields().len(), table.columns.len());
    }
}

/// A disk that takes no events.
#[derive(Debug)]
struct Full;

impl EventsFile for Full {
    fn append(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn truncate(&mut self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }
}

#[test]
fn a_full_disk_does_not_cost_the_outcome() {
    let temp_dir = TempDir::new().unwrap();
    let mut writer = RunWriter::create(temp_dir.path(), manifest(7)).unwrap();
    let path = writer.path().to_path_buf();
    *writer.events() = EventWriter::new(Box::new(Full), path.join(EVENTS_FILE), 3);
    let mut manifest = manifest(7);
    manifest.outcome = Outcome::Partial;
    writer.finish(manifest).unwrap_err();
    assert_eq!(load_manifest(&path).unwrap().outcome, Outcome::Partial);
}

#[test]
fn two_runs_never_share_a_directory() {
    let temp_dir = TempDir::new().unwrap();
    let first = RunWriter::create(temp_dir.path(), manifest(7)).unwrap();
    let second = RunWriter::create(temp_dir.path(), manifest(7)).unwrap();
    assert_ne!(first.id(), second.id());
    let path = second.path().to_path_buf();
    second.finish(manifest(7)).unwrap();
    let id = load(&path).unwrap().manifest.id;
    assert_eq!(path.file_name().unwrap().to_str(), Some(&*id));
    let ids: Vec<_> = (0..20).map(|_| make_run_id(1, "mesh")).collect();
    assert!(ids.iter().any(|id| *id != ids[0]));
}

#[test]
fn runs_are_found_by_latest_by_either_end_and_by_path() {
    let temp_dir = TempDir::new().unwrap();
    let root = temp_dir.path();
    assert!(matches!(
        resolve(root, "latest"),
        Err(StoreError::NoRuns { .. })
    ));
    assert_eq!(list(&root.join("nothing")).unwrap().runs, []);
    let old = finished(root, 1, "20260101T000000Z-mesh-aaaaaa");
    let new = finished(root, 2, "20260102T000000Z-mesh-bbbbbb");
    fs::create_dir(root.join("something-else")).unwrap();
    let listing = list(root).unwrap();
    let paths: Vec<_> = listing.runs.iter().map(|run| run.path.clone()).collect();
    assert_eq!(paths, [new.clone(), old.clone()]);
    assert_eq!(
        (listing.runs[0].hosts, &*listing.runs[0].scenario),
        (3, "qualify")
    );
    assert_eq!(resolve(root, "latest").unwrap(), new);
    assert_eq!(resolve(root, "20260101").unwrap(), old);
    assert_eq!(resolve(root, "aaaaaa").unwrap(), old);
    assert_eq!(resolve(root, old.to_str().unwrap()).unwrap(), old);
    let manifest_path = old.join(MANIFEST_FILE);
    assert_eq!(resolve(root, manifest_path.to_str().unwrap()).unwrap(), old);
    assert!(matches!(
        resolve(root, "2026"),
        Err(StoreError::Ambiguous { .. })
    ));
    let error = resolve(root, "1999").unwrap_err();
    assert!(
        error.to_string().contains("20260102T000000Z-mesh-bbbbbb"),
        "{error}"
    );
    assert!(matches!(
        resolve(root, ""),
        Err(StoreError::NoSuchRun { .. })
    ));
    assert!(matches!(
        resolve(root, "no/such"),
        Err(StoreError::NotARun { .. })
    ));
}

#[test]
fn pruning_takes_only_finished_runs_of_ours() {
    let temp_dir = TempDir::new().unwrap();
    let root = temp_dir.path();
    let oldest = finished(root, 1, "one-000001");
    let middle = finished(root, 2, "two-000002");
    let newest = finished(root, 3, "three-000003");
    // A copy under another name, a link, an unauthenticated peer's directory and a run in progress
    // must stay.
    fs::create_dir(root.join("kept-by-hand")).unwrap();
    fs::copy(
        oldest.join(MANIFEST_FILE),
        root.join("kept-by-hand").join(MANIFEST_FILE),
    )
    .unwrap();
    std::os::unix::fs::symlink(&newest, root.join("link")).unwrap();
    fs::create_dir(root.join("other")).unwrap();
    let writing = RunWriter::create(root, manifest(0)).unwrap();
    let none = prune(root, &PruneRule::default()).unwrap();
    assert!(none.is_empty());
    let before_two = PruneRule {
        started_before_unix_ns: Some(2),
        ..PruneRule::default()
    };
    assert_eq!(prune(root, &before_two).unwrap(), [oldest]);
    let keep_one = PruneRule {
        keep: Some(1),
        ..PruneRule::default()
    };
    assert_eq!(prune(root, &keep_one).unwrap(), [middle]);
    assert_eq!(prune(root, &everything()).unwrap(), [newest]);
    assert_eq!(fs::read_dir(root).unwrap().count(), 4);
    let abandoned = writing.path().to_path_buf();
    drop(writing);
    assert_eq!(prune(root, &everything()).unwrap(), [abandoned]);
}

#[test]
fn findings_and_reports_are_replaced_whole() {
    let temp_dir = TempDir::new().unwrap();
    let verdict = finding::WordedVerdict {
        sentence: "nothing wrong found".into(),
        status: finding::VerdictStatus::NothingWrong,
        findings: Vec::new(),
        grounds: finding::Grounds::default(),
    };
    write_findings(temp_dir.path(), serde_json::to_string(&verdict)).unwrap();
    let text = fs::read(temp_dir.path().join("findings.json")).unwrap();
    assert!(
        String::from_utf8(text)
            .unwrap()
            .contains("nothing wrong found")
    );
    let path = write_file(temp_dir.path(), "report.html", b"<p>").unwrap();
    assert_eq!(fs::read(path).unwrap(), b"<p>");
}

#[test]
fn what_is_found_after_the_end_is_kept_with_the_run() {
    let temp_dir = TempDir::new().unwrap();
    let path = write_run(temp_dir.path(), &events());
    let before = load(&path).unwrap();
    let barrier = Barrier {
        kind: BarrierKind::PodEnded,
        host: Some(HostId(1)),
        words: "b: the pod was evicted".into(),
    };
    add_barriers(&path, vec![barrier.clone()]).unwrap();
    let mut after = load(&path).unwrap();
    assert_eq!(std::mem::take(&mut after.manifest.barriers), [barrier]);
    assert_eq!(after, before);
    let text = fs::read_to_string(path.join(MANIFEST_FILE)).unwrap();
    assert!(text.contains("\"pod-ended\""), "{text}");
}

#[test]
fn equal_plans_have_equal_hashes() {
    let mut other = plan();
    assert_eq!(plan_hash(&other), plan_hash(&plan()));
    other.seed -= 1;
    assert_ne!(plan_hash(&other), plan_hash(&plan()));
    assert_eq!(plan_hash(&other).len(), 16);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_record_survives(
        bytes in any::<u64>(),
        skew in any::<i64>(),
        reason in ".*",
        speed in -1e300..1e300,
        text in ".*",
    ) {
        let mut record = missing();
        record.outcome = FlowOutcome::Missing { reason };
        record.sender = Some(EndRecord { bytes, start_skew_ns: skew, ..EndRecord::default() });
        let mut host = facts();
        host.kernel = text;
        host.interfaces[0].speed_bits_per_sec = Some(speed);
        let up = RunEvent::HostUp { address: None, host: HostId(1), facts: host.clone(), launch_ns: bytes };
        let records = vec![record.clone()];
        let round = RunEvent::RoundFinished { stage: record.stage, round: record.round, records };
        let temp_dir = TempDir::new().unwrap();
        let path = write_run(temp_dir.path(), &[at(1, up), at(2, round)]);
        let run = load(&path).unwrap();
        prop_assert_eq!(&run.facts[&HostId(1)], &host);
        prop_assert_eq!(run.flows, vec![record]);
    }
}

#[test]
fn hosts_that_a_run_does_not_have_are_skipped_and_counted() {
    let temp_dir = TempDir::new().unwrap();
    let lost = |host| RunEvent::HostLost {
        host: HostId(host),
        message: "silent".into(),
    };
    let record = FlowRecord {
        dst: HostId(u32::MAX),
        ..missing()
    };
    let round = RunEvent::RoundFinished {
        stage: record.stage,
        round: record.round,
        records: vec![record, missing()],
    };
    let path = write_run(
        temp_dir.path(),
        &[at(1, lost(1)), at(2, lost(99)), at(3, round)],
    );
    let run = load(&path).unwrap();
    assert_eq!((run.lost.len(), run.flows.len()), (1, 1));
    let warning = run.warnings.last().unwrap();
    assert!(warning.starts_with("2 entries name hosts"), "{warning}");
}

fn write_run(root: &Path, events: &[RecordedEvent]) -> PathBuf {
    let mut writer = RunWriter::create(root, manifest(7)).unwrap();
    for event in events {
        writer.events().append(event).unwrap();
    }
    let mut manifest = manifest(7);
    manifest.outcome = Outcome::Partial;
    manifest.finished_unix_ns = Some(8);
    let path = writer.path().to_path_buf();
    let finished = writer.finish(manifest).unwrap();
    assert_eq!(finished, load(&path).unwrap());
    path
}

fn finished(root: &Path, started_unix_ns: u64, id: &str) -> PathBuf {
    let mut manifest = manifest(started_unix_ns);
    manifest.id = id.into();
    let writer = RunWriter::create(root, manifest.clone()).unwrap();
    let path = writer.path().to_path_buf();
    let finished = writer.finish(manifest).unwrap();
    assert_eq!(finished, load(&path).unwrap());
    path
}

fn everything() -> PruneRule {
    PruneRule {
        keep: Some(0),
        started_before_unix_ns: Some(u64::MAX),
    }
}

fn open(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

fn rows(path: &Path) -> Vec<BTreeMap<String, Field>> {
    open(path)
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().into_columns().into_iter().collect())
        .collect()
}

fn at(at_ns: u64, event: RunEvent) -> RecordedEvent {
    RecordedEvent { at_ns, event }
}

fn events() -> Vec<RecordedEvent> {
    let (stage, round) = (StageIndex(0), RoundIndex(0));
    let lost = |host, message: &str| RunEvent::HostLost {
        host: HostId(host),
        message: message.into(),
    };
    let all = vec![
        RunEvent::RunStarted {
            id: String::new(),
            inventory: inventory(),
            plan: plan(),
        },
        RunEvent::HostUp {
            address: None,
            host: HostId(0),
            facts: facts(),
            launch_ns: 5,
        },
        RunEvent::HostFailed {
            host: HostId(2),
            message: "Connection refused".into(),
        },
        RunEvent::ClockSynced {
            host: HostId(0),
            offset_ns: -40,
            error_ns: 900,
            rate_ppb: Some(12),
        },
        RunEvent::Warning {
            message: "rack r2 has one host".into(),
        },
        RunEvent::HostSampled {
            host: HostId(0),
            sample: sample(),
        },
        lost(0, "silent for 3 s"),
        lost(1, "silent for 3 s"),
        RunEvent::HostReturned { host: HostId(0) },
        RunEvent::RoundFinished {
            stage,
            round,
            records: vec![measured(), missing()],
        },
        RunEvent::ConnectionsRejected {
            host: HostId(0),
            count: 5,
        },
        RunEvent::RunFinished {
            outcome: Outcome::Partial,
            unclean: vec![("b".into(), "not seen ending".into())],
        },
    ];
    (1..).zip(all).map(|(ns, event)| at(ns, event)).collect()
}

fn measured() -> FlowRecord {
    let stream = |rtt_us, busy_us| StreamRecord {
        bytes: 12_500_000,
        tcp_info: Some(TcpInfo {
            rtt_us,
            busy_us: Some(busy_us),
            ..TcpInfo::default()
        }),
        retransmits: Some(busy_us / 5),
        ..StreamRecord::default()
    };
    let interval = |offset_ns| Interval {
        offset_ns,
        length_ns: 1_000_000_000,
        bytes: 12_500_000,
    };
    FlowRecord {
        is_aggressor: false,
        outcome: FlowOutcome::Measured,
        sender: Some(EndRecord {
            bytes: 25_000_100,
            window_ns: 2_000_000_001,
            streams: vec![stream(200, 7), stream(250, 10)],
            transactions: Some(4),
            latency: Some(Latency {
                times: times(&[(400, 3), (900, 1)]),
                uncorrected: Some(times(&[(390, 4)])),
            }),
            connect_latency: Some(times(&[(70, 4)])),
            cpu: Some(CpuUse {
                busy_ns: 800,
                cpus: 2,
                ..CpuUse::default()
            }),
            notes: vec![
                FigureNote::SenderDidNotTouchBytes,
                FigureNote::PacedByKernel,
            ],
            ..EndRecord::default()
        }),
        receiver: Some(EndRecord {
            bytes: 25_000_000,
            window_ns: 2_000_000_000,
            intervals: vec![interval(0), interval(1_000_000_000)],
            datagrams: Some(DatagramCounts {
                received: 90,
                lost: 10,
                reordered: 3,
                duplicates: 2,
                jitter_ns: 55,
            }),
            ..EndRecord::default()
        }),
        ..missing()
    }
}

fn times(buckets: &[(u64, u64)]) -> Histogram {
    let mut times = Histogram::default();
    for (time_ns, count) in buckets {
        times.merge(&Histogram::of(*time_ns, *count));
    }
    times
}

fn missing() -> FlowRecord {
    FlowRecord {
        is_aggressor: false,
        stage: StageIndex(0),
        round: RoundIndex(0),
        flow: FlowId(0),
        sample: 0,
        src: HostId(0),
        dst: HostId(1),
        outcome: FlowOutcome::Missing {
            reason: "b was lost".into(),
        },
        sender: None,
        receiver: None,
    }
}

fn facts() -> HostFacts {
    HostFacts {
        kernel: "6.1.0".into(),
        interfaces: vec![InterfaceFacts {
            name: "eth0".into(),
            speed_bits_per_sec: Some(1e10),
            ..InterfaceFacts::default()
        }],
        ..HostFacts::default()
    }
}

fn sample() -> HostSample {
    HostSample {
        agent_ns: 50,
        cpus: vec![CpuCounters {
            cpu: 3,
            softirq_ticks: Some(11),
            ..CpuCounters::default()
        }],
        interfaces: vec![InterfaceCounters {
            name: "eth0".into(),
            tx_drops: 2,
            ..InterfaceCounters::default()
        }],
        cost: Some(ReadingCost {
            cpu_ns: 300_000,
            wall_ns: 400_000,
        }),
        causes: Some(Box::new(CauseCounters {
            softnet: vec![(3, SoftnetCounters::default())],
            traffic: vec![ProcessTraffic {
                pid: Some(4711),
                command: "backup".into(),
                sent_bytes: 900,
                ..ProcessTraffic::default()
            }],
            traffic_ns: Some(45),
            ..CauseCounters::default()
        })),
        ..HostSample::default()
    }
}

fn inventory() -> Inventory {
    let host = |name: &str, rack| Host {
        name: name.into(),
        address: None,
        rack,
    };
    Inventory {
        hosts: vec![host("a", Some(RackId(0))), host("b", None), host("c", None)],
        racks: vec![Rack { name: "r1".into() }],
    }
}

fn plan() -> Plan {
    let flow = Flow {
        id: FlowId(0),
        src: HostId(0),
        dst: HostId(1),
        opened_by: End::Src,
        lane: None,
        is_aggressor: false,
        traces: None,
    };
    Plan {
        scenario: "qualify".into(),
        seed: u64::MAX,
        expect: Expect::default(),
        stages: vec![Stage {
            name: "inside".into(),
            pattern: Pattern::Permutation,
            workload: Workload {
                streams: 2,
                ..Workload::of(WorkloadKind::TcpStream)
            },
            duration_ns: 2_000_000_000,
            warm_up_ns: 0,
            gap_ns: 0,
            auto: None,
            sweep: None,
            rounds: vec![Round {
                sample: 0,
                senders_per_rack: None,
                flows: vec![flow],
            }],
        }],
        random_order: false,
        dropped_tests: Vec::new(),
        interleaved: Vec::new(),
        host_rates: Vec::new(),
        rate_limit: None,
        line_rates: Vec::new(),
    }
}

fn manifest(started_unix_ns: u64) -> RunManifest {
    RunManifest {
        format_version: FORMAT_VERSION,
        id: "19700101T000000Z-qualify-abcdef".into(),
        version: "0.1.0".into(),
        started_unix_ns,
        finished_unix_ns: None,
        fleet: "local".into(),
        command: vec!["eastwest".into(), "run".into()],
        scenario: Scenario {
            name: "qualify".into(),
            description: String::new(),
            expect: Expect::default(),
            tests: Vec::new(),
            time_budget_ns: None,
            random_order: false,
            roles: None,
            thresholds: Vec::new(),
        },
        inventory: inventory(),
        seed: u64::MAX,
        node_labels: BTreeMap::new(),
        barriers: Vec::new(),
        plan_hash: plan_hash(&plan()),
        outcome: Outcome::Unfinished,
        controller_peak_bytes: None,
        controller_cpu_ns: None,
    }
}
