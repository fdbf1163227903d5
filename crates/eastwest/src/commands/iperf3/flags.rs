//! iperf3's flags, and what they mean.

use crate::exit::Failure;
use anyhow::{Context, anyhow, bail};
use clap::Args;
use ew_controller::AddressFamily;
use ew_iperf3::auth::{ClientAuth, DEFAULT_SKEW_S, Padding, ServerAuth};
use ew_iperf3::report::text::TextStyle;
use ew_iperf3::server::ServerOptions;
use ew_iperf3::units::{self, Rate};
use ew_iperf3::wire::params::{Direction, End, Params, Protocol};
use ew_iperf3::{ClientOptions, Limits, Route};
use ew_model::Inventory;
use ew_model::inventory::Host;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Rate of a UDP stream when none is named, bits per second (`UDP_RATE` of iperf.h: one binary
/// megabit).
const DEFAULT_UDP_BITS_PER_SEC: u64 = 1024 * 1024;
const DEFAULT_TIME_S: u32 = 10;

/// Which end.
pub(super) enum Role<'args> {
    Server,
    Client(&'args str),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("role").required(true).args(["server", "client"]))]
pub(crate) struct Iperf3Args {
    /// Serve, many clients at once
    #[arg(short, long)]
    server: bool,
    /// Test with the server on this host
    #[arg(short, long, value_name = "HOST[%DEV]")]
    client: Option<String>,
    /// Port to listen on or to connect to
    #[arg(short, long, default_value = "5201")]
    port: u16,
    /// Unit of rates: k, m, g, t for bits and K, M, G, T for bytes
    #[arg(short, long, value_parser = parse_format)]
    format: Option<char>,
    /// Seconds between reports; 0 for none
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = parse_interval_ms)]
    interval: u64,
    /// CPU of this end, and of the other
    #[arg(short = 'A', long, value_name = "N[,M]", value_parser = parse_affinity)]
    affinity: Option<Affinity>,
    /// Address to use at this end
    #[arg(short = 'B', long, value_name = "HOST[%DEV]")]
    bind: Option<String>,
    /// Network device to use at this end
    #[arg(long, value_name = "DEV")]
    bind_dev: Option<String>,
    /// More lines
    #[arg(short = 'V', long)]
    verbose: bool,
    /// One JSON document, with iperf3's field names, also on failure
    #[arg(short = 'J', long)]
    pub(super) json: bool,
    /// One JSON object per event, each on its own line: start, interval, end, error
    #[arg(long, conflicts_with = "json")]
    pub(super) json_stream: bool,
    /// Append the output to a file
    #[arg(long, value_name = "FILE")]
    pub(super) logfile: Option<PathBuf>,
    /// Output is always flushed; accepted because iperf3 has it
    #[arg(long)]
    forceflush: bool,
    /// Longest time a receiver may receive nothing, ms
    #[arg(long, value_name = "MS", default_value = "120000")]
    rcv_timeout: u64,
    /// Only IPv4
    #[arg(short = '4', long, conflicts_with = "version6")]
    version4: bool,
    /// Only IPv6
    #[arg(short = '6', long)]
    version6: bool,
    /// Pad credentials as iperf3 before 3.17 did
    #[arg(long)]
    use_pkcs1_padding: bool,
    #[command(flatten)]
    pub(super) serving: ServerFlags,
    #[command(flatten)]
    asking: ClientFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct ServerFlags {
    /// End after one client
    #[arg(short = '1', long, requires = "server")]
    one_off: bool,
    /// Serve in the background
    #[arg(short = 'D', long, requires = "server")]
    pub(super) daemon: bool,
    /// Write the server's process id to this file, which is removed at the end
    #[arg(short = 'I', long, value_name = "FILE", requires = "server")]
    pub(super) pidfile: Option<PathBuf>,
    /// Clients at once
    #[arg(long, value_name = "N", default_value = "64")]
    max_clients: usize,
    /// Longest test, seconds
    #[arg(long, value_name = "SECONDS", default_value = "87000")]
    server_max_duration: u64,
    /// Refuse clients that ask for more, or name no rate
    #[arg(long, value_name = "RATE", value_parser = units::parse_rate)]
    server_bitrate_limit: Option<Rate>,
    /// Private key to read credentials with
    #[arg(long, value_name = "FILE", requires = "authorized_users_path")]
    rsa_private_key_path: Option<PathBuf>,
    /// Who may: lines of USER,SHA256({USER}PASSWORD)
    #[arg(long, value_name = "FILE", requires = "rsa_private_key_path")]
    authorized_users_path: Option<PathBuf>,
    /// How far a client's clock may be off, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_SKEW_S)]
    time_skew_threshold: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Client")]
struct ClientFlags {
    /// UDP instead of TCP
    #[arg(short, long)]
    udp: bool,
    /// How long to try to connect, ms
    #[arg(long, value_name = "MS", default_value = "10000")]
    connect_timeout: u64,
    /// Rate of each stream, decimal, 0 for unlimited; behind a slash how many blocks at once
    #[arg(short, long, alias = "bandwidth", value_name = "RATE[/N]", value_parser = units::parse_rate)]
    bitrate: Option<Rate>,
    /// Rate that the kernel keeps for each stream
    #[arg(long, value_name = "RATE", value_parser = units::parse_rate)]
    fq_rate: Option<Rate>,
    /// Accepted because iperf3 has it; senders here are paced to the microsecond
    #[arg(long, value_name = "US")]
    pacing_timer: Option<String>,
    /// End after a time, seconds; 0 for never [default: 10]
    #[arg(short, long, value_name = "SECONDS", conflicts_with_all = ["bytes", "blockcount"])]
    time: Option<u32>,
    /// End after so many bytes, binary
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = units::parse_size, conflicts_with = "blockcount")]
    bytes: Option<u64>,
    /// End after so many blocks
    #[arg(short = 'k', long, value_name = "N", value_parser = units::parse_size)]
    blockcount: Option<u64>,
    /// Block or datagram [default: 128K for TCP, what fits the path for UDP]
    #[arg(short, long, value_name = "SIZE", value_parser = units::parse_size)]
    length: Option<u64>,
    /// First local port of the streams
    #[arg(
        long,
        value_name = "PORT",
        default_value = "0",
        hide_default_value = true
    )]
    cport: u16,
    /// Streams in each direction
    #[arg(short = 'P', long, value_name = "N", default_value = "1")]
    parallel: usize,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Both send
    #[arg(long)]
    bidir: bool,
    /// Socket buffers, binary
    #[arg(short, long, value_name = "SIZE", value_parser = units::parse_size)]
    window: Option<u64>,
    /// TCP congestion control algorithm
    #[arg(
        short = 'C',
        long,
        alias = "linux-congestion",
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    congestion: String,
    /// TCP maximum segment size
    #[arg(
        short = 'M',
        long,
        value_name = "BYTES",
        default_value = "0",
        hide_default_value = true
    )]
    set_mss: u32,
    /// Do not wait to fill segments
    #[arg(short = 'N', long)]
    no_delay: bool,
    /// IP type of service: decimal, 0octal or 0xhexadecimal
    #[arg(short = 'S', long, value_name = "N", value_parser = units::parse_tos)]
    tos: Option<u8>,
    /// DSCP as a number or a name
    #[arg(long, value_name = "N", value_parser = units::parse_dscp, conflicts_with = "tos")]
    dscp: Option<u8>,
    /// Send by sendfile
    #[arg(short = 'Z', long)]
    zerocopy: bool,
    /// Receivers do not copy: the application does not see the bytes
    #[arg(long)]
    skip_rx_copy: bool,
    /// Exclude the first seconds
    #[arg(
        short = 'O',
        long,
        value_name = "SECONDS",
        default_value = "0",
        hide_default_value = true
    )]
    omit: u32,
    /// Put before every line
    #[arg(
        short = 'T',
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    title: String,
    /// Put into JSON
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    extra_data: String,
    /// Show the server's output as well
    #[arg(long)]
    get_server_output: bool,
    /// 64-bit counters in datagrams
    #[arg(long)]
    udp_counters_64bit: bool,
    /// Digits instead of random bytes
    #[arg(long)]
    repeating_payload: bool,
    /// IPv4 datagrams are not fragmented
    #[arg(long)]
    dont_fragment: bool,
    /// User name for authentication; the password comes from IPERF3_PASSWORD, or is prompted for
    #[arg(long, value_name = "NAME", requires = "rsa_public_key_path")]
    username: Option<String>,
    /// The server's public key
    #[arg(long, value_name = "FILE", requires = "username")]
    rsa_public_key_path: Option<PathBuf>,
}

