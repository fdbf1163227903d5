"""What the binary for a target is made of, as CycloneDX 1.5 JSON on stdout: `sbom.py TARGET`. From Cargo.lock, by cargo's own resolution; crates that only
build or test the binary are not in it."""

import json
import os
import subprocess
import sys
import uuid


def metadata(target):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def checksums():
    """By name and version, from the lock file."""
    found, package = {}, {}
    for line in open("Cargo.lock"):
        key, _, value = line.strip().partition(" = ")
        if line.strip() == "[[package]]":
            package = {}
        elif key in ("name", "version", "checksum"):
            package[key] = value.strip('"')
            if key == "checksum":
                found[package["name"], package["version"]] = package[key]
    return found


def linked(nodes, root):
    """Ids of what the root is linked with, itself included."""
    seen, todo = set(), [root]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        for dependency in nodes[node]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    return seen


def component(package, sums):
    name, version = package["name"], package["version"]
    purl = f"pkg:cargo/{name}@{version}"
    found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if package.get("license"):
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if (name, version) in sums:
        found["hashes"] = [{"alg": "SHA-256", "content": sums[name, version]}]
    if package.get("repository"):
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def main(target):
    known = metadata(target)
    packages = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    root = next(id for id, package in packages.items() if package["name"] == "eastwest")
    ids = linked(nodes, root)
    sums = checksums()
    ref = lambda id: f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}"
    own = component(packages[root], sums) | {"type": "application"}
    depends = lambda id: sorted({ref(d["pkg"]) for d in nodes[id]["deps"] if d["pkg"] in ids and any(k["kind"] is None for k in d["dep_kinds"])})
    # The same source gives the same document.
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{ref(root)}#{target}#{os.environ.get('SOURCE_DATE_EPOCH', '0')}")
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": own, "properties": [{"name": "cargo:target", "value": target}]},
        "components": [component(packages[id], sums) for id in sorted(ids - {root}, key=ref)],
        "dependencies": [{"ref": ref(id), "dependsOn": depends(id)} for id in sorted(ids, key=ref)],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


main(sys.argv[1])
