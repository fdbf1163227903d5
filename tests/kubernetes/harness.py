"""A cluster that is up inside its `with` block, and runs of eastwest in it: for the tests, and for bench/kubernetes.sh."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import images

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from suite import expect  # noqa: E402

NAME = f"ewk{os.getpid() % 10000}"
CLUSTER = [HERE / "cluster"]
NODES = 3
NIC_BITS_PER_SEC = 200e6
IMAGE = "eastwest.test/eastwest:1"
API = "198.18.0.1"
BUSYBOX = "eastwest.test/busybox:1"
IPERF3 = "eastwest.test/iperf3:1"
# Requests cost the server near half a CPU, where 200 Mb/s of bulk cost it next to nothing: the limit of its pod alone about halves their rate.
SERVER_LIMIT = ("--clients", "n1", "--servers", "n2", "--set", "workload=tcp-rr", "--set", "streams=1", "--limit", "n2:cpu=200m")
TWO_PATHS = """
name: two-paths
description: pods against their nodes
order: random
defaults: {duration: 700ms, warm-up: 300ms, gap: 400ms, samples: 6, workload: tcp-stream, streams: 4}
tests:
  - {name: host, pattern: {pods: {path: host-network}}}
  - {name: pod, pattern: {pods: {path: other-node}}}
"""


class Cluster:
    def __init__(self, work, cache):
        self.work = pathlib.Path(work)
        self.cache = pathlib.Path(cache)
        self.binary = self.work / "eastwest"
        # The third node joins when a test starts it.
        self.environment = dict(os.environ, NAME=NAME, RATE="200mbit", NODES=str(NODES), STARTED="2")

    def call(self, *words, check=True, **more):
        return subprocess.run([*CLUSTER, *map(str, words)], env=self.environment, check=check, text=True, **more)

    def kubectl(self, *words, check=True, given=None):
        done = self.call("kubectl", *words, check=False, capture_output=True, input=given)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def nft(self, node, *words, **more):
        """Debian's nft, unpacked and not installed, in a node's network."""
        root = self.cache / "root/usr"
        libraries = f"LD_LIBRARY_PATH={root}/lib/{os.uname().machine}-linux-gnu"
        return self.call("node", node, "env", libraries, root / "sbin/nft", *words, **more)

    def state(self):
        return pathlib.Path(self.call("state", capture_output=True).stdout.strip())

    def command(self, *words):
        return [*map(str, CLUSTER), "enter", str(self.binary), *map(str, words)]

    def eastwest(self, *words, as_user="admin", limit=180):
        environment = dict(self.environment, KUBECONFIG=str(self.state() / f"{as_user}.conf"))
        return subprocess.run(self.command(*words), env=environment, text=True, capture_output=True, timeout=limit, cwd=self.work)

    def run(self, scenario, *words, image=IMAGE, copied_into=None, **more):
        """`eastwest run`, with its result."""
        how = ["--bootstrap", "copy", "--image", copied_into] if copied_into else ["--image", image]
        done = self.eastwest("run", scenario, "--via", "kubernetes", *how, "--pull-policy", "Never", "--quiet", "--format", "json", *words, **more)
        done.result = json.loads(done.stdout) if done.stdout.strip() else {}
        return done

    def goodput(self, *words):
        """What `eastwest limit` says that the nodes' NICs carry, in bits per second."""
        limit = self.limit(*words)
        return NIC_BITS_PER_SEC * limit["packet"]["payload_bytes"] / limit["packet"]["counted_bytes"]

    def limit(self, *words):
        """tbf counts frames as --shaped does."""
        command = [self.binary, "limit", "--json", "--shaped", "--link", f"{NIC_BITS_PER_SEC:.0f}", *words]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def left(self):
        """Every object of any run."""
        kinds = "jobs,pods,services,configmaps,secrets,endpointslices"
        listed = self.kubectl("get", kinds, "-A", "-l", "app.kubernetes.io/managed-by=eastwest", "-o", "name")
        return listed.split()

    def left_of_any_kind(self):
        """The same over all kinds that the API server lists; slow."""
        kinds = self.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        listed = self.kubectl("get", ",".join(kinds), "-A", "-l", "app.kubernetes.io/managed-by=eastwest", "-o", "name")
        return listed.split()

    def sent_bytes(self, node):
        counter = self.call("node", node, "cat", "/proc/net/dev", capture_output=True).stdout
        line = next(line for line in counter.splitlines() if line.strip().startswith("eth0:"))
        return int(line.split()[9])


def why_not_here():
    if os.geteuid() != 0:
        return "not root"
    missing = [tool for tool in ("go", "dpkg", "apt-get") if not shutil.which(tool)]
    if not os.environ.get("EASTWEST_MUST_RUN"):
        missing += [tool for tool in ("cc", "strip", "ip", "tc", "nsenter", "unshare", "openssl", "iperf3") if not shutil.which(tool)]
    if missing:
        return f"without {', '.join(missing)}"
    if shutil.which("unshare") and subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode:
        return "no namespaces"
    return None


@contextlib.contextmanager
def cluster_up(binary):
    cache = subprocess.run([HERE / "setup"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="eastwest-test.") as work:
        cluster = Cluster(work, cache)
        # Debug information is most of a development build, and would be copied into every pod.
        subprocess.run(["strip", "-o", cluster.binary, binary], check=True)
        image = cluster.work / "eastwest.tar"
        subprocess.run([cluster.binary, "image", "-o", image, "--name", IMAGE], check=True, stderr=subprocess.DEVNULL)
        iperf3 = cluster.work / "iperf3.tar"
        images.write_tool(iperf3, IPERF3, cluster.cache, "iperf3")
        cluster.environment["IMAGES"] = f"{image} {iperf3}"
        try:
            cluster.call("up")
            yield cluster
        finally:
            cluster.call("down")
