//! An image of the binary itself: one archive that is an OCI image layout and a docker archive at
//! once, so that skopeo, crane, podman, docker and containerd all read it. No builder, no base
//! image, no registry.
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

/// Writes the image `name` of a static binary for `architecture` (as `uname -m` has it). The same
/// binary gives the same bytes.
///
/// # Errors
/// [`ImageError`].
pub fn write_image(
    output: impl Write,
    name: &str,
    architecture: &str,
    binary: &[u8],
) -> Result<(), ImageError> {
    let (repository, tag) = split_name(name)?;
    let layer = layer(binary)?;
    let layer_digest = hex_digest(&layer);
    let config = json!({
        "architecture": platform(architecture),
        "os": "linux",
        "config": {
            "Entrypoint": ["/eastwest"],
            "User": USER,
            "Env": ["PATH=/"],
            "WorkingDir": "/tmp",
            "Labels": {"org.opencontainers.image.title": "eastwest"},
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer_digest}")]},
    });
    let config = bytes(&config);
    let config_digest = hex_digest(&config);
    let manifest = bytes(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": descriptor(CONFIG_TYPE, &config_digest, config.len()),
        "layers": [descriptor(LAYER_TYPE, &layer_digest, layer.len())],
    }));
    let manifest_digest = hex_digest(&manifest);
    let mut entry = descriptor(MANIFEST_TYPE, &manifest_digest, manifest.len());
    entry["platform"] = json!({"architecture": platform(architecture), "os": "linux"});
    entry["annotations"] = json!({
        "org.opencontainers.image.ref.name": tag,
        "io.containerd.image.name": full_name(repository, tag),
    });
    let index = json!({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry]});
    let docker = json!([{
        "Config": blob(&config_digest),
        "RepoTags": [format!("{repository}:{tag}")],
        "Layers": [blob(&layer_digest)],
    }]);

    let mut archive = tar::Builder::new(output);
    for folder in ["blobs/", "blobs/sha256/"] {
        add_folder(&mut archive, folder, 0o755)?;
    }
    add_file(&mut archive, &blob(&layer_digest), 0o644, &layer)?;
    add_file(&mut archive, &blob(&config_digest), 0o644, &config)?;
    add_file(&mut archive, &blob(&manifest_digest), 0o644, &manifest)?;
    add_file(
        &mut archive,
        "oci-layout",
        0o644,
        br#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    add_file(&mut archive, "index.json", 0o644, &bytes(&index))?;
    add_file(&mut archive, "manifest.json", 0o644, &bytes(&docker))?;
    archive.into_inner()?.flush()?;
    Ok(())
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

/// The platform names of the Go ports, which images use.
fn platform(architecture: &str) -> &str {
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

    #[test]
    fn every_digest_leads_to_its_blob() {
        let mut image = Vec::new();
        write_image(&mut image, "net/eastwest:1", "x86_64", b"\x7fELF binary").unwrap();
        let files = entries(&image);
        let json = |content: &[u8]| -> Value { serde_json::from_slice(content).unwrap() };
        let follow = |descriptor: &Value| {
            let digest = descriptor["digest"]
                .as_str()
                .unwrap()
                .strip_prefix("sha256:")
                .unwrap()
                .to_owned();
            let content = &files[&format!("blobs/sha256/{digest}")];
            assert_eq!(hex_digest(content), digest);
            assert_eq!(descriptor["size"], content.len());
            content.clone()
        };
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
        let mut again = Vec::new();
        write_image(&mut again, "net/eastwest:1", "x86_64", b"\x7fELF binary").unwrap();
        assert!(image == again);
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
