//! The file back end on a temporary directory: a whole life of files, and everything that can go
//! wrong with them.
#![expect(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it should be"
)]

use ew_model::storage::{
    FileOutcome, MAX_FILES_PER_HOST, StorageJob, StorageOperation, StorageOrder, StorageReport,
};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

const FILE_BYTES: u64 = 300_000;

fn order(target: &Path, operation: StorageOperation) -> StorageOrder {
    StorageOrder {
        step: 0,
        operation,
        job: StorageJob {
            target: format!("file://{}", target.display()),
            file_bytes: FILE_BYTES,
            buffer_bytes: 65_536,
            parallel: 2,
            direct: false,
            sync: true,
            drop_cache: true,
            verify: true,
            seed: 42,
            replication: None,
            block_bytes: None,
            time_ns: None,
            testdfsio: None,
        },
        files: (0..4).collect(),
        present_bytes: FILE_BYTES,
        start_ns: 0,
    }
}

fn run(target: &Path, operation: StorageOperation) -> StorageReport {
    run_order(&order(target, operation))
}

fn run_order(order: &StorageOrder) -> StorageReport {
    let order = StorageOrder {
        start_ns: ew_sys::clock::monotonic_ns(),
        ..order.clone()
    };
    ew_storage::run(&order, &AtomicBool::new(false))
}

fn all_done(report: &StorageReport) -> bool {
    let done = |outcome: &FileOutcome| *outcome == FileOutcome::Done;
    report.error.is_none() && report.files.iter().all(|file| done(&file.outcome))
}

