//! What administrators ask a NameNode, by Hadoop's RPC: which DataNodes there are, and to read its
//! hosts file again; and where files are.
//!
//! hdfs-native has none of these calls. They are few, so the protocol is spoken here: frames of
//! length-delimited protobuf messages (`RpcHeader.proto`, `ClientNamenodeProtocol.proto`), one
//! connection per call, simple authentication.

use crate::error::{Problem, StorageError};
use crate::hdfs::{HdfsTarget, of_java};
use crate::hdfs_user::hdfs_user;
use crate::passage::NAME_PREFIX;
use crate::protobuf::{self, Field};
use ew_model::storage::{DataNode, DataNodeState, HdfsFacts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

const PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
/// Version 9, service class 0, no SASL.
const GREETING: &[u8] = b"hrpc\x09\x00\x00";
/// Of the connection's context, which has no answer.
const CONTEXT_CALL: i32 = -3;
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const DEFAULTS: &str = "ask the defaults of";
const LOCATIONS: &str = "ask for the blocks of the files in";
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// A report of ten thousand DataNodes takes 3 MB.
const MAX_ANSWER_BYTES: u32 = 64 << 20;
/// A NameNode lists a thousand blocks per call.
const LISTING_LIMIT: Duration = Duration::from_secs(30);
/// `DatanodeReportTypeProto`.
const LIVE: u64 = 2;
const DEAD: u64 = 3;

/// A NameNode, and as whom it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameNode {
    /// `HOST:PORT` of its RPC server.
    pub address: String,
    /// The user; must be a superuser of HDFS to change anything.
    pub user: String,
}

impl NameNode {
    /// Asked as the user that HDFS's clients are here.
    ///
    /// # Errors
    /// [`Problem::NoClient`] when there is no user.
    pub fn new(address: &str) -> Result<Self, StorageError> {
        let user = hdfs_user().map_err(|error| StorageError::new("ask", address, error))?;
        Ok(Self {
            address: address.to_owned(),
            user,
        })
    }

    /// All DataNodes that are alive, by name.
    ///
    /// # Errors
    /// The NameNode's, by name.
    pub fn data_nodes(&self) -> Result<Vec<DataNode>, StorageError> {
        self.data_nodes_of(LIVE)
    }

    fn data_nodes_of(&self, kind: u64) -> Result<Vec<DataNode>, StorageError> {
        let question = protobuf::message(|m| m.number(1, kind));
        let answer = self.call("list the DataNodes of", "getDatanodeReport", &question)?;
        let mut nodes: Vec<DataNode> = protobuf::fields(&answer)
            .filter(|(number, _)| *number == 1)
            .filter_map(|(_, field)| data_node(field.bytes()?))
            .collect();
        nodes.sort_by(|a, b| a.host.cmp(&b.host));
        Ok(nodes)
    }

    /// Its capacity and defaults, and to superusers its DataNodes.
    ///
    /// # Errors
    /// The NameNode's, by name.
    pub fn facts(&self) -> Result<HdfsFacts, StorageError> {
        let defaults = self.defaults()?;
        let stats = self.call("ask the capacity of", "getFsStats", &[])?;
        let number = |message: &[u8], tag| protobuf::first(message, tag)?.number();
        let data_nodes = unless_denied(self.data_nodes())?;
        let dead = match data_nodes {
            Some(_) => unless_denied(self.data_nodes_of(DEAD))?,
            None => None,
        };
        Ok(HdfsFacts {
            name_node: self.address.clone(),
            replication: replication(&defaults),
            block_bytes: number(&defaults, 1),
            capacity_bytes: number(&stats, 1),
            remaining_bytes: number(&stats, 3),
            data_nodes,
            dead: dead.map(|nodes| nodes.into_iter().map(|node| node.host).collect()),
        })
    }

    /// Copies of each block where a file asks for none.
    ///
    /// # Errors
    /// The NameNode's, by name.
    pub fn default_replication(&self) -> Result<u32, StorageError> {
        let found = replication(&self.defaults()?);
        found.ok_or_else(|| self.failed(DEFAULTS, no_hdfs()))
    }

