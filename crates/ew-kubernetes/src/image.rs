//! An image of the binary itself: one archive that is an OCI image layout and a docker archive at
//! once, so that skopeo, crane, podman, docker and containerd all read it. No builder, no base
//! image, no registry. With programs for several architectures it has an image of each, and an
//! index over them from which a node's runtime takes its own; docker's archive has the first.
//!
//! Formats: OCI image specification 1.1 (`image-layout.md`, `manifest.md`, `config.md`,
//! `layer.md`); docker's `manifest.json` as `docker load` reads it.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use thiserror::Error;

/// Nobody in particular, so that `runAsNonRoot` is satisfied.
const USER: &str = "65532:65532";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// What an image runs on one architecture.
#[derive(Clone, Copy, Debug)]
pub struct ImageProgram<'a> {
    /// As `uname -m` has it.
    pub architecture: &'a str,
    /// A static binary.
    pub binary: &'a [u8],
}

/// Why there is no image.
#[derive(Debug, Error)]
pub enum ImageError {
    /// The archive could not be written.
    #[error("cannot write the image: {0}")]
    Write(#[from] io::Error),
    /// The name is none.
    #[error(
        "`{name}` is no image name: write repository:tag in small letters, for example registry.example/net/eastwest:1"
    )]
    Name {
        /// As given.
        name: String,
    },
}

/// Writes the image `name` of these programs, one an architecture. The same programs give the same
/// bytes.
///
/// # Errors
/// [`ImageError`].
pub fn write_image(
    output: impl Write,
    name: &str,
    first: ImageProgram<'_>,
    others: &[ImageProgram<'_>],
) -> Result<(), ImageError> {
    let (repository, tag) = split_name(name)?;
    let mut archive = tar::Builder::new(output);
    for folder in ["blobs/", "blobs/sha256/"] {
        add_folder(&mut archive, folder, 0o755)?;
    }
    let image = add_image(&mut archive, first)?;
    let docker = json!([{
        "Config": blob(&image.config_digest),
        "RepoTags": [format!("{repository}:{tag}")],
        "Layers": [blob(&image.layer_digest)],
    }]);
    let mut entry = image.descriptor;
    if !others.is_empty() {
        let mut entries = vec![entry];
        for other in others {
            entries.push(add_image(&mut archive, *other)?.descriptor);
        }
        // Tools look for a name in the layout's own index, for an architecture in the one below.
        let index = bytes(&index(&entries));
        entry = add_blob(&mut archive, INDEX_TYPE, &index)?;
    }
    entry["annotations"] = json!({
        "org.opencontainers.image.ref.name": tag,
        "io.containerd.image.name": full_name(repository, tag),
    });
    add_file(
        &mut archive,
        "oci-layout",
        0o644,
        br#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    add_file(&mut archive, "index.json", 0o644, &bytes(&index(&[entry])))?;
    add_file(&mut archive, "manifest.json", 0o644, &bytes(&docker))?;
    archive.into_inner()?.flush()?;
    Ok(())
}

/// The image of one architecture, as its archive has it.
struct Image {
    /// Of its manifest, with its platform.
    descriptor: Value,
    config_digest: String,
    layer_digest: String,
}

fn add_image(
    archive: &mut tar::Builder<impl Write>,
    program: ImageProgram<'_>,
) -> io::Result<Image> {
    let layer = layer(program.binary)?;
    let layer_digest = hex_digest(&layer);
    let platform = platform(program.architecture);
    let mut config = json!({
        "config": {
            "Entrypoint": ["/eastwest"],
            "User": USER,
            "Env": ["PATH=/"],
            "WorkingDir": "/tmp",
            "Labels": {"org.opencontainers.image.title": "eastwest"},
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer_digest}")]},
    });
    for (key, value) in platform.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    let config = bytes(&config);
    let layer = add_blob(archive, LAYER_TYPE, &layer)?;
    let config_digest = hex_digest(&config);
    let manifest = bytes(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": add_blob(archive, CONFIG_TYPE, &config)?,
        "layers": [layer],
    }));
    let mut descriptor = add_blob(archive, MANIFEST_TYPE, &manifest)?;
    descriptor["platform"] = platform;
    Ok(Image {
        descriptor,
        config_digest,
        layer_digest,
    })
}

