use super::*;
use ew_model::record::TcpInfo;

const PEER: &str = "192.0.2.9:40000";

fn socket(cookie: u64, sent: u64, received: u64) -> TcpSocket {
    TcpSocket {
        cookie,
        local: "192.0.2.1:5000".parse().unwrap(),
        remote: PEER.parse().unwrap(),
        state: TcpSocket::ESTABLISHED,
        inode: cookie as u32,
        uid: 0,
        pid: None,
        receive_queue: 0,
        send_queue: 0,
        acked_bytes: Some(sent),
        received_bytes: Some(received),
        data_segments_out: None,
        info: TcpInfo::default(),
    }
}

fn to(peer: &str, cookie: u64, sent: u64) -> TcpSocket {
    TcpSocket {
        remote: peer.parse().unwrap(),
        ..socket(cookie, sent, 0)
    }
}

fn take(totals: &mut ByteTotals, living: &[TcpSocket], died: &[TcpSocket]) {
    totals.take(living, died, &|_, _| None);
}

/// Process, sent, received, number of peers.
fn reported(totals: &ByteTotals) -> Vec<(Option<u32>, u64, u64, usize)> {
    let traffic = totals.traffic();
    let figures = traffic.iter();
    figures
        .map(|t| (t.pid, t.sent_bytes, t.received_bytes, t.peers.len()))
        .collect()
}

fn resent(cookie: u64, sent: u32, retransmitted: u32) -> TcpSocket {
    TcpSocket {
        data_segments_out: Some(sent),
        info: TcpInfo {
            total_retransmits: retransmitted,
            ..TcpInfo::default()
        },
        ..socket(cookie, 0, 0)
    }
}

/// Process, segments sent, retransmitted.
fn segments(totals: &ByteTotals, guess: Guess<'_>) -> Vec<(Option<u32>, u64, u64)> {
    let segments = totals.segments(guess).into_iter();
    let figures = segments.map(|(pid, of)| (pid, of.sent, of.retransmitted));
    figures.collect()
}

#[test]
fn segments_count_from_the_first_reading_and_stay_when_sockets_close() {
    let mut totals = ByteTotals::default();
    take(&mut totals, &[resent(1, 100, 9)], &[]);
    take(&mut totals, &[resent(1, 150, 11), resent(2, 20, 4)], &[]);
    totals.name_owners(&|inode| (inode == 2).then_some(72));
    let unknown = [(None, 50, 2), (Some(72), 20, 4)];
    assert_eq!(segments(&totals, &|_, _| None), unknown);
    assert_eq!(segments(&totals, &|_, _| Some(72)), [(Some(72), 70, 6)]);
    // A connection that carries nothing because all of it is lost counts, too.
    take(&mut totals, &[], &[resent(2, 25, 9)]);
    assert_eq!(
        segments(&totals, &|_, _| None),
        [(None, 50, 2), (Some(72), 25, 9)]
    );
}

#[test]
fn segments_go_on_where_the_kernels_counts_wrap() {
    let mut totals = ByteTotals::default();
    take(&mut totals, &[resent(1, u32::MAX - 9, u32::MAX)], &[]);
    take(&mut totals, &[resent(1, 40, 1)], &[]);
    assert_eq!(segments(&totals, &|_, _| None), [(None, 50, 2)]);
    // Around once since the first reading.
    for sent in [2_000_000_000, 4_000_000_000, 0] {
        take(&mut totals, &[resent(1, sent, 1)], &[]);
    }
    assert_eq!(segments(&totals, &|_, _| None), [(None, (1 << 32) + 10, 2)]);
    // The same peer is asked again by the same socket.
    take(&mut totals, &[resent(1, 0, 0)], &[]);
    assert_eq!(segments(&totals, &|_, _| None), [(None, (1 << 32) + 10, 2)]);
}

#[test]
fn what_was_carried_before_the_first_reading_does_not_count() {
    let mut totals = ByteTotals::default();
    take(&mut totals, &[socket(1, 1000, 10)], &[]);
    assert_eq!(reported(&totals), []);
    // One goes on, one is born.
    take(&mut totals, &[socket(1, 1500, 10), socket(2, 7, 0)], &[]);
    totals.name_owners(&|inode| Some(inode + 70));
    assert_eq!(
        reported(&totals),
        [(Some(71), 500, 0, 1), (Some(72), 7, 0, 1)]
    );
    // Closed ones keep what they carried in their last moments.
    take(&mut totals, &[], &[socket(1, 1600, 10)]);
    assert_eq!(reported(&totals)[0], (Some(71), 600, 0, 1));
}

#[test]
fn an_owner_found_late_has_carried_everything() {
    let mut totals = ByteTotals::default();
    take(&mut totals, &[], &[]);
    take(&mut totals, &[socket(1, 100_000, 0)], &[]);
    assert_eq!(reported(&totals), [(None, 100_000, 0, 1)]);
    assert_eq!(totals.ownerless(100_001).count(), 0);
    assert_eq!(totals.ownerless(100_000).collect::<Vec<_>>(), [1]);
    totals.name_owners(&|_| Some(9));
    assert_eq!(totals.ownerless(0).count(), 0);
    assert_eq!(reported(&totals), [(Some(9), 100_000, 0, 1)]);
}

