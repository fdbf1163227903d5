//! What each side sends the other at the end.

use super::lenient;
use super::params::MAX_STREAMS;
use serde_json::{Map, Value, json};
use thiserror::Error;

/// Most bytes of a congestion control algorithm's name that are kept.
const MAX_NAME_BYTES: usize = 64;

/// CPU time in percent of wall time: of the threads of this test where eastwest speaks, of the
/// process where iperf3 does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuPercent {
    /// User and system.
    pub total: f64,
    /// User.
    pub user: f64,
    /// System.
    pub system: f64,
}

/// One stream as one side saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamResult {
    /// 1, 3, 4, 5, ...: see [`stream_id`].
    pub id: u32,
    /// Bytes sent or received after the omitted time.
    pub bytes: u64,
    /// TCP retransmissions after the omitted time. `None` from a receiver.
    pub retransmits: Option<u64>,
    /// Jitter, seconds.
    pub jitter_s: f64,
    /// Datagrams lost, with the omitted time.
    pub errors: u64,
    /// Datagrams sent or expected, with the omitted time.
    pub packets: u64,
    /// Datagrams lost in the omitted time. `None` from versions before 3.13.
    pub omitted_errors: Option<u64>,
    /// Datagrams of the omitted time. `None` from versions before 3.13.
    pub omitted_packets: Option<u64>,
    /// From the start to the end of what counts, seconds. `None` from versions before 3.2.
    pub duration_s: Option<f64>,
}

/// A server's output, which the client has asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOutput {
    /// The document the server would have printed.
    Json(Value),
    /// The lines the server would have printed.
    Text(String),
}

/// One side's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// CPU time.
    pub cpu: CpuPercent,
    /// Whether the side sends and counts retransmissions: 1 yes, 0 no, -1 it does not send.
    pub sender_has_retransmits: i64,
    /// Congestion control algorithm in use, of TCP.
    pub congestion_used: Option<String>,
    /// All streams.
    pub streams: Vec<StreamResult>,
    /// From a server whose output was asked for.
    pub server_output: Option<ServerOutput>,
}

/// Results that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadResults {
    /// Not a JSON object.
    #[error("the peer's results are not a JSON object")]
    NotAnObject,
    /// Something that every version sends is not there, or is not a number.
    #[error("the peer's results lack \"{0}\"")]
    Lacking(&'static str),
    /// More streams than a test can have.
    #[error("the peer's results name more streams than the test has")]
    TooManyStreams,
}

/// The number of the stream with this index: 2 was skipped long ago, and iperf3 keeps
/// it so.
#[must_use]
pub fn stream_id(index: usize) -> u32 {
    let index = index as u32;
    if index == 0 { 1 } else { index + 2 }
}

impl Results {
    /// Reads a peer's results.
    ///
    /// # Errors
    /// When something is missing that every version of iperf3 sends, or there are too many streams.
    pub fn parse(text: &[u8]) -> Result<Self, BadResults> {
        let map = lenient::object(text).ok_or(BadResults::NotAnObject)?;
        let streams = map.get("streams").and_then(Value::as_array);
        let streams = streams.ok_or(BadResults::Lacking("streams"))?;
        if streams.len() > 2 * MAX_STREAMS {
            return Err(BadResults::TooManyStreams);
        }
        Ok(Self {
            cpu: CpuPercent {
                total: needed_float(&map, "cpu_util_total")?,
                user: needed_float(&map, "cpu_util_user")?,
                system: needed_float(&map, "cpu_util_system")?,
            },
            sender_has_retransmits: lenient::integer(&map, "sender_has_retransmits")
                .ok_or(BadResults::Lacking("sender_has_retransmits"))?,
            congestion_used: lenient::text(&map, "congestion_used", MAX_NAME_BYTES),
            streams: streams.iter().map(stream).collect::<Result<_, _>>()?,
            server_output: server_output(&map),
        })
    }

    /// The text to send.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut map = Map::new();
        map.insert("cpu_util_total".into(), json!(self.cpu.total));
        map.insert("cpu_util_user".into(), json!(self.cpu.user));
        map.insert("cpu_util_system".into(), json!(self.cpu.system));
        let has_retransmits = self.sender_has_retransmits;
        map.insert("sender_has_retransmits".into(), has_retransmits.into());
        if let Some(congestion) = &self.congestion_used {
            map.insert("congestion_used".into(), json!(congestion));
        }
        match &self.server_output {
            Some(ServerOutput::Json(value)) => {
                map.insert("server_output_json".into(), value.clone());
            }
            Some(ServerOutput::Text(text)) => {
                map.insert("server_output_text".into(), json!(text));
            }
            None => {}
        }
        let streams = self.streams.iter().map(StreamResult::as_value);
        map.insert("streams".into(), streams.collect());
        Value::Object(map).to_string()
    }
}

