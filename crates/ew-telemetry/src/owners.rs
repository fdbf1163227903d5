//! Which process holds a socket: `/proc/PID/fd/N` points at `socket:[INODE]`, see proc(5).
//!
//! Walking all of /proc costs about 2 µs per open file, so it is done only for sockets not seen
//! before, remembered as long as the socket lives, and bounded per reading: a walk that is too long
//! goes on at the next reading.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Open files checked in one reading: about 5 ms.
const FILES_PER_READING: usize = 2_000;

/// Inode to process, as far as seen.
#[derive(Debug, Default)]
pub(crate) struct SocketOwners {
    known: BTreeMap<u32, u32>,
    /// Sockets that a whole walk did not find: another user's, or the kernel's own.
    nobodys: BTreeSet<u32>,
    /// Where an unfinished walk goes on, and what it searches.
    walk: Option<Walk>,
    /// Processes whose files may not be read.
    refused: usize,
}

#[derive(Debug)]
struct Walk {
    wanted: BTreeSet<u32>,
    processes: Vec<u32>,
    refused: usize,
}

impl SocketOwners {
    /// Finds the owners of the sockets that live, and forgets those that do not.
    pub(crate) fn update(&mut self, root: &Path, living: &BTreeSet<u32>) {
        self.known.retain(|inode, _| living.contains(inode));
        self.nobodys.retain(|inode| living.contains(inode));
        let is_new =
            |inode: &&u32| !self.known.contains_key(inode) && !self.nobodys.contains(inode);
        let wanted: BTreeSet<u32> = living.iter().filter(is_new).copied().collect();
        if wanted.is_empty() {
            self.walk = None;
            return;
        }
        let mut walk = self.walk.take().unwrap_or_else(|| Walk {
            wanted: wanted.clone(),
            processes: processes(root),
            refused: 0,
        });
        if self.go_on(root, &mut walk) {
            self.refused = walk.refused;
            let missed = |inode: &u32| !self.known.contains_key(inode) && living.contains(inode);
            let missed: Vec<u32> = walk.wanted.into_iter().filter(missed).collect();
            self.nobodys.extend(missed);
        } else {
            self.walk = Some(walk);
        }
    }

    /// Finds the owners of `wanted` among this process' own files only.
    pub(crate) fn look_at_own(&mut self, root: &Path, wanted: &BTreeSet<u32>) {
        let is_known = |inode: &u32| self.known.contains_key(inode);
        if wanted.iter().all(is_known) {
            return;
        }
        let own = sockets_of(&root.join("proc/self/fd"), FILES_PER_READING);
        if let Files::Seen { sockets, .. } = own {
            let found = sockets.into_iter().filter(|inode| wanted.contains(inode));
            self.known
                .extend(found.map(|inode| (inode, std::process::id())));
        }
    }

    /// The process that holds a socket.
    pub(crate) fn of(&self, inode: u32) -> Option<u32> {
        self.known.get(&inode).copied()
    }

    /// How many processes' files this user may not see.
    pub(crate) fn refused(&self) -> usize {
        self.refused
    }

    /// Whether the walk came to its end.
    fn go_on(&mut self, root: &Path, walk: &mut Walk) -> bool {
        let mut left = FILES_PER_READING;
        while let Some(pid) = walk.processes.pop() {
            match sockets_of(&root.join(format!("proc/{pid}/fd")), left) {
                Files::Refused => walk.refused += 1,
                Files::Seen { sockets, looked_at } => {
                    self.known
                        .extend(sockets.into_iter().map(|inode| (inode, pid)));
                    left = left.saturating_sub(looked_at);
                }
            }
            if left == 0 {
                return walk.processes.is_empty();
            }
        }
        true
    }
}

enum Files {
    Refused,
    Seen { sockets: Vec<u32>, looked_at: usize },
}

/// A process with more files than are left is checked whole: half a process would never be
/// finished.
fn sockets_of(folder: &Path, left: usize) -> Files {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Files::Refused;
        }
        // Ended meanwhile.
        Err(_) => {
            return Files::Seen {
                sockets: Vec::new(),
                looked_at: 1,
            };
        }
    };
    let bound = left.max(FILES_PER_READING) * 32;
    let mut sockets = Vec::new();
    let mut looked_at = 1;
    for entry in entries.flatten().take(bound) {
        looked_at += 1;
        sockets.extend(
            std::fs::read_link(entry.path())
                .ok()
                .and_then(|link| inode_of(&link)),
        );
    }
    Files::Seen { sockets, looked_at }
}

fn inode_of(link: &Path) -> Option<u32> {
    let text = link.to_str()?.strip_prefix("socket:[")?;
    text.strip_suffix(']')?.parse().ok()
}

/// All processes, the youngest last, because new sockets are most often theirs and a walk begins at
/// the end.
fn processes(root: &Path) -> Vec<u32> {
    let mut pids: Vec<u32> = crate::processes::pids(root).collect();
    pids.sort_unstable();
    pids
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    /// A tree in which process `pid` holds `inodes`.
    fn tree(held: &[(u32, &[u32])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (pid, inodes) in held {
            let folder = root.path().join(format!("proc/{pid}/fd"));
            std::fs::create_dir_all(&folder).unwrap();
            symlink("/dev/null", folder.join("0")).unwrap();
            for (index, inode) in inodes.iter().enumerate() {
                symlink(
                    format!("socket:[{inode}]"),
                    folder.join((index + 3).to_string()),
                )
                .unwrap();
            }
        }
        root
    }

    #[test]
    fn holders_are_found_remembered_and_forgotten() {
        let root = tree(&[(10, &[7, 8]), (11, &[9])]);
        let mut owners = SocketOwners::default();
        owners.update(root.path(), &[7, 9, 99].into());
        assert_eq!(
            (owners.of(7), owners.of(9), owners.of(99)),
            (Some(10), Some(11), None)
        );
        assert!(owners.nobodys.contains(&99), "not searched again");
        // The process is gone, the socket (held elsewhere, unseen) lives: what was seen is kept.
        std::fs::remove_dir_all(root.path().join("proc/10")).unwrap();
        owners.update(root.path(), &[7].into());
        assert_eq!((owners.of(7), owners.of(9)), (Some(10), None));
        assert!(owners.nobodys.is_empty());
    }

    #[test]
    fn a_long_walk_goes_on_at_the_next_reading() {
        let many: Vec<u32> = (100..100 + FILES_PER_READING as u32).collect();
        let root = tree(&[(20, &[7]), (21, &many)]);
        let mut owners = SocketOwners::default();
        owners.update(root.path(), &[7].into());
        assert_eq!(
            owners.of(7),
            None,
            "process 21 took all that may be checked"
        );
        assert!(owners.nobodys.is_empty());
        owners.update(root.path(), &[7].into());
        assert_eq!(owners.of(7), Some(20));
    }

    #[test]
    fn this_process_holds_its_socket() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&socket));
        let inode = std::fs::metadata(link).unwrap().ino() as u32;
        let mut owners = SocketOwners::default();
        for _ in 0..1000 {
            owners.update(Path::new("/"), &[inode].into());
        }
        assert_eq!(owners.of(inode), Some(std::process::id()));
    }
}