/// `-A`
#[derive(Clone, Copy, Debug)]
struct Affinity {
    here: Option<usize>,
    there: Option<usize>,
}

impl Iperf3Args {
    pub(super) fn role(&self) -> Role<'_> {
        match &self.client {
            Some(host) => Role::Client(host),
            None => Role::Server,
        }
    }

    pub(super) fn text_style(&self) -> TextStyle {
        TextStyle {
            format: self.format,
            verbose: self.verbose,
        }
    }

    /// Where a server listens: everywhere, unless `--bind` says otherwise.
    pub(super) fn listen_address(&self) -> SocketAddr {
        let bind = self.bind.as_deref().and_then(|bind| bind.parse().ok());
        let everywhere = if self.version4 {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        } else {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        };
        SocketAddr::new(bind.unwrap_or(everywhere), self.port)
    }

    /// Where it listens on a host without IPv6.
    pub(super) fn fallback_address(&self) -> Option<SocketAddr> {
        let may = self.bind.is_none() && !self.version4 && !self.version6;
        may.then(|| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), self.port))
    }

    pub(super) fn server_options(&self) -> Result<ServerOptions, Failure> {
        let flags = &self.serving;
        if let Some(bind) = &self.bind {
            let parsed: Result<IpAddr, _> = bind.parse();
            let named = parsed.with_context(|| format!("-B {bind}: a server needs an address"));
            named.map_err(Failure::usage)?;
        }
        let auth = match (&flags.rsa_private_key_path, &flags.authorized_users_path) {
            (Some(key), Some(users)) => {
                let auth = ServerAuth::new(key, users, flags.time_skew_threshold, self.padding());
                Some(auth.map_err(Failure::usage)?)
            }
            _ => None,
        };
        Ok(ServerOptions {
            limits: Limits {
                sessions: flags.max_clients,
                duration_s: flags.server_max_duration,
                bits_per_sec: flags.server_bitrate_limit.map(|rate| rate.bits_per_sec),
                idle_ms: self.rcv_timeout,
                ..Limits::default()
            },
            only_v6: self.version6,
            auth,
            interval_ms: self.interval,
            cpu: self.affinity.and_then(|affinity| affinity.here),
            one_off: flags.one_off,
            json_output: self.json,
            watcher: None,
        })
    }

    pub(super) fn client_options(&self, host: &str) -> Result<ClientOptions, Failure> {
        let flags = &self.asking;
        let (name, device) = match host.split_once('%') {
            Some((name, device)) => (name, Some(device.to_owned())),
            None => (host, None),
        };
        let (bind, bind_device) = match self
            .bind
            .as_deref()
            .map(|b| b.split_once('%').unwrap_or((b, "")))
        {
            Some((address, device)) => (Some(self.resolve(address)?), Some(device.to_owned())),
            None => (None, None),
        };
        let bind_device = bind_device.filter(|device| !device.is_empty());
        Ok(ClientOptions {
            host: host.to_owned(),
            route: Route {
                server: SocketAddr::new(self.resolve(name)?, self.port),
                bind,
                device: self.bind_dev.clone().or(device).or(bind_device),
                stream_port: flags.cport,
                connect_timeout: Duration::from_millis(flags.connect_timeout),
            },
            params: flags.params(self.affinity)?,
            interval_ms: self.interval,
            cpu: self.affinity.and_then(|affinity| affinity.here),
            idle_timeout_ms: self.rcv_timeout,
            auth: self.client_auth()?,
        })
    }

    fn client_auth(&self) -> Result<Option<ClientAuth>, Failure> {
        let flags = &self.asking;
        let (Some(user), Some(key)) = (&flags.username, &flags.rsa_public_key_path) else {
            return Ok(None);
        };
        let password = match std::env::var("IPERF3_PASSWORD") {
            Ok(password) => password,
            Err(_) => ask_password().map_err(Failure::usage)?,
        };
        let auth = ClientAuth::new(user, &password, key, self.padding());
        auth.map(Some).map_err(Failure::usage)
    }

    fn padding(&self) -> Padding {
        if self.use_pkcs1_padding {
            Padding::Pkcs1
        } else {
            Padding::Oaep
        }
    }

    fn resolve(&self, name: &str) -> Result<IpAddr, Failure> {
        if let Ok(address) = name.parse() {
            return Ok(address);
        }
        let family = if self.version4 {
            AddressFamily::V4
        } else if self.version6 {
            AddressFamily::V6
        } else {
            AddressFamily::Any
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::failed)?;
        let mut inventory = Inventory {
            hosts: vec![Host {
                name: name.to_owned(),
                address: None,
                rack: None,
            }],
            racks: Vec::new(),
        };
        let known = BTreeMap::new();
        let logins = BTreeMap::new();
        let found = ew_controller::resolve(&mut inventory, &known, &logins, family, None);
        let hint = "(check the spelling, DNS and /etc/hosts, or give an address)";
        let nowhere = || Failure::usage(anyhow!("no address for {name} {hint}"));
        runtime.block_on(found).map_err(|_| nowhere())?;
        let address = inventory.hosts.first().and_then(|host| host.address);
        address.ok_or_else(nowhere)
    }
}

