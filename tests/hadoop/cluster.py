"""A real HDFS (and YARN) in a lab of eastwest: a NameNode, DataNodes and clients, each a host of its own with a NIC of known rate."""

import contextlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from suite import until  # noqa: E402

# TCP payload at MTU 1500 with time stamps.
GOODPUT = 1448 / 1514
DATA_NODE_NIC = 200e6
# Four of these are 2.5 DataNodes: the bend is between two and three.
CLIENT_NIC = 125e6
DATA_NODES = ["sh1", "sh2", "sh3", "sh4"]
CLIENTS = ["ch1", "ch2", "ch3", "ch4"]
NAME_NODE = "mh1"
ADDRESSES = {
    **{f"ch{n}": f"198.18.1.{9 + n}" for n in range(1, 5)},
    **{f"sh{n}": f"198.18.2.{9 + n}" for n in range(1, 5)},
    NAME_NODE: "198.18.3.10",
}
URL = f"hdfs://{ADDRESSES[NAME_NODE]}:8020"
LAB = """
racks:
  - {name: c, hosts: 4, nic: 125M, uplink: 4G}
  - {name: s, hosts: 4, nic: 200M, uplink: 4G}
  - {name: m, hosts: 1, nic: 1G, uplink: 4G}
"""
# As small as a JVM gets, and as quick to start.
FULL_JVM = ["-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
JVM = [*FULL_JVM, "-XX:TieredStopAtLevel=1"]
NAME_NODE_CLASS = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE_CLASS = "org.apache.hadoop.hdfs.server.datanode.DataNode"
RESOURCE_MANAGER_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
NODE_MANAGER_CLASS = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
# Of JVMs, on a machine that may be busy.
START_LIMIT = 240
# A DataNode's disk, in memory: the network shall be what limits.
DISK_MIB = 700
# Of cgroup v1, whose root limits what is written back, too.
MOST_DIRTY_BYTES = 1 << 20
FORGET_TIMES = 20
THROTTLES = [pathlib.Path(f"/sys/fs/cgroup/blkio/blkio.throttle.{way}_bps_device") for way in ("read", "write")]


class Cluster:
    def __init__(self, binary, work, jars, name, lab=LAB, settings=(), disk_mib=DISK_MIB, jvm=JVM):
        self.lab, self.disk_mib, self.jvm = lab, disk_mib, jvm
        self.settings = dict(settings)
        self.binary, self.work, self.jars, self.name = str(binary), pathlib.Path(work), jars, name
        self.hosts_file = self.work / "dfs.hosts.json"
        self.hadoop_home = self.work / "hadoop-home"
        self.daemons = {}
        self.mounts = []
        # Block devices of the disks, by DataNode.
        self.devices = {}

    # --- life ---

    def up(self):
        (self.work / "lab.yaml").write_text(self.lab)
        # A lab's hosts see what was mounted before.
        images = self.work / "images"
        images.mkdir()
        self.mount("-t", "tmpfs", "-o", f"size={len(DATA_NODES) * self.disk_mib + 100}m", f"{self.name}-disks", images)
        for node in DATA_NODES:
            self.make_disk(node)
        subprocess.run([self.binary, "lab", "up", "-f", self.work / "lab.yaml", "--lab", self.name], check=True, stdout=subprocess.DEVNULL)
        for folder in ["conf", "logs", "data", "conf/webapps/hdfs", "conf/webapps/datanode", "conf/webapps/cluster", "conf/webapps/node"]:
            (self.work / folder).mkdir(parents=True, exist_ok=True)
        self.write_settings()
        self.set_states({})
        self.java(NAME_NODE, NAME_NODE_CLASS, "-format", "-nonInteractive", check=True)
        self.start(NAME_NODE, NAME_NODE_CLASS)
        for node in DATA_NODES:
            self.start(node, DATA_NODE_CLASS)
        self.wait_for_data_nodes()

    def yarn_up(self, hosts):
        """A ResourceManager next to the NameNode, and a NodeManager on each of these hosts."""
        if (NAME_NODE, RESOURCE_MANAGER_CLASS) in self.daemons:
            return
        self.write_hadoop_home()
        self.start(NAME_NODE, RESOURCE_MANAGER_CLASS, heap="384m")
        for host in hosts:
            self.start(host, NODE_MANAGER_CLASS)
        until(START_LIMIT, lambda: len(self.yarn_nodes()) == len(hosts), f"{len(hosts)} active NodeManagers; logs are in {self.work}/logs")

    def yarn_down(self):
        for key in [key for key in self.daemons if key[1] in (RESOURCE_MANAGER_CLASS, NODE_MANAGER_CLASS)]:
            self.kill(key, signal.SIGTERM)

    def down(self):
        for key in list(self.daemons):
            self.kill(key, signal.SIGTERM)
        subprocess.run([self.binary, "lab", "down", "--lab", self.name], check=False, stdout=subprocess.DEVNULL)
        if self.can_throttle():
            self.throttle(None)
        for mount in reversed(self.mounts):
            subprocess.run(["umount", "-l", mount], check=False)

    def mount(self, *words):
        subprocess.run(["mount", *words], check=True)
        self.mounts.append(words[-1])

    def make_disk(self, node):
        """A block device of its own, on which a rate can be set, where the kernel has loop devices."""
        disk, image = self.disk(node), self.work / "images" / node
        disk.mkdir(parents=True)
        with open(image, "wb") as file:
            file.truncate(self.disk_mib << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image], check=True)
        try:
            # What is deleted leaves the memory, too.
            self.mount("-o", "loop,noatime,discard", image, disk)
            self.devices[node] = os.stat(disk).st_dev
        except subprocess.CalledProcessError:
            image.unlink()
            self.mount("-t", "tmpfs", "-o", f"size={self.disk_mib}m", f"{self.name}-{node}", disk)

    def can_throttle(self):
        has_limits = lambda device: (page_cache_of(device) / "strict_limit").exists()
        return len(self.devices) == len(DATA_NODES) and all(path.exists() for path in THROTTLES) and all(map(has_limits, self.devices.values()))

    def throttle(self, bytes_per_sec):
        """Every DataNode's disk. Little waits for it in the page cache, so that who writes is as fast as the disk. `None`: no more."""
        for device in self.devices.values():
            for path in THROTTLES:
                path.write_text(f"{os.major(device)}:{os.minor(device)} {bytes_per_sec or 0}\n")
            if bytes_per_sec:
                (page_cache_of(device) / "max_bytes").write_text(f"{MOST_DIRTY_BYTES}\n")
            else:
                (page_cache_of(device) / "max_ratio").write_text("100\n")
            (page_cache_of(device) / "strict_limit").write_text(f"{int(bool(bytes_per_sec))}\n")

    @contextlib.contextmanager
    def slow_disks(self, bytes_per_sec):
        """Throttled, and files leave the page cache soon after they were written, as with `dfs.datanode.drop.cache.behind.writes`, which needs
        Hadoop's native library."""
        over = threading.Event()
        forgetting = threading.Thread(target=self.forget_until, args=(over,))
        self.throttle(bytes_per_sec)
        forgetting.start()
        try:
            yield
        finally:
            over.set()
            forgetting.join()
            self.throttle(None)

    def forget_until(self, over):
        seen = {}
        while not over.wait(0.1):
            for path in self.files_on_disks():
                with contextlib.suppress(OSError):
                    state = (path.stat().st_mtime_ns, path.stat().st_size)
                    asked, known = seen.get(path, (0, None))
                    # A few times after its last write: what is still to be written stays, and nobody waits for the disk here.
                    if known == state and asked < FORGET_TIMES:
                        with open(path, "rb") as file:
                            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                    seen[path] = (asked + 1 if known == state else 0, state)

    def files_on_disks(self):
        paths = []
        for node in DATA_NODES:
            for folder, _, names in os.walk(self.disk(node)):
                paths += [pathlib.Path(folder) / name for name in names]
        return paths

    def own_disks(self):
        """A directory that is each DataNode's own disk on its own host."""
        own = self.work / "own"
        own.mkdir(exist_ok=True)
        for node in DATA_NODES:
            subprocess.run(self.on(node, "mount", "--bind", self.disk(node), own), check=True)
        return own

    def disk(self, node):
        return self.work / "data" / node / "dn"

    # --- processes ---

    def on(self, host, *words):
        return [self.binary, "lab", "exec", "--lab", self.name, host, "--", *map(str, words)]

    def java_words(self, host, *words, heap="256m"):
        settings = [f"-Djdk.net.hosts.file={self.work}/conf/hosts", f"-Dtest.node={host}", f"-Xmx{heap}"]
        return ["java", *self.jvm, *settings, "-cp", f"{self.work}/conf:{self.jars}/*", *words]

    def write_hadoop_home(self):
        """What a distribution has: `bin/hadoop`, `bin/yarn` and the jar of the tests. A job's classes come from the class path."""
        home = self.hadoop_home
        (home / "bin").mkdir(parents=True, exist_ok=True)
        java = shlex.join(self.java_words("PLACE")).replace("PLACE", '"$(hostname)"')
        for name, cases in HADOOP_COMMANDS.items():
            script = home / "bin" / name
            script.write_text(f"#!/bin/sh\ncommand=$1; shift\ncase $command in\n{cases}*) echo \"no command $command\" >&2; exit 2;;\nesac\nexec {java} $class \"$@\"\n")
            script.chmod(0o755)
        jars = home / "share/hadoop/mapreduce"
        jars.mkdir(parents=True, exist_ok=True)
        [jar] = pathlib.Path(self.jars).glob("hadoop-mapreduce-client-jobclient-*-tests.jar")
        if not (jars / jar.name).exists():
            (jars / jar.name).symlink_to(jar)

    def java(self, host, *words, **more):
        log = open(self.work / "logs" / "commands.log", "a")
        return subprocess.run(self.on(host, *self.java_words(host, *words)), stdout=log, stderr=log, **more)

    def start(self, host, role, heap="256m"):
        pid = self.work / "data" / f"{host}.{role.rsplit('.', 1)[1]}.pid"
        log = open(self.work / "logs" / f"{host}.{role.rsplit('.', 1)[1]}.log", "a")
        words = ["sh", "-c", 'echo $$ >"$0"; exec "$@"', pid, *self.java_words(host, role, heap=heap)]
        # The first thing that a task's script looks for.
        environment = dict(os.environ, JAVA_HOME=str(pathlib.Path(shutil.which("java")).resolve().parents[1]))
        process = subprocess.Popen(self.on(host, *words), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        self.daemons[host, role] = (process, pid)

    def kill(self, key, number=signal.SIGKILL):
        """Of a daemon that `start` started, by its id."""
        process, pid = self.daemons.pop(key)
        with contextlib.suppress(ProcessLookupError, ValueError, FileNotFoundError):
            os.kill(int(pid.read_text()), number)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    # --- what NameNode and ResourceManager say ---

    def fetch(self, port, path):
        url = f"http://{ADDRESSES[NAME_NODE]}:{port}/{path}"
        fetch = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=3).read().decode())"
        done = subprocess.run(self.on(NAME_NODE, "python3", "-c", fetch, url), capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def bean(self, name):
        beans = self.fetch(9870, f"jmx?qry=Hadoop:service=NameNode,name={name}").get("beans")
        return beans[0] if beans else {}

    def yarn_nodes(self):
        nodes = (self.fetch(8088, "ws/v1/cluster/nodes").get("nodes") or {}).get("node") or []
        return [node["id"].split(":")[0] for node in nodes if node["state"] == "RUNNING"]

    def yarn_applications(self):
        """State and final state of each, by its id."""
        applications = (self.fetch(8088, "ws/v1/cluster/apps").get("apps") or {}).get("app") or []
        return {app["id"]: (app["state"], app["finalStatus"]) for app in applications}

    def states(self):
        live = json.loads(self.bean("NameNodeInfo").get("LiveNodes", "{}"))
        return {name.split(":")[0]: node["adminState"] for name, node in live.items()}

    def wait_for_data_nodes(self):
        """All of them, and each was heard a moment ago: one that died counts as alive for a while."""
        def ready():
            if self.bean("FSNamesystemState").get("FSState") != "Operational":
                return False
            nodes = json.loads(self.bean("NameNodeInfo").get("LiveNodes", "{}")).values()
            return len(nodes) == len(DATA_NODES) and all(node["lastContact"] <= 1 for node in nodes)
        until(START_LIMIT, ready, f"{len(DATA_NODES)} live DataNodes; logs are in {self.work}/logs")

    def set_states(self, states):
        """The NameNode's hosts file, with every DataNode; it is read at its start and at refreshNodes."""
        nodes = [{"hostName": node} | ({"adminState": states[node]} if node in states else {}) for node in DATA_NODES]
        self.hosts_file.write_text(json.dumps(nodes))

    # --- eastwest ---

    def command(self, *words):
        return self.on(NAME_NODE, self.binary, *words)

    def exists(self, path):
        return bool(self.fetch(9870, f"webhdfs/v1{path}?op=GETFILESTATUS"))

    def run(self, scenario, *words, user="root", limit=180):
        """`eastwest run`, from the NameNode's host, with its result."""
        command = self.command("run", scenario, "--via", "lab", "--lab", self.name, "--runs-dir", self.work / "runs", "--quiet", "--format", "json", *words)
        environment = dict(os.environ, HADOOP_USER_NAME=user)
        done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=limit, cwd=self.work)
        done.result = json.loads(done.stdout) if done.stdout.strip().startswith("{") else {}
        return done

    # --- settings ---

    def restart(self, settings):
        """NameNode and DataNodes, with other settings of HDFS."""
        for key in [(NAME_NODE, NAME_NODE_CLASS), *((node, DATA_NODE_CLASS) for node in DATA_NODES)]:
            self.kill(key, signal.SIGTERM)
        self.write_settings(settings)
        self.start(NAME_NODE, NAME_NODE_CLASS)
        for node in DATA_NODES:
            self.start(node, DATA_NODE_CLASS)
        self.wait_for_data_nodes()

    def write_settings(self, more=()):
        conf = self.work / "conf"
        (conf / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{address} {host}\n" for host, address in ADDRESSES.items()))
        (conf / "log4j.properties").write_text(LOG4J)
        write_xml(conf / "core-site.xml", {"fs.defaultFS": f"hdfs://{NAME_NODE}:8020", "hadoop.tmp.dir": f"{self.work}/data/${{test.node}}/tmp"})
        write_xml(conf / "hdfs-site.xml", HDFS_SITE | {
            "dfs.namenode.name.dir": f"file://{self.work}/data/name",
            "dfs.datanode.data.dir": f"file://{self.work}/data/${{test.node}}/dn",
            "dfs.hosts": self.hosts_file,
        } | self.settings | dict(more))
        class_path = f"{conf},{self.jars}/*"
        write_xml(conf / "yarn-site.xml", YARN_SITE | {
            "yarn.nodemanager.local-dirs": f"{self.work}/data/${{test.node}}/nm",
            "yarn.nodemanager.log-dirs": f"{self.work}/logs/${{test.node}}-tasks",
            "yarn.application.classpath": class_path,
        })
        task = shlex.join([*self.jvm, "-Xmx256m", f"-Djdk.net.hosts.file={conf}/hosts"])
        write_xml(conf / "mapred-site.xml", MAPRED_SITE | {
            "mapreduce.application.classpath": class_path,
            "yarn.app.mapreduce.am.command-opts": task,
            "mapreduce.map.java.opts": task,
            "mapreduce.reduce.java.opts": task,
        })


HDFS_SITE = {
    "dfs.replication": 1,
    "dfs.blocksize": "8m",
    "dfs.namenode.rpc-address": f"{NAME_NODE}:8020",
    "dfs.namenode.rpc-bind-host": "0.0.0.0",
    "dfs.namenode.http-address": f"{NAME_NODE}:9870",
    "dfs.datanode.hostname": "${test.node}",
    "dfs.datanode.address": "${test.node}:9866",
    "dfs.datanode.ipc.address": "${test.node}:9867",
    "dfs.datanode.http.address": "${test.node}:9864",
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.namenode.safemode.extension": 0,
    "dfs.datanode.directoryscan.interval": -1,
    "dfs.block.scanner.volume.bytes.per.second": 0,
    # Of each disk 1 GiB would be left.
    "dfs.datanode.round-robin-volume-choosing-policy.additional-available-space": 0,
    # A DataNode that is killed is noticed in seconds.
    "dfs.heartbeat.interval": 1,
    "dfs.namenode.heartbeat.recheck-interval": 3000,
    "dfs.namenode.decommission.interval": 1,
    # A node without replicas elsewhere goes into maintenance at once.
    "dfs.namenode.maintenance.replication.min": 0,
    "dfs.namenode.hosts.provider.classname": "org.apache.hadoop.hdfs.server.blockmanagement.CombinedHostFileManager",
    "dfs.namenode.redundancy.considerLoad": "false",
    "dfs.namenode.edits.noeditlogchannelflush": "true",
    "dfs.namenode.file.close.num-committed-allowed": 64,
    "dfs.namenode.fs-limits.min-block-size": 1 << 16,
}
# Quick to start, and room for two tasks on each host.
YARN_SITE = {
    "yarn.resourcemanager.hostname": NAME_NODE,
    "yarn.nodemanager.hostname": "${test.node}",
    "yarn.nodemanager.bind-host": "0.0.0.0",
    "yarn.nodemanager.aux-services": "mapreduce_shuffle",
    "yarn.nodemanager.resource.memory-mb": 1536,
    "yarn.nodemanager.resource.cpu-vcores": 4,
    "yarn.scheduler.minimum-allocation-mb": 256,
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.enable": "false",
    # A disk of a machine with other work may be fuller than the default of 90.
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
    "yarn.nodemanager.heartbeat.interval-ms": 200,
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 200,
    "yarn.nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG",
    "yarn.scheduler.capacity.maximum-am-resource-percent": 1.0,
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": 100,
    "yarn.scheduler.capacity.node-locality-delay": -1,
}
MAPRED_SITE = {
    "mapreduce.framework.name": "yarn",
    "yarn.app.mapreduce.am.resource.mb": 256,
    "yarn.app.mapreduce.am.staging-dir": "/user",
    "mapreduce.map.memory.mb": 512,
    "mapreduce.reduce.memory.mb": 512,
    "mapreduce.task.io.sort.mb": 16,
    "mapreduce.map.speculative": "false",
    "mapreduce.reduce.speculative": "false",
    "mapreduce.job.reduce.slowstart.completedmaps": 1.0,
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": 200,
    "mapreduce.client.completion.pollinterval": 200,
    "mapreduce.client.progressmonitor.pollinterval": 200,
}
# `hadoop jar JAR CLASS ...` and `yarn jar`, `yarn application`, as the distribution's scripts do them.
HADOOP_COMMANDS = {
    "hadoop": "jar) class=org.apache.hadoop.util.RunJar;;\n",
    "yarn": "jar) class=org.apache.hadoop.util.RunJar;;\napplication) class=org.apache.hadoop.yarn.client.cli.ApplicationCLI; set -- application \"$@\";;\n",
}
LOG4J = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""


def page_cache_of(device):
    """A block device's limits in the page cache."""
    return pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}")


def write_xml(path, settings):
    properties = "".join(f"<property><name>{name}</name><value>{value}</value></property>\n" for name, value in settings.items())
    path.write_text(f"<configuration>\n{properties}</configuration>\n")


@contextlib.contextmanager
def cluster_up(binary, lab=LAB, settings=(), disk_mib=DISK_MIB, jvm=JVM):
    """`settings` are more of hdfs-site.xml; `jvm` is of every Java process."""
    jars = subprocess.run([HERE / "setup"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="eastwest-test.") as work:
        # Debug information is most of a development build.
        stripped = pathlib.Path(work) / "eastwest"
        subprocess.run(["strip", "-o", stripped, binary], check=True)
        cluster = Cluster(stripped, work, jars, f"ewh{os.getpid() % 10000}", lab, settings, disk_mib, jvm)
        try:
            cluster.up()
            yield cluster
        finally:
            cluster.down()