#[test]
fn a_short_life_is_its_listeners() {
    let mut totals = ByteTotals::default();
    take(&mut totals, &[], &[]);
    totals.take(&[], &[socket(1, 0, 999)], &|local, _| {
        (local.port() == 5000).then_some(44)
    });
    assert_eq!(reported(&totals), [(Some(44), 0, 999, 1)]);
}

#[test]
fn a_death_counts_once_however_it_is_told() {
    let mut totals = ByteTotals::default();
    take(&mut totals, &[], &[]);
    take(&mut totals, &[socket(1, 10, 0)], &[]);
    // In neither, then among the deaths.
    take(&mut totals, &[], &[]);
    take(&mut totals, &[], &[socket(1, 30, 0)]);
    assert_eq!(reported(&totals), [(None, 30, 0, 1)]);
    // In both.
    take(&mut totals, &[socket(2, 5, 0)], &[socket(2, 5, 0)]);
    assert_eq!(reported(&totals), [(None, 35, 0, 1)]);
    // Never reported.
    take(&mut totals, &[socket(3, 4, 0)], &[]);
    for _ in 0..5 {
        take(&mut totals, &[], &[]);
    }
    assert_eq!(reported(&totals), [(None, 39, 0, 1)]);
    assert!(totals.living.is_empty());
}

#[test]
fn a_socket_used_again_counts_from_zero() {
    let mut totals = ByteTotals::default();
    take(&mut totals, &[], &[]);
    take(&mut totals, &[to(PEER, 1, 500)], &[]);
    totals.name_owners(&|_| Some(6));
    take(&mut totals, &[to("192.0.2.8:1", 1, 600)], &[]);
    take(&mut totals, &[to("192.0.2.8:1", 1, 50)], &[]);
    assert_eq!(reported(&totals), [(Some(6), 1150, 0, 2)]);
}

#[test]
fn only_what_leaves_the_host_counts() {
    let mut totals = ByteTotals::default();
    take(&mut totals, &[], &[]);
    let own = to("192.0.2.1:80", 1, 50);
    let looped = to("127.0.0.1:80", 2, 50);
    let mut listener = socket(3, 50, 50);
    listener.state = TcpSocket::LISTEN;
    take(&mut totals, &[own, looped, listener], &[]);
    assert_eq!(reported(&totals), []);
}

#[test]
fn peers_and_processes_are_bounded_and_the_greatest_are_told() {
    let mut totals = ByteTotals::default();
    take(&mut totals, &[], &[]);
    let many: Vec<TcpSocket> = (0..MAX_SHARES as u64 + 20)
        .map(|index| {
            let peer = format!("198.51.{}.{}:9", index / 200, index % 200 + 1);
            to(&peer, index, 1000 + index)
        })
        .collect();
    take(&mut totals, &many, &[]);
    totals.name_owners(&|_| Some(5));
    take(&mut totals, &[], &many);
    assert_eq!(totals.closed[&Some(5)].peers.0.len(), MAX_SHARES);
    let sum: u64 = many.iter().filter_map(|s| s.acked_bytes).sum();
    assert_eq!(reported(&totals), [(Some(5), sum, 0, SHARES_TOLD)]);
    let peers = &totals.traffic()[0].peers;
    assert!(
        peers
            .windows(2)
            .all(|two| two[0].sent_bytes >= two[1].sent_bytes)
    );
    for process in 0..MAX_PROCESSES as u64 + 20 {
        totals.take(&[], &[socket(10_000 + process, 1, 0)], &|_, _| {
            Some(process as u32 + 100)
        });
    }
    assert!(totals.closed.len() <= MAX_PROCESSES + 1);
    assert_eq!(totals.traffic().len(), PROCESSES_TOLD);
}

#[test]
fn bytes_are_the_services_that_a_process_uses_or_serves() {
    let mut totals = ByteTotals::default();
    take(&mut totals, &[], &[]);
    let mut listener = socket(1, 0, 0);
    listener.state = TcpSocket::LISTEN;
    listener.remote = "0.0.0.0:0".parse().unwrap();
    let elsewhere = |cookie, sent| {
        let mut socket = to("192.0.2.8:2049", cookie, sent);
        socket.local.set_port(50_000 + cookie as u16);
        socket
    };
    let (first, second) = (elsewhere(3, 700), elsewhere(4, 50));
    take(
        &mut totals,
        &[listener, socket(2, 5, 300), first.clone()],
        &[second],
    );
    // It was served here when the connection was made.
    take(&mut totals, &[socket(2, 5, 400), first], &[]);
    totals.name_owners(&|inode| (inode != 4).then_some(9));
    let ports = |of: usize| {
        let traffic = totals.traffic();
        let reported = traffic[of].ports.iter();
        reported
            .map(|p| {
                (
                    p.service.port,
                    p.service.served_here,
                    p.sent_bytes,
                    p.received_bytes,
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(ports(0), [(2049, false, 700, 0), (5000, true, 5, 400)]);
    assert_eq!(ports(1), [(2049, false, 50, 0)], "closed");
}