impl ClientFlags {
    fn params(&self, affinity: Option<Affinity>) -> Result<Params, Failure> {
        let protocol = if self.udp {
            Protocol::Udp
        } else {
            Protocol::Tcp
        };
        let rate = self.bitrate.unwrap_or(Rate {
            bits_per_sec: if self.udp {
                DEFAULT_UDP_BITS_PER_SEC
            } else {
                0
            },
            burst: 0,
        });
        let wanted = Params {
            protocol,
            direction: match (self.reverse, self.bidir) {
                (_, true) => Direction::Both,
                (true, false) => Direction::Reverse,
                (false, false) => Direction::Forward,
            },
            end: match (self.bytes, self.blockcount) {
                (Some(bytes), _) if bytes > 0 => End::Bytes(bytes),
                (_, Some(blocks)) if blocks > 0 => End::Blocks(blocks),
                _ => End::Time(self.time.unwrap_or(DEFAULT_TIME_S)),
            },
            omit_s: self.omit,
            streams: self.parallel,
            block_bytes: self.length.unwrap_or(0) as usize,
            window_bytes: self.window.unwrap_or(0) as usize,
            mss_bytes: self.set_mss,
            nodelay: self.no_delay,
            bits_per_sec: rate.bits_per_sec,
            burst: rate.burst,
            fq_bits_per_sec: self.fq_rate.map_or(0, |rate| rate.bits_per_sec),
            tos: self.tos.or(self.dscp.map(|dscp| dscp << 2)).unwrap_or(0),
            server_cpu: affinity.and_then(|affinity| affinity.there),
            congestion: self.congestion.clone(),
            title: self.title.clone(),
            extra_data: self.extra_data.clone(),
            zerocopy: self.zerocopy,
            skip_rx_copy: self.skip_rx_copy,
            wide_counters: self.udp_counters_64bit,
            repeating_payload: self.repeating_payload,
            dont_fragment: self.dont_fragment,
            get_server_output: self.get_server_output,
            auth_token: String::new(),
            client_version: concat!("eastwest ", env!("CARGO_PKG_VERSION")).into(),
        };
        match wanted.problem() {
            Some(problem) => Err(Failure::usage(anyhow!(problem))),
            None => Ok(wanted),
        }
    }
}