impl StreamResult {
    fn as_value(&self) -> Value {
        let retransmits = self.retransmits.map_or(json!(-1), |count| json!(count));
        json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": retransmits,
            "jitter": self.jitter_s,
            "errors": self.errors,
            "omitted_errors": self.omitted_errors.unwrap_or(0),
            "packets": self.packets,
            "omitted_packets": self.omitted_packets.unwrap_or(0),
            "start_time": 0,
            "end_time": self.duration_s.unwrap_or(0.0),
        })
    }
}

fn stream(value: &Value) -> Result<StreamResult, BadResults> {
    let map = value.as_object().ok_or(BadResults::NotAnObject)?;
    let count = |key| lenient::integer(map, key).and_then(|number| u64::try_from(number).ok());
    let needed = |key| lenient::integer(map, key).ok_or(BadResults::Lacking(key));
    let needed_count = |key| needed(key).map(|number| u64::try_from(number).unwrap_or(0));
    let start_s = lenient::float(map, "start_time");
    let end_s = lenient::float(map, "end_time");
    Ok(StreamResult {
        id: u32::try_from(needed("id")?).unwrap_or(0),
        bytes: needed_count("bytes")?,
        retransmits: u64::try_from(needed("retransmits")?).ok(),
        jitter_s: needed_float(map, "jitter")?,
        errors: needed_count("errors")?,
        packets: needed_count("packets")?,
        omitted_errors: count("omitted_errors"),
        omitted_packets: count("omitted_packets"),
        duration_s: start_s
            .zip(end_s)
            .map(|(start, end)| (end - start).max(0.0)),
    })
}

fn needed_float(map: &Map<String, Value>, key: &'static str) -> Result<f64, BadResults> {
    lenient::float(map, key).ok_or(BadResults::Lacking(key))
}

fn server_output(map: &Map<String, Value>) -> Option<ServerOutput> {
    if let Some(value) = map.get("server_output_json") {
        return Some(ServerOutput::Json(value.clone()));
    }
    let text = map.get("server_output_text")?.as_str()?;
    Some(ServerOutput::Text(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_3_12: &str = r#"{"cpu_util_total":19.66,"cpu_util_user":0.87,"cpu_util_system":18,
        "sender_has_retransmits":18446744073709551615,"congestion_used":"bbr","streams":[
        {"id":1,"bytes":417726464,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,
         "start_time":0,"end_time":1.004607},
        {"id":3,"bytes":78643200,"retransmits":3,"jitter":0.5,"errors":2,"packets":9}]}"#;

    #[test]
    fn what_debians_3_12_sends_is_understood() {
        let results = Results::parse(OF_3_12.as_bytes()).unwrap();
        assert_eq!(results.sender_has_retransmits, -1);
        assert_eq!(results.congestion_used.as_deref(), Some("bbr"));
        let [first, second] = &results.streams[..] else {
            panic!("two streams")
        };
        assert_eq!((first.id, first.retransmits), (1, None));
        assert_eq!(first.duration_s, Some(1.004607));
        assert_eq!((second.id, second.retransmits), (3, Some(3)));
        assert_eq!((second.errors, second.packets), (2, 9));
        assert_eq!((second.omitted_packets, second.duration_s), (None, None));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let results = Results {
            cpu: CpuPercent {
                total: 3.0,
                user: 1.0,
                system: 2.0,
            },
            sender_has_retransmits: 1,
            congestion_used: Some("cubic".into()),
            streams: vec![StreamResult {
                id: 1,
                bytes: 7,
                retransmits: Some(0),
                omitted_errors: Some(0),
                omitted_packets: Some(4),
                duration_s: Some(1.5),
                ..StreamResult::default()
            }],
            server_output: Some(ServerOutput::Text("lines".into())),
        };
        assert_eq!(Results::parse(results.to_json().as_bytes()), Ok(results));
    }

    #[test]
    fn results_that_lack_something_or_name_too_much_are_refused() {
        for key in ["cpu_util_user", "streams", "retransmits", "id", "jitter"] {
            let text = OF_3_12.replace(&format!("\"{key}\""), "\"other\"");
            assert_eq!(
                Results::parse(text.as_bytes()),
                Err(BadResults::Lacking(key))
            );
        }
        assert!(Results::parse(b"\"x\"").is_err());
        let stream = r#"{"id":1,"bytes":1,"retransmits":0,"jitter":0,"errors":0,"packets":0}"#;
        let many = vec![stream; 2 * MAX_STREAMS + 1].join(",");
        let text = OF_3_12.replace("\"streams\":[", &format!("\"streams\":[{many},"));
        assert_eq!(
            Results::parse(text.as_bytes()),
            Err(BadResults::TooManyStreams)
        );
    }

    #[test]
    fn stream_numbers_leave_out_two() {
        let ids: Vec<u32> = (0..4).map(stream_id).collect();
        assert_eq!(ids, [1, 3, 4, 5]);
    }
}