fn path(target: &TempDir, file: u32) -> std::path::PathBuf {
    target.path().join(format!("eastwest-dfsio/test_io_{file}"))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn files_are_written_read_appended_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let written = run(dir.path(), StorageOperation::Write);
    assert!(all_done(&written), "{written:?}");
    assert_eq!(written.files.len(), 4);
    assert_eq!(written.interval_bytes.iter().sum::<u64>(), 4 * FILE_BYTES);
    assert_eq!(written.calls.count(), 4 * 5);
    for file in &written.files {
        assert_eq!(file.bytes, FILE_BYTES);
        assert!(file.first_byte_ns <= file.io_ns && file.open_ns.is_some());
        assert!(file.dfsio_ns(StorageOperation::Write) > file.io_ns);
    }
    let read = run(dir.path(), StorageOperation::Read);
    assert!(all_done(&read), "{read:?}");
    let random = run(dir.path(), StorageOperation::RandomRead);
    assert!(all_done(&random), "{random:?}");
    assert_eq!(random.files[0].bytes, 4 * 65_536);
    let appended = run(dir.path(), StorageOperation::Append);
    assert!(all_done(&appended), "{appended:?}");
    let twice = run_order(&StorageOrder {
        present_bytes: 2 * FILE_BYTES,
        ..order(dir.path(), StorageOperation::Read)
    });
    assert!(all_done(&twice), "{twice:?}");
    assert_eq!(twice.files[0].bytes, 2 * FILE_BYTES);
    let cleaned = run_order(&StorageOrder {
        files: Vec::new(),
        ..order(dir.path(), StorageOperation::Clean)
    });
    assert!(
        all_done(&cleaned) && cleaned.files.len() == 4,
        "{cleaned:?}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "folder left");
}

/// Of several hosts with one target each lists the same files.
#[test]
fn a_clean_removes_more_files_than_a_report_lists() {
    let dir = tempfile::tempdir().unwrap();
    assert!(all_done(&run(dir.path(), StorageOperation::Write)));
    let many = MAX_FILES_PER_HOST as u32 + 5;
    (0..many).for_each(|file| fs::write(path(&dir, file), "").unwrap());
    let cleaned = run_order(&StorageOrder {
        files: Vec::new(),
        ..order(dir.path(), StorageOperation::Clean)
    });
    assert!(all_done(&cleaned), "{:?}", cleaned.notes);
    assert_eq!(cleaned.files.len(), MAX_FILES_PER_HOST);
    assert!(
        cleaned.notes.concat().contains("10005 files"),
        "{:?}",
        cleaned.notes
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "folder left");
}

/// So that every worker is at work until the time is over, and no file is skipped.
#[test]
fn files_are_passed_again_until_the_time_is_over() {
    const TIME_NS: u64 = 1_500_000_000;
    let dir = tempfile::tempdir().unwrap();
    for operation in [StorageOperation::Write, StorageOperation::Read] {
        let mut order = order(dir.path(), operation);
        order.job.time_ns = Some(TIME_NS);
        let report = run_order(&order);
        assert!(all_done(&report), "{report:?}");
        for worker in 0..2 {
            let own = report.files.iter().filter(|file| file.worker == worker);
            let own: Vec<_> = own.collect();
            let files: Vec<u32> = own.iter().map(|file| file.file).take(3).collect();
            assert_eq!(files, [worker, worker + 2, worker], "{operation:?}");
            assert!(own.last().unwrap().end_ns() >= TIME_NS, "{operation:?}");
        }
    }
    let mut once = order(dir.path(), StorageOperation::Append);
    once.job.time_ns = Some(TIME_NS);
    assert_eq!(
        run_order(&once).files.len(),
        4,
        "a file would grow on and on"
    );
}

#[test]
fn direct_io_has_the_same_content() {
    // Not every file system of a temporary directory can: the one of the sources is on a disk.
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let mut order = order(dir.path(), StorageOperation::Write);
    order.job.direct = true;
    let written = run_order(&order);
    assert!(all_done(&written), "{written:?}");
    let buffered = run(dir.path(), StorageOperation::Read);
    assert!(all_done(&buffered), "{buffered:?}");
    order.operation = StorageOperation::Read;
    assert!(all_done(&run_order(&order)));
}

#[test]
fn wrong_bytes_are_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), StorageOperation::Write);
    let flip = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path(&dir, 1))
        .unwrap();
    let mut byte = [0];
    flip.read_exact_at(&mut byte, 123_456).unwrap();
    flip.write_all_at(&[byte[0] ^ 1], 123_456).unwrap();
    fs::copy(path(&dir, 0), path(&dir, 2)).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(path(&dir, 3))
        .unwrap()
        .set_len(FILE_BYTES - 1)
        .unwrap();
    let read = run(dir.path(), StorageOperation::Read);
    let outcome = |file: u32| {
        let mut files = read.files.iter();
        files.find(|r| r.file == file).unwrap().outcome.clone()
    };
    assert_eq!(outcome(0), FileOutcome::Done);
    match outcome(1) {
        FileOutcome::Corrupt { offset, found } => {
            assert_eq!(offset, 123_456);
            assert!(found.starts_with("1 byte differs"), "{found}");
        }
        other => panic!("{other:?}"),
    }
    match outcome(2) {
        FileOutcome::Corrupt { offset: 0, found } => {
            assert!(found.ends_with("offset 0 of file 0"), "{found}");
        }
        other => panic!("{other:?}"),
    }
    match outcome(3) {
        FileOutcome::Failed { error } => assert!(error.contains("ends after 299999"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_disk_is_named_and_nothing_half_written_stays() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("eastwest-dfsio")).unwrap();
    std::os::unix::fs::symlink("/dev/full", path(&dir, 2)).unwrap();
    let mut order = order(dir.path(), StorageOperation::Write);
    order.job.sync = false;
    let report = run_order(&order);
    let failed: Vec<_> = report
        .files
        .iter()
        .filter(|file| file.outcome != FileOutcome::Done)
        .collect();
    assert_eq!(failed.len(), 1, "{report:?}");
    match &failed[0].outcome {
        FileOutcome::Failed { error } => assert!(error.contains("ENOSPC"), "{error}"),
        other => panic!("{other:?}"),
    }
    assert!(fs::symlink_metadata(path(&dir, 2)).is_err(), "it stays");
}

#[test]
fn what_is_missing_or_forbidden_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = run(&dir.path().join("no-mount"), StorageOperation::Write);
    let error = nowhere.error.unwrap();
    assert!(
        error.contains("no such file") && error.contains("no-mount"),
        "{error}"
    );
    let unwritten = run(dir.path(), StorageOperation::Read);
    assert!(
        matches!(&unwritten.files[0].outcome, FileOutcome::Failed { error } if error.contains("write before reading"))
    );
    let mut order = order(dir.path(), StorageOperation::Write);
    order.job.target = "ftp://server/".into();
    let error = run_order(&order).error.unwrap();
    assert!(error.contains("`ftp` is unknown"), "{error}");
    if is_root() {
        // Root may write anywhere; that the words are right is tested with the binary as another
        // user.
        return;
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let error = run(dir.path(), StorageOperation::Write).error.unwrap();
    assert!(error.contains("permission denied"), "{error}");
}

#[test]
fn a_cancelled_step_leaves_no_part_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut order = order(dir.path(), StorageOperation::Write);
    order.job.file_bytes = 1 << 40;
    order.job.sync = false;
    let cancelled = AtomicBool::new(false);
    order.start_ns = ew_sys::clock::monotonic_ns();
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| ew_storage::run(&order, &cancelled));
        std::thread::sleep(std::time::Duration::from_millis(30));
        cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
        running.join().unwrap()
    });
    assert!(!report.files.is_empty());
    assert!(
        report
            .files
            .iter()
            .all(|f| f.outcome == FileOutcome::Cancelled)
    );
    let left = fs::read_dir(dir.path().join("eastwest-dfsio")).unwrap();
    assert_eq!(left.count(), 0);
}
