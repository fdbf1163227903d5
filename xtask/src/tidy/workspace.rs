//! What the rules check, read once.

use super::manifest::Manifest;
use super::source::Source;
use super::violation::Violation;
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

/// A page of the documentation.
#[derive(Debug)]
pub(crate) struct Doc {
    /// From the workspace's folder.
    pub(crate) path: PathBuf,
    /// All of it.
    pub(crate) text: String,
}

/// The workspace's text.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// One per package.
    pub(crate) manifests: Vec<Manifest>,
    /// Every Rust file of every package.
    pub(crate) sources: Vec<Source>,
    /// Scripts of pages, from the workspace's folder.
    pub(crate) scripts: Vec<PathBuf>,
    /// Pages of the documentation.
    pub(crate) docs: Vec<Doc>,
    /// Files that are no Rust.
    pub(crate) unreadable: Vec<Violation>,
    /// The text of ARCHITECTURE.md, if there is one.
    pub(crate) architecture: Option<String>,
}

impl Workspace {
    /// Reads `crates/*` and `xtask` below `root`.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut workspace = Self {
            manifests: vec![],
            sources: vec![],
            scripts: vec![],
            docs: docs(root)?,
            unreadable: vec![],
            architecture: fs::read_to_string(root.join("ARCHITECTURE.md")).ok(),
        };
        for folder in package_folders(root)? {
            let path = folder.join("Cargo.toml");
            let manifest = Manifest::parse(relative(root, &path), &read(&path)?);
            for file in files(&folder, "rs")? {
                workspace.add_source(root, &file, &manifest.package)?;
            }
            let scripts = files(&folder, "js")?.into_iter();
            let scripts = scripts.map(|file| relative(root, &file));
            workspace.scripts.extend(scripts);
            workspace.manifests.push(manifest);
        }
        Ok(workspace)
    }

    fn add_source(&mut self, root: &Path, file: &Path, package: &str) -> anyhow::Result<()> {
        let path = relative(root, file);
        match Source::parse(path, package, &read(file)?) {
            Ok(source) => self.sources.push(source),
            Err(violation) => self.unreadable.push(violation),
        }
        Ok(())
    }
}

fn package_folders(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = vec![root.join("xtask")];
    folders.extend(entries(&root.join("crates"))?);
    folders.retain(|f| f.join("Cargo.toml").is_file());
    Ok(folders)
}

/// The pages in the root and below `docs`.
fn docs(root: &Path) -> anyhow::Result<Vec<Doc>> {
    let mut pages = entries(root)?;
    pages.retain(|page| page.is_file() && page.extension().is_some_and(|e| e == "md"));
    let folder = root.join("docs");
    if folder.is_dir() {
        pages.extend(files(&folder, "md")?);
    }
    let read = pages.into_iter().map(|page| {
        let text = read(&page)?;
        let path = relative(root, &page);
        Ok(Doc { path, text })
    });
    read.collect()
}

/// Files with the extension, in all depths.
fn files(folder: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = vec![];
    for entry in entries(folder)? {
        if entry.is_dir() {
            found.extend(files(&entry, extension)?);
        } else if entry.extension().is_some_and(|e| e == extension) {
            found.push(entry);
        }
    }
    Ok(found)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut entries = vec![];
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        // A link could lead out of the workspace or in a circle.
        if !entry.file_type()?.is_symlink() {
            entries.push(entry.path());
        }
    }
    entries.sort();
    Ok(entries)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn relative(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_their_files_are_found() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("crates/ew-x/src/deep");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(root.path().join("crates/no-package")).unwrap();
        fs::write(
            root.path().join("crates/ew-x/Cargo.toml"),
            "[package]\nname = \"ew-x\"\n",
        )
        .unwrap();
        fs::write(folder.join("a.rs"), "fn a() {}").unwrap();
        fs::write(folder.join("b.rs"), "fn b( {").unwrap();
        fs::write(folder.join("c.txt"), "text").unwrap();
        let workspace = Workspace::read(root.path()).unwrap();
        assert_eq!(workspace.manifests.len(), 1);
        assert_eq!(workspace.sources.len(), 1);
        assert_eq!(workspace.unreadable.len(), 1);
        assert_eq!(workspace.architecture, None);
    }
}