    /// `FsServerDefaultsProto`.
    fn defaults(&self) -> Result<Vec<u8>, StorageError> {
        let answer = self.call(DEFAULTS, "getServerDefaults", &[])?;
        let defaults = protobuf::first(&answer, 1).and_then(|field| field.bytes());
        let defaults = defaults.map(<[u8]>::to_vec);
        defaults.ok_or_else(|| self.failed(DEFAULTS, no_hdfs()))
    }

    /// Test files below a target whose blocks are all on one DataNode and nowhere else: number and
    /// node.
    ///
    /// # Errors
    /// The NameNode's, by name; [`Problem::NoAnswer`] when the folder's list takes too long.
    pub fn data_node_of_files(
        &self,
        target: &HdfsTarget,
    ) -> Result<Vec<(u32, String)>, StorageError> {
        let folder = target.folder();
        let end = Instant::now() + LISTING_LIMIT;
        let mut found = BTreeMap::new();
        let mut after = Vec::new();
        loop {
            let question = protobuf::message(|m| {
                m.bytes(1, folder.as_bytes());
                m.bytes(2, &after);
                m.number(3, 1);
            });
            let answer = self.call(LOCATIONS, "getListing", &question)?;
            let (last, remaining) = take_listing(&answer, &mut found);
            match last.filter(|_| remaining > 0) {
                None => return Ok(found.into_iter().collect()),
                Some(last) => after = last,
            }
            if Instant::now() > end {
                let seconds = LISTING_LIMIT.as_secs();
                return Err(self.failed(LOCATIONS, Problem::NoAnswer { seconds }));
            }
        }
    }

    /// It reads its hosts file again.
    ///
    /// # Errors
    /// The NameNode's, by name.
    pub fn refresh_nodes(&self) -> Result<(), StorageError> {
        self.call("refresh the nodes of", "refreshNodes", &[])
            .map(|_| ())
    }

    fn call(
        &self,
        call: &'static str,
        method: &str,
        question: &[u8],
    ) -> Result<Vec<u8>, StorageError> {
        let answered = self.exchange(method, question);
        let answer = answered.map_err(|error| self.failed(call, of_connection(&error)))?;
        body(&answer).map_err(|problem| self.failed(call, problem))
    }

    fn exchange(&self, method: &str, question: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        let context = protobuf::message(|m| {
            m.bytes(
                2,
                &protobuf::message(|user| user.bytes(1, self.user.as_bytes())),
            );
            m.bytes(3, PROTOCOL.as_bytes());
        });
        let request = protobuf::message(|m| {
            m.bytes(1, method.as_bytes());
            m.bytes(2, PROTOCOL.as_bytes());
            m.number(3, 1);
        });
        let mut sent = GREETING.to_vec();
        sent.extend(frame(&[&header(CONTEXT_CALL), &context]));
        sent.extend(frame(&[&header(0), &request, question]));
        stream.write_all(&sent)?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length);
        if length > MAX_ANSWER_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut answer = vec![0; length as usize];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    }

    /// To the first of its addresses that answers: Hadoop often listens to IPv4 alone.
    fn connect(&self) -> io::Result<TcpStream> {
        let mut failed = io::ErrorKind::NotFound.into();
        for address in self.address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn failed(&self, call: &'static str, problem: Problem) -> StorageError {
        StorageError::new(call, format!("hdfs://{}", self.address), problem)
    }
}

