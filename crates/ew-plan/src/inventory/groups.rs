//! Group sources: where `@rack1` and `@source:rack1` are looked up.

use super::group_files::{Config, GroupValue, parse_config, parse_flat, parse_yaml};
use super::groups_error::{GroupsError, LookupError};
use super::upcall::Upcalls;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// How many names an error lists at most.
const MAX_SUGGESTIONS: usize = 6;

/// Paths where ClusterShell's configuration is searched; an argument, so that nothing here reads
/// the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEnvironment {
    /// `$CLUSTERSHELL_CFGDIR`, which goes before all others.
    pub cfgdir: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`.
    pub xdg_config_home: Option<PathBuf>,
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// `/etc/clustershell`.
    pub system_dir: PathBuf,
}

impl GroupEnvironment {
    /// From a way to look up environment variables, usually `std::env::var_os`.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name| lookup(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        Self {
            cfgdir: path("CLUSTERSHELL_CFGDIR"),
            xdg_config_home: path("XDG_CONFIG_HOME"),
            home: path("HOME"),
            system_dir: PathBuf::from("/etc/clustershell"),
        }
    }

    /// The directories, lowest precedence first.
    fn directories(&self) -> Vec<PathBuf> {
        let home = self.home.as_deref();
        let user = self
            .xdg_config_home
            .clone()
            .or_else(|| home.map(|h| h.join(".config")));
        [
            Some(self.system_dir.clone()),
            home.map(|h| h.join(".local/etc/clustershell")),
            user.map(|u| u.join("clustershell")),
            self.cfgdir.clone(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// All group sources found. The default value has none: every `@group` is then an error.
#[derive(Debug, Default)]
pub struct GroupSources {
    sources: Vec<Source>,
    /// Name of the source that `@group` means.
    default: Option<String>,
    /// What went wrong when loading; reported when a group is first asked for, because `n[1-4]`
    /// needs no groups.
    problem: Option<GroupsError>,
    /// Directories in which nothing was found.
    searched: Vec<PathBuf>,
    /// Files nearer than the nearest groups.conf, which ClusterShell does not read for that.
    passed_over: Vec<PathBuf>,
}

#[derive(Debug)]
struct Source {
    name: String,
    /// The file it comes from.
    origin: String,
    kind: SourceKind,
}

#[derive(Debug)]
enum SourceKind {
    /// Read from a file.
    Groups(BTreeMap<String, GroupValue>),
    /// Asked through shell commands named in groups.conf.
    Upcalls(Upcalls),
}

impl GroupSources {
    /// Finds and reads group files in ClusterShell's search order: `$CLUSTERSHELL_CFGDIR`, the
    /// user's configuration directory, `/etc/clustershell`.
    ///
    /// `groups.conf` is honoured (`default`, `confdir`, `autodir`, sources with shell upcalls);
    /// without one, a flat file `groups`, `groups.d/*.yaml` and `groups.d/*.cfg` are read, with
    /// `local` as the default source. Files that are wrong are reported when a group is first asked
    /// for; see [`Self::problem`].
    #[must_use]
    pub fn load(environment: &GroupEnvironment) -> Self {
        let mut sources = Self::default();
        if let Err(problem) = sources.load_all(&environment.directories()) {
            sources.problem = Some(problem);
        }
        sources
    }

    /// One source, the default one, from the text of a flat file: `name: nodeset [nodeset...]` a
    /// line.
    ///
    /// # Errors
    /// [`GroupsError::Format`] when a line is not of that form.
    pub fn from_flat(name: &str, text: &str, origin: &str) -> Result<Self, GroupsError> {
        let mut sources = Self {
            default: Some(name.to_owned()),
            ..Self::default()
        };
        sources.add_flat(name, text, origin)?;
        Ok(sources)
    }

    /// One source, the default one, of groups whose members are known by name; `all` is all of them
    /// unless it is defined.
    #[must_use]
    pub(super) fn of_names(groups: &BTreeMap<String, Vec<String>>, origin: &str) -> Self {
        const NAME: &str = "inventory";
        let value = |name: &String, members: &[String]| GroupValue {
            value: members.join(","),
            location: format!("group @{name} in {origin}"),
        };
        let values = groups
            .iter()
            .map(|(name, members)| (name.clone(), value(name, members)));
        Self {
            default: Some(NAME.to_owned()),
            sources: vec![Source {
                name: NAME.to_owned(),
                origin: origin.to_owned(),
                kind: SourceKind::Groups(values.collect()),
            }],
            ..Self::default()
        }
    }

    /// Adds a source from the text of a flat file.
    ///
    /// # Errors
    /// [`GroupsError`] when a line is wrong, or there is a source of that name.
    pub fn add_flat(&mut self, name: &str, text: &str, origin: &str) -> Result<(), GroupsError> {
        self.add(name, origin, SourceKind::Groups(parse_flat(text, origin)?))
    }

    /// Adds the sources of a YAML file: source to group to node set, list of node sets, or nothing.
    ///
    /// # Errors
    /// [`GroupsError`] when the text is not of that form, or there is a source of one of the names.
    pub fn add_yaml(&mut self, text: &str, origin: &str) -> Result<(), GroupsError> {
        for (name, groups) in parse_yaml(text, origin)? {
            self.add(&name, origin, SourceKind::Groups(groups))?;
        }
        Ok(())
    }

    /// Names of all sources.
    #[must_use]
    pub fn source_names(&self) -> Vec<&str> {
        self.sources.iter().map(|s| s.name.as_str()).collect()
    }

    /// What went wrong when the files were loaded.
    #[must_use]
    pub fn problem(&self) -> Option<&GroupsError> {
        self.problem.as_ref()
    }

    /// The name of the source meant: the one given, or the default one.
    pub(super) fn name_of(&self, source: Option<&str>) -> Result<&str, LookupError> {
        self.source(source).map(|s| s.name.as_str())
    }

    /// Names of all groups of a source.
    pub(super) fn list(&self, source: Option<&str>) -> Result<Vec<String>, LookupError> {
        let source = self.source(source)?;
        match &source.kind {
            SourceKind::Groups(groups) => Ok(groups.keys().cloned().collect()),
            SourceKind::Upcalls(upcalls) => upcalls
                .list()?
                .ok_or_else(|| source.cannot("list its groups", "list")),
        }
    }

    /// A group's definition.
    pub(super) fn group(&self, source: &str, group: &str) -> Result<GroupValue, LookupError> {
        let source = self.source(Some(source))?;
        let unknown = |known: &[String]| self.unknown_group(source, group, known);
        match &source.kind {
            SourceKind::Groups(groups) => groups
                .get(group)
                .cloned()
                .ok_or_else(|| unknown(&groups.keys().cloned().collect::<Vec<_>>())),
            SourceKind::Upcalls(upcalls) => {
                let value = upcalls.map(group)?;
                if value.trim().is_empty() {
                    let known = upcalls.list()?.unwrap_or_default();
                    if !known.iter().any(|k| k == group) {
                        return Err(unknown(&known));
                    }
                }
                Ok(source.value_of(group, value))
            }
        }
    }

    /// Definitions whose union is all nodes of a source: its group `all`, or else all of its
    /// groups.
    pub(super) fn all(&self, name: &str) -> Result<Vec<GroupValue>, LookupError> {
        let source = self.source(Some(name))?;
        match &source.kind {
            SourceKind::Groups(groups) => Ok(match groups.get("all") {
                Some(all) => vec![all.clone()],
                None => groups.values().cloned().collect(),
            }),
            SourceKind::Upcalls(upcalls) => {
                if let Some(all) = upcalls.all()? {
                    return Ok(vec![source.value_of("*", all)]);
                }
                let groups = upcalls
                    .list()?
                    .ok_or_else(|| source.cannot("name all nodes", "all` or `list"))?;
                groups.iter().map(|g| self.group(name, g)).collect()
            }
        }
    }

    fn source(&self, name: Option<&str>) -> Result<&Source, LookupError> {
        if let Some(problem) = &self.problem {
            return Err(LookupError {
                problem: format!("groups cannot be looked up: {problem}"),
                remedy: "put the file right, or name the hosts without groups".into(),
            });
        }
        if self.sources.is_empty() {
            return Err(self.no_sources());
        }
        let wanted = name.or(self.default.as_deref());
        self.sources
            .iter()
            .find(|s| Some(s.name.as_str()) == wanted)
            .ok_or_else(|| LookupError {
                problem: match wanted {
                    Some(wanted) => format!("unknown group source `{wanted}`"),
                    None => "no default group source".into(),
                },
                remedy: format!("known sources: {}", self.source_names().join(", ")),
            })
    }

    fn no_sources(&self) -> LookupError {
        let remedy = if self.searched.is_empty() {
            "name the hosts without groups, or give a groups file".to_owned()
        } else {
            let searched: Vec<String> = self
                .searched
                .iter()
                .map(|d| d.join("groups").display().to_string())
                .collect();
            format!(
                "write lines `name: nodeset` into one of {}",
                searched.join(", ")
            )
        };
        LookupError {
            problem: "groups are used but no group file was found".into(),
            remedy,
        }
    }

    fn unknown_group(&self, source: &Source, group: &str, known: &[String]) -> LookupError {
        let prefix = if self.default.as_deref() == Some(source.name.as_str()) {
            "@".to_owned()
        } else {
            format!("@{}:", source.name)
        };
        let near = near_names(group, known);
        let remedy = if group.contains(['*', '?']) {
            "wildcards do not match group names; write a range such as @rack[1-3], or @* for all nodes"
                .to_owned()
        } else if !near.is_empty() {
            format!(
                "did you mean {prefix}{}?",
                near.join(&format!(", {prefix}"))
            )
        } else if known.is_empty() {
            format!("{} defines no groups", source.origin)
        } else {
            let more = if known.len() > MAX_SUGGESTIONS {
                ", ..."
            } else {
                ""
            };
            let some = &known[..known.len().min(MAX_SUGGESTIONS)];
            format!(
                "{} defines {prefix}{}{more}",
                source.origin,
                some.join(&format!(", {prefix}"))
            )
        };
        LookupError {
            problem: format!("unknown group `{prefix}{group}`"),
            remedy: remedy + &self.without_groups_conf(),
        }
    }

    fn without_groups_conf(&self) -> String {
        let advice = |path: &PathBuf| {
            let path = path.display();
            format!("\n{path} is not read, as in ClusterShell: it has no groups.conf next to it")
        };
        self.passed_over.iter().map(advice).collect()
    }
}

/// Loading from directories.
impl GroupSources {
    fn load_all(&mut self, directories: &[PathBuf]) -> Result<(), GroupsError> {
        // As in ClusterShell, `$CFGDIR` is where the nearest groups.conf is.
        let nearest = |names: &[&str]| {
            let has_one = |d: &&PathBuf| names.iter().any(|name| d.join(name).exists());
            directories.iter().rev().find(has_one)
        };
        let found = nearest(&["groups.conf"]).or_else(|| nearest(&["groups", "groups.d"]));
        let Some(cfgdir) = found else {
            self.searched = directories.iter().rev().cloned().collect();
            return Ok(());
        };
        let nearer = directories.iter().rev().take_while(|d| *d != cfgdir);
        let flat = nearer.map(|directory| directory.join("groups"));
        self.passed_over = flat.filter(|path| path.exists()).collect();
        let mut config = Config::default();
        let mut config_path = None;
        for directory in directories {
            let path = directory.join("groups.conf");
            if let Some(text) = read_if_there(&path)? {
                config.override_with(parse_config(&text, &path.display().to_string())?);
                config_path = Some(path);
            }
        }
        let (confdirs, autodirs) = if config_path.is_some() {
            (
                config.directories("confdir", cfgdir),
                config.directories("autodir", cfgdir),
            )
        } else {
            (
                vec![cfgdir.join("groups.conf.d")],
                vec![cfgdir.join("groups.d")],
            )
        };
        for directory in &confdirs {
            for path in files_in(directory, "conf")? {
                let location = path.display().to_string();
                let text = read_if_there(&path)?.unwrap_or_default();
                self.add_sections(&parse_config(&text, &location)?, directory)?;
            }
        }
        for directory in &autodirs {
            for path in files_in(directory, "yaml")? {
                let text = read_if_there(&path)?.unwrap_or_default();
                self.add_yaml(&text, &path.display().to_string())?;
            }
        }
        self.add_sections(&config, cfgdir)?;
        self.add_flat_files(cfgdir, &autodirs)?;
        self.choose_default(&config, config_path.as_deref())
    }

    fn add_sections(&mut self, config: &Config, directory: &Path) -> Result<(), GroupsError> {
        for section in config.sections() {
            for name in section.names() {
                let map = section.get("map").ok_or_else(|| GroupsError::Format {
                    location: section.location.clone(),
                    problem: format!(
                        "group source `{name}` has no `map`; add the command that prints a group's nodes"
                    ),
                })?;
                let kind = match flat_file_of(map, directory) {
                    Some(path) => {
                        let text = read_if_there(&path)?.unwrap_or_default();
                        let origin = path.display().to_string();
                        self.add_flat(name, &text, &origin)?;
                        continue;
                    }
                    None => SourceKind::Upcalls(Upcalls {
                        source: name.to_owned(),
                        map: map.to_owned(),
                        all: section.get("all").map(str::to_owned),
                        list: section.get("list").map(str::to_owned),
                        directory: directory.to_owned(),
                    }),
                };
                self.add(name, &section.location, kind)?;
            }
        }
        Ok(())
    }

    /// Flat files that no section of groups.conf speaks of: `groups` is the source `local`,
    /// `NAME.cfg` is `NAME`.
    fn add_flat_files(&mut self, cfgdir: &Path, autodirs: &[PathBuf]) -> Result<(), GroupsError> {
        let mut files = vec![("local".to_owned(), cfgdir.join("groups"))];
        for directory in autodirs {
            for path in files_in(directory, "cfg")? {
                if let Some(stem) = path.file_stem() {
                    files.push((stem.to_string_lossy().into_owned(), path));
                }
            }
        }
        for (name, path) in files {
            if self.sources.iter().any(|s| s.name == name) {
                continue;
            }
            if let Some(text) = read_if_there(&path)? {
                self.add_flat(&name, &text, &path.display().to_string())?;
            }
        }
        Ok(())
    }

    fn choose_default(
        &mut self,
        config: &Config,
        location: Option<&Path>,
    ) -> Result<(), GroupsError> {
        let known = |name: &str| self.sources.iter().any(|s| s.name == name);
        let stated = config.main("default").filter(|name| !name.is_empty());
        let default = match stated {
            Some(name) if known(name) => Some(name.to_owned()),
            Some(name) => {
                return Err(GroupsError::NoDefault {
                    location: location
                        .map(|p| p.display().to_string())
                        .unwrap_or_default(),
                    name: name.to_owned(),
                    known: self.source_names().join(", "),
                });
            }
            None if known("local") => Some("local".to_owned()),
            None => self.sources.first().map(|s| s.name.clone()),
        };
        self.default = default;
        Ok(())
    }

    fn add(&mut self, name: &str, origin: &str, kind: SourceKind) -> Result<(), GroupsError> {
        if let Some(first) = self.sources.iter().find(|s| s.name == name) {
            return Err(GroupsError::Collision {
                name: name.to_owned(),
                first: first.origin.clone(),
                second: origin.to_owned(),
            });
        }
        self.sources.push(Source {
            name: name.to_owned(),
            origin: origin.to_owned(),
            kind,
        });
        Ok(())
    }
}

impl Source {
    fn value_of(&self, group: &str, value: String) -> GroupValue {
        let location = format!("group @{}:{group} from {}", self.name, self.origin);
        GroupValue { value, location }
    }

    fn cannot(&self, what: &str, key: &str) -> LookupError {
        LookupError {
            problem: format!("group source `{}` cannot {what}", self.name),
            remedy: format!("add `{key}` to its section in {}", self.origin),
        }
    }
}

/// The flat file that an upcall of the stock configuration reads with sed: read here directly, so
/// that a blank before the colon does no harm and errors can name the line.
fn flat_file_of(map: &str, directory: &Path) -> Option<PathBuf> {
    if !map.contains(r"s/^$GROUP:\(.*\)/\1/p") {
        return None;
    }
    match map.split_whitespace().next_back()? {
        "$f" if map.contains("$CFGDIR/groups.d/local.cfg") => {
            let old = directory.join("groups");
            Some(if old.is_file() {
                old
            } else {
                directory.join("groups.d/local.cfg")
            })
        }
        path if map.starts_with("sed -n ") => match path.strip_prefix("$CFGDIR/") {
            Some(relative) => Some(directory.join(relative)),
            None if path.starts_with('/') => Some(PathBuf::from(path)),
            None => None,
        },
        _ => None,
    }
}

fn read_if_there(path: &Path) -> Result<Option<String>, GroupsError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(reason) => Err(GroupsError::Read {
            path: path.to_owned(),
            reason,
        }),
    }
}

/// Files with this extension, sorted; none when the directory is not there.
fn files_in(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, GroupsError> {
    let read_error = |reason| GroupsError::Read {
        path: directory.to_owned(),
        reason,
    };
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(read_error(e)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(read_error)?.path();
        let hidden = path
            .file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if !hidden && path.extension().is_some_and(|e| e == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Names within a few edits, nearest first.
fn near_names(name: &str, known: &[String]) -> Vec<String> {
    let allowed = (name.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &String)> = known
        .iter()
        .map(|k| (edit_distance(name, k, allowed), k))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    near.sort();
    near.into_iter()
        .take(MAX_SUGGESTIONS)
        .map(|(_, k)| k.clone())
        .collect()
}

/// Insertions, deletions and replacements between two names, case aside; anything above `limit` is
/// `limit + 1`.
fn edit_distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (
        a.to_lowercase().chars().collect(),
        b.to_lowercase().chars().collect(),
    );
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()].min(limit + 1)
}

#[cfg(test)]
mod tests {
    use super::super::nodeset::expand;
    use super::*;
    use std::fs;

    fn environment(system: &Path, cfgdir: Option<&Path>) -> GroupEnvironment {
        GroupEnvironment {
            cfgdir: cfgdir.map(Path::to_owned),
            xdg_config_home: None,
            home: None,
            system_dir: system.to_owned(),
        }
    }

    fn write(directory: &Path, name: &str, text: &str) {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn without_groups_conf_flat_and_yaml_files_are_found() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "groups", "rack1 : n1 n2\n");
        write(dir.path(), "groups.d/local.cfg", "rack1: m9\n");
        write(dir.path(), "groups.d/site.cfg", "x: s[1-2]\n");
        write(
            dir.path(),
            "groups.d/c.yaml",
            "racks:\n  r1: 'a[1-2]'\n  r2: ['a3', 'a4,@r1']\n  none:\n",
        );
        let sources = GroupSources::load(&environment(dir.path(), None));
        assert!(sources.problem().is_none(), "{:?}", sources.problem());
        let get = |set: &str| expand(set, &sources).unwrap().join(" ");
        assert_eq!(get("@rack1"), "n1 n2");
        assert_eq!(get("@site:x"), "s1 s2");
        assert_eq!(get("@racks:r2"), "a1 a2 a3 a4");
        assert_eq!(get("@racks:none"), "");
        assert_eq!(get("@racks:*"), "a1 a2 a3 a4");
    }

    #[test]
    fn the_nearest_groups_conf_wins() {
        let (system, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let stock = "[Main]\ndefault: local\n[local]\nmap: [ -f $CFGDIR/groups ] && f=$CFGDIR/groups || \
                     f=$CFGDIR/groups.d/local.cfg; sed -n 's/^$GROUP:\\(.*\\)/\\1/p' $f\n";
        write(system.path(), "groups.conf", stock);
        write(system.path(), "groups.d/local.cfg", "g: far\n");
        let far = GroupSources::load(&environment(system.path(), None));
        assert_eq!(expand("@g", &far).unwrap(), ["far"]);
        write(user.path(), "groups", "g: near\n");
        write(user.path(), "groups.d/local.cfg", "g: other\n");
        let load = || GroupSources::load(&environment(system.path(), Some(user.path())));
        assert_eq!(expand("@g", &load()).unwrap(), ["far"]);
        let error = expand("@h", &load()).unwrap_err();
        let near = user.path().join("groups").display().to_string();
        assert!(
            error.remedy.contains(&format!("{near} is not read")),
            "{error}"
        );
        write(user.path(), "groups.conf", "[Main]\ndefault: local\n");
        assert_eq!(expand("@g", &load()).unwrap(), ["near"]);
    }

    #[test]
    fn broken_files_matter_only_when_groups_are_used() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "groups", "rack1: n1\nthis is not a group\n");
        let sources = GroupSources::load(&environment(dir.path(), None));
        assert_eq!(expand("n1", &sources).unwrap(), ["n1"]);
        let error = expand("@rack1", &sources).unwrap_err();
        assert!(error.problem.contains("line 2"), "{error}");
    }

    #[test]
    fn no_files_at_all_says_where_to_write() {
        let dir = tempfile::tempdir().unwrap();
        let sources = GroupSources::load(&environment(dir.path(), None));
        let error = expand("@rack1", &sources).unwrap_err();
        assert!(error.remedy.contains("groups"), "{error}");
    }

    #[test]
    fn sources_of_one_name_collide() {
        let mut sources = GroupSources::from_flat("a", "x: n1", "one").unwrap();
        let error = sources.add_yaml("a: {y: n2}", "two").unwrap_err();
        assert!(error.to_string().contains("one") && error.to_string().contains("two"));
    }

    #[test]
    fn wrong_default_is_named() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "groups", "g: n1\n");
        write(dir.path(), "groups.conf", "[Main]\ndefault: slurm\n");
        let error = expand("@g", &GroupSources::load(&environment(dir.path(), None))).unwrap_err();
        assert!(error.problem.contains("slurm"), "{error}");
    }

    #[test]
    fn upcalls_answer() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            "groups.conf",
            "[Main]\ndefault: sh\n[sh,again]\nmap: test $GROUP != bad && case $GROUP in a) echo n1 n2;; b) echo '@a'; echo $SOURCE;; esac\n\
             list: echo a b\n[mute]\nmap: sleep 0\n",
        );
        let sources = GroupSources::load(&environment(dir.path(), None));
        let get = |set: &str| expand(set, &sources);
        assert_eq!(
            get("@b").unwrap(),
            ["again", "n1", "n2"][1..]
                .iter()
                .copied()
                .chain(["sh"])
                .collect::<Vec<_>>()
        );
        assert_eq!(get("@again:b").unwrap(), ["again", "n1", "n2"]);
        assert_eq!(get("@*").unwrap(), ["n1", "n2", "sh"]);
        assert!(get("@c").unwrap_err().remedy.contains("@a"));
        assert!(get("@bad").unwrap_err().problem.contains("sh"));
        assert!(get("@a;id").unwrap_err().problem.contains("shell"));
        assert!(get("@mute:*").unwrap_err().remedy.contains("list"));
    }
}