fn index(entries: &[Value]) -> Value {
    json!({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": entries})
}

/// Adds a blob and describes it.
fn add_blob(
    archive: &mut tar::Builder<impl Write>,
    media_type: &str,
    content: &[u8],
) -> io::Result<Value> {
    let digest = hex_digest(content);
    add_file(archive, &blob(&digest), 0o644, content)?;
    Ok(descriptor(media_type, &digest, content.len()))
}

/// The binary and a directory for what is temporary; `/proc` and the rest are mounted by the
/// runtime.
fn layer(binary: &[u8]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::with_capacity(binary.len() + 4096));
    add_folder(&mut archive, "tmp/", 0o1777)?;
    add_file(&mut archive, "eastwest", 0o755, binary)?;
    archive.into_inner()
}

fn add_folder(archive: &mut tar::Builder<impl Write>, path: &str, mode: u32) -> io::Result<()> {
    let mut header = header(mode, 0);
    header.set_entry_type(tar::EntryType::Directory);
    archive.append_data(&mut header, path, io::empty())
}

fn add_file(
    archive: &mut tar::Builder<impl Write>,
    path: &str,
    mode: u32,
    content: &[u8],
) -> io::Result<()> {
    let mut header = header(mode, content.len() as u64);
    header.set_entry_type(tar::EntryType::Regular);
    archive.append_data(&mut header, path, content)
}

/// Owned by root and without a time, so that the same binary gives the same image.
fn header(mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn descriptor(media_type: &str, digest: &str, size: usize) -> Value {
    json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
}

fn blob(digest: &str) -> String {
    format!("blobs/sha256/{digest}")
}

fn bytes(document: &Value) -> Vec<u8> {
    document.to_string().into_bytes()
}

/// The platform, in the names of the Go ports.
fn platform(architecture: &str) -> Value {
    let mut platform = json!({"architecture": go_architecture(architecture), "os": "linux"});
    if architecture == "armv7l" {
        platform["variant"] = json!("v7");
    }
    platform
}

/// The name that Kubernetes and images have for an architecture of `uname -m`.
#[must_use]
pub fn go_architecture(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i686" => "386",
        "armv7l" => "arm",
        other => other,
    }
}

/// As container runtimes complete short names.
fn full_name(repository: &str, tag: &str) -> String {
    let first = repository.split('/').next().unwrap_or_default();
    let has_registry =
        repository.contains('/') && (first.contains(['.', ':']) || first == "localhost");
    match (has_registry, repository.contains('/')) {
        (true, _) => format!("{repository}:{tag}"),
        (false, true) => format!("docker.io/{repository}:{tag}"),
        (false, false) => format!("docker.io/library/{repository}:{tag}"),
    }
}

fn split_name(name: &str) -> Result<(&str, &str), ImageError> {
    let refuse = || ImageError::Name {
        name: name.to_owned(),
    };
    let slash = name.rfind('/').map_or(0, |at| at + 1);
    let (repository, tag) = match name[slash..].rfind(':') {
        Some(colon) => (&name[..slash + colon], &name[slash + colon + 1..]),
        None => (name, "latest"),
    };
    let fits = |text: &str, more: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let is_lower = !repository.chars().any(|c| c.is_ascii_uppercase());
    if fits(repository, "._-/:") && fits(tag, "._-") && is_lower {
        Ok((repository, tag))
    } else {
        Err(refuse())
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn hex_digest(data: &[u8]) -> String {
    Sha256::digest(data)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read;

    fn entries(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let read = |entry: io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (path, content)
        };
        archive.entries().unwrap().map(read).collect()
    }

    fn json(content: &[u8]) -> Value {
        serde_json::from_slice(content).unwrap()
    }

    /// The blob that a descriptor leads to.
    fn follow(files: &BTreeMap<String, Vec<u8>>, descriptor: &Value) -> Vec<u8> {
        let digest = descriptor["digest"].as_str().unwrap();
        let digest = digest.strip_prefix("sha256:").unwrap();
        let content = &files[&format!("blobs/sha256/{digest}")];
        assert_eq!(hex_digest(content), digest);
        assert_eq!(descriptor["size"], content.len());
        content.clone()
    }

    const OWN: ImageProgram<'_> = ImageProgram {
        architecture: "x86_64",
        binary: b"\x7fELF binary",
    };

    fn image(others: &[ImageProgram<'_>]) -> Vec<u8> {
        let mut image = Vec::new();
        write_image(&mut image, "net/eastwest:1", OWN, others).unwrap();
        image
    }

    #[test]
    fn every_architecture_has_its_program() {
        let of = |architecture, binary| ImageProgram {
            architecture,
            binary,
        };
        let agents = [of("aarch64", &b"for arm64"[..]), of("armv7l", b"for arm")];
        let files = entries(&image(&agents));
        let layout = json(&files["index.json"]);
        assert_eq!(layout["manifests"].as_array().unwrap().len(), 1);
        let named = &layout["manifests"][0];
        assert_eq!(named["mediaType"], INDEX_TYPE);
        let name = &named["annotations"]["io.containerd.image.name"];
        assert_eq!(name, "docker.io/net/eastwest:1");
        let below = json(&follow(&files, named));
        let programs = below["manifests"].as_array().unwrap().iter().map(|entry| {
            let manifest = json(&follow(&files, entry));
            let config = json(&follow(&files, &manifest["config"]));
            assert_eq!(config["architecture"], entry["platform"]["architecture"]);
            let layer = entries(&follow(&files, &manifest["layers"][0]));
            let platform = &entry["platform"];
            (
                platform["architecture"].as_str().unwrap().to_owned(),
                platform["variant"].as_str().map(str::to_owned),
                layer["eastwest"].clone(),
            )
        });
        let expected = [
            ("amd64", None, OWN.binary),
            ("arm64", None, agents[0].binary),
            ("arm", Some("v7"), agents[1].binary),
        ];
        let expected = expected.map(|(architecture, variant, program)| {
            let variant = variant.map(str::to_owned);
            (architecture.to_owned(), variant, program.to_vec())
        });
        assert_eq!(programs.collect::<Vec<_>>(), expected);
        let docker = json(&files["manifest.json"]);
        let config = json(&files[docker[0]["Config"].as_str().unwrap()]);
        assert_eq!(config["architecture"], "amd64");
    }

    #[test]
    fn every_digest_leads_to_its_blob() {
        let written = image(&[]);
        let files = entries(&written);
        let follow = |descriptor: &Value| follow(&files, descriptor);
        let index = json(&files["index.json"]);
        let manifest = json(&follow(&index["manifests"][0]));
        let config = json(&follow(&manifest["config"]));
        let layer = follow(&manifest["layers"][0]);
        assert_eq!(entries(&layer)["eastwest"], b"\x7fELF binary");
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            manifest["layers"][0]["digest"]
        );
        assert_eq!(
            (&config["architecture"], &config["config"]["User"]),
            (&json!("amd64"), &json!(USER))
        );
        let docker = json(&files["manifest.json"]);
        assert_eq!(docker[0]["RepoTags"][0], "net/eastwest:1");
        assert!(files.contains_key(docker[0]["Layers"][0].as_str().unwrap()));
        assert!(image(&[]) == written);
    }

    #[test]
    fn names_are_split_as_registries_do() {
        let split = |name| split_name(name).ok();
        assert_eq!(split("eastwest"), Some(("eastwest", "latest")));
        assert_eq!(
            split("localhost:5000/a/b:v1"),
            Some(("localhost:5000/a/b", "v1"))
        );
        assert_eq!(
            split("localhost:5000/a"),
            Some(("localhost:5000/a", "latest"))
        );
        assert!(split("Eastwest:1").is_none() && split("").is_none() && split("a b").is_none());
        assert_eq!(full_name("eastwest", "1"), "docker.io/library/eastwest:1");
        assert_eq!(full_name("quay.io/x/y", "1"), "quay.io/x/y:1");
    }
}