fn ask_password() -> anyhow::Result<String> {
    let hint = "no password: set IPERF3_PASSWORD, or run on a terminal";
    if !std::io::stdin().is_terminal() {
        bail!(hint);
    }
    let terminal = console::Term::stderr();
    terminal.write_str("Password: ").context(hint)?;
    terminal.read_secure_line().context(hint)
}

fn parse_format(text: &str) -> Result<char, String> {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if units::FORMATS.contains(letter) => Ok(letter),
        _ => Err(format!("one letter of {}", units::FORMATS)),
    }
}

fn parse_interval_ms(text: &str) -> Result<u64, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds".to_owned())?;
    if seconds == 0.0 || (0.1..=60.0).contains(&seconds) {
        Ok((seconds * 1000.0).round() as u64)
    } else {
        Err("0, or 0.1 to 60 seconds".into())
    }
}

fn parse_affinity(text: &str) -> Result<Affinity, String> {
    let number = |text: &str| -> Result<Option<usize>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let number = text
            .parse()
            .map_err(|_| format!("\"{text}\" is no CPU number"))?;
        Ok(Some(number))
    };
    let (here, there) = text.split_once(',').unwrap_or((text, ""));
    Ok(Affinity {
        here: number(here)?,
        there: number(there)?,
    })
}