/// `None` for what a NameNode shows to superusers only.
fn unless_denied<T>(answer: Result<T, StorageError>) -> Result<Option<T>, StorageError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if matches!(error.problem, Problem::Denied(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn replication(defaults: &[u8]) -> Option<u32> {
    let number = protobuf::first(defaults, 4).and_then(|field| field.number());
    number.and_then(|number| u32::try_from(number).ok())
}

/// `RpcRequestHeaderProto`: protobuf engine, final packet.
fn header(call: i32) -> Vec<u8> {
    let zigzag = |value: i32| u64::from(((value << 1) ^ (value >> 31)) as u32);
    protobuf::message(|m| {
        m.number(1, 2);
        m.number(2, 0);
        m.number(3, zigzag(call));
        // Only repeated calls are distinguished by it, and none is.
        m.bytes(4, &[0; 16]);
        m.number(5, zigzag(if call < 0 { -1 } else { 0 }));
    })
}

fn frame(messages: &[&[u8]]) -> Vec<u8> {
    let mut all = Vec::new();
    for message in messages {
        protobuf::put_varint(&mut all, message.len() as u64);
        all.extend_from_slice(message);
    }
    let mut framed = (all.len() as u32).to_be_bytes().to_vec();
    framed.append(&mut all);
    framed
}

/// The answer without its header, or the exception in it.
pub(crate) fn body(answer: &[u8]) -> Result<Vec<u8>, Problem> {
    let (header, rest) = protobuf::delimited(answer).ok_or_else(no_hdfs)?;
    let status = protobuf::first(header, 2).and_then(|field| field.number());
    let words = |number| {
        let field = protobuf::first(header, number).and_then(|field| field.bytes());
        String::from_utf8_lossy(field.unwrap_or_default()).into_owned()
    };
    match status {
        Some(0) => {
            let body = protobuf::delimited(rest).map(|(body, _)| body.to_vec());
            body.ok_or_else(no_hdfs)
        }
        Some(_) => Err(of_java(&words(4), &words(5))),
        None => Err(no_hdfs()),
    }
}

fn no_hdfs() -> Problem {
    Problem::Other("the answer is not of HDFS's protocol; check host and port of --target".into())
}

fn of_connection(error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Problem::Refused,
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Problem::NoAnswer {
            seconds: ANSWER_LIMIT.as_secs(),
        },
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => no_hdfs(),
        _ => Problem::Other(error.to_string()),
    }
}

/// `DatanodeInfoProto`.
pub(crate) fn data_node(info: &[u8]) -> Option<DataNode> {
    let number = |tag| protobuf::first(info, tag).and_then(|field| field.number());
    let id = protobuf::first(info, 1)?.bytes()?;
    let word = |tag| {
        let bytes = protobuf::first(id, tag).and_then(|field: Field<'_>| field.bytes())?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    Some(DataNode {
        address: word(1)?,
        host: word(2)?,
        state: match number(10) {
            None | Some(0) => DataNodeState::InService,
            Some(3) => DataNodeState::EnteringMaintenance,
            Some(4) => DataNodeState::InMaintenance,
            Some(_) => DataNodeState::Decommissioning,
        },
        capacity_bytes: number(2).unwrap_or(0),
        remaining_bytes: number(4).unwrap_or(0),
    })
}

/// `GetListingResponseProto`: adds its files that are on one DataNode. Returns the last name, and
/// how many are still to come.
pub(crate) fn take_listing(
    answer: &[u8],
    found: &mut BTreeMap<u32, String>,
) -> (Option<Vec<u8>>, u64) {
    let list = protobuf::first(answer, 1).and_then(|field| field.bytes());
    let list = list.unwrap_or_default();
    let mut last = None;
    for (_, status) in protobuf::fields(list).filter(|(number, _)| *number == 1) {
        let status = status.bytes().unwrap_or_default();
        let name = protobuf::first(status, 2).and_then(|field| field.bytes());
        let Some(name) = name else { continue };
        last = Some(name.to_vec());
        let number = std::str::from_utf8(name).ok();
        let number = number.and_then(|name| name.strip_prefix(NAME_PREFIX)?.parse().ok());
        if let Some((number, node)) = number.zip(only_node(status)) {
            found.insert(number, node);
        }
    }
    let remaining = protobuf::first(list, 2).and_then(|field| field.number());
    (last, remaining.unwrap_or(0))
}

/// The DataNode that alone stores every block of a file (`HdfsFileStatusProto`).
fn only_node(status: &[u8]) -> Option<String> {
    let blocks = protobuf::first(status, 12)?.bytes()?;
    let blocks = protobuf::fields(blocks).filter(|(number, _)| *number == 2);
    let mut only = None;
    for (_, block) in blocks {
        let locations = protobuf::fields(block.bytes()?).filter(|(number, _)| *number == 3);
        let mut hosts = locations.filter_map(|(_, info)| Some(data_node(info.bytes()?)?.host));
        let host = hosts.next()?;
        if hosts.next().is_some() || only.as_ref().is_some_and(|only| *only != host) {
            return None;
        }
        only = Some(host);
    }
    only
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn answering(answer: Vec<u8>) -> NameNode {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut greeting = [0; GREETING.len()];
            stream.read_exact(&mut greeting).unwrap();
            assert_eq!(greeting, GREETING);
            stream.write_all(&answer).unwrap();
        });
        NameNode {
            address,
            user: "hdfs".into(),
        }
    }

    #[test]
    fn data_nodes_are_read_from_the_answer() {
        let id = protobuf::message(|m| {
            m.bytes(1, b"198.18.2.10");
            m.bytes(2, b"sh1");
        });
        let info = protobuf::message(|m| {
            m.bytes(1, &id);
            m.number(2, 1000);
            m.number(4, 900);
            m.number(10, 4);
        });
        let report = protobuf::message(|m| m.bytes(1, &info));
        let header = protobuf::message(|m| {
            m.number(1, 0);
            m.number(2, 0);
        });
        let found = answering(frame(&[&header, &report])).data_nodes().unwrap();
        assert_eq!(
            found,
            [DataNode {
                host: "sh1".into(),
                address: "198.18.2.10".into(),
                state: DataNodeState::InMaintenance,
                capacity_bytes: 1000,
                remaining_bytes: 900,
            }]
        );
    }

    /// `HdfsFileStatusProto` with blocks on these DataNodes.
    fn status(name: &str, blocks: &[&[&str]]) -> Vec<u8> {
        let location = |host: &&str| {
            let id = protobuf::message(|m| {
                m.bytes(1, b"198.18.2.10");
                m.bytes(2, host.as_bytes());
            });
            protobuf::message(|m| m.bytes(1, &id))
        };
        let located = protobuf::message(|m| {
            m.number(1, 1);
            for hosts in blocks {
                let block = protobuf::message(|m| {
                    m.number(2, 0);
                    hosts.iter().for_each(|host| m.bytes(3, &location(host)));
                });
                m.bytes(2, &block);
            }
        });
        protobuf::message(|m| {
            m.bytes(2, name.as_bytes());
            m.bytes(12, &located);
        })
    }

    #[test]
    fn a_file_is_of_the_only_node_of_all_its_blocks() {
        let files = [
            status("test_io_0", &[&["sh1"], &["sh1"]]),
            status("test_io_1", &[&["sh1"], &["sh2"]]),
            status("test_io_2", &[&["sh1", "sh2"]]),
            status("test_io_3", &[]),
            status("somebody's", &[&["sh1"]]),
            status("test_io_7", &[&["sh2"]]),
            // No DataNode has reported the second block.
            status("test_io_8", &[&["sh2"], &[]]),
        ];
        let list = protobuf::message(|m| {
            files.iter().for_each(|file| m.bytes(1, file));
            m.number(2, 0);
        });
        let answer = protobuf::message(|m| m.bytes(1, &list));
        let header = protobuf::message(|m| m.number(2, 0));
        let target = HdfsTarget::parse("nn:8020/bench").unwrap();
        let found = answering(frame(&[&header, &answer])).data_node_of_files(&target);
        assert_eq!(found.unwrap(), [(0, "sh1".into()), (7, "sh2".into())]);
    }

    #[test]
    fn a_long_folder_is_asked_for_from_the_last_name_on() {
        let list = protobuf::message(|m| {
            m.bytes(1, &status("test_io_0", &[&["sh1"]]));
            m.number(2, 5);
        });
        let answer = protobuf::message(|m| m.bytes(1, &list));
        let mut found = BTreeMap::new();
        let next = take_listing(&answer, &mut found);
        assert_eq!(next, (Some(b"test_io_0".to_vec()), 5));
        assert_eq!(take_listing(b"", &mut found), (None, 0));
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn what_is_no_name_node_is_said_so() {
        let http = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec());
        let words = http.refresh_nodes().unwrap_err().to_string();
        assert!(words.contains("not of HDFS's protocol"), "{words}");
        let header = protobuf::message(|m| {
            m.number(2, 1);
            m.bytes(4, b"org.apache.hadoop.security.AccessControlException");
            m.bytes(
                5,
                b"Access denied for user bob. Superuser privilege is required\nat",
            );
        });
        let denied = answering(frame(&[&header])).refresh_nodes().unwrap_err();
        assert!(denied.to_string().contains("Superuser"), "{denied}");
    }
}
