//! Sets of node names and the operations on them.

use super::folding::{products, write_indexes};
use super::group_files::GroupValue;
use super::groups::GroupSources;
use super::index::Index;
use super::limits::{MAX_INDEXES, MAX_NODES};
use super::mask::Mask;
use super::node_set_error::{Fault, NodeSetError};
use super::syntax::{Blanks, Operand, Operator, Shape, parse, parse_name};
use std::collections::BTreeMap;
use std::fmt;

/// A host's name has at most 253 characters (RFC 1035); all names of a set have so many on average.
const MAX_SHAPE_BYTES: usize = 256;

/// How deep groups may nest.
const MAX_GROUP_DEPTH: usize = 64;

/// All nodes of a set, in the order of ClusterShell's `nodeset -e`.
///
/// # Errors
/// [`NodeSetError`] when the text is not a node set, names an unknown group, or holds more than
/// [`MAX_NODES`] nodes.
pub fn expand(set: &str, sources: &GroupSources) -> Result<Vec<String>, NodeSetError> {
    Ok(NodeSet::parse(set, sources)?.names())
}

/// The names as one short node set, as `nodeset -f` writes it. Names are taken literally.
pub fn fold<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> String {
    NodeSet::from_names(names).to_string()
}

/// How many nodes a set contains, as `nodeset -c` counts.
///
/// # Errors
/// As [`expand`].
pub fn count(set: &str, sources: &GroupSources) -> Result<usize, NodeSetError> {
    Ok(NodeSet::parse(set, sources)?.len())
}

/// A group by its full name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupName {
    pub(super) source: String,
    pub(super) group: String,
}

/// The groups, not their nodes, that a set such as `@rack[1-8]!@rack3` names, in the order they are
/// named. `@*` and `@source:*` are all groups of a source but `all`.
///
/// # Errors
/// [`NodeSetError`] when an operand is not a group or the group is unknown.
pub(super) fn group_names(
    set: &str,
    sources: &GroupSources,
) -> Result<Vec<GroupName>, NodeSetError> {
    let mut chosen: Vec<GroupName> = Vec::new();
    for operand in parse(set, Blanks::Mistake).map_err(|f| f.in_text(set, None))? {
        let groups = groups_of_operand(&operand, sources).map_err(|f| f.in_text(set, None))?;
        let fresh: Vec<GroupName> = groups
            .iter()
            .filter(|g| !chosen.contains(g))
            .cloned()
            .collect();
        match operand.operator {
            Operator::Union => {}
            Operator::Intersection => chosen.retain(|g| groups.contains(g)),
            Operator::Difference | Operator::SymmetricDifference => {
                chosen.retain(|g| !groups.contains(g));
            }
        }
        if matches!(
            operand.operator,
            Operator::Union | Operator::SymmetricDifference
        ) {
            chosen.extend(fresh);
        }
    }
    Ok(chosen)
}

fn groups_of_operand(operand: &Operand, sources: &GroupSources) -> Result<Vec<GroupName>, Fault> {
    let span = || operand.span.clone();
    let mut groups = Vec::new();
    let names = NodeSet::from_operand(operand).map_err(|e| e.at(span()))?;
    for name in names.names() {
        let Some(name) = name.strip_prefix('@').filter(|n| !n.starts_with('@')) else {
            return Err(Fault::new(
                span(),
                format!("`{name}` is not a group"),
                "racks are groups of hosts: write @NAME, @NAME[1-3] or @SOURCE:NAME",
            ));
        };
        let (source, group) = match name.split_once(':') {
            Some((source, group)) => (Some(source), group),
            None => (None, name),
        };
        let source = sources.name_of(source).map_err(|e| e.at(span()))?;
        let names = if group == "*" {
            let mut all = sources.list(Some(source)).map_err(|e| e.at(span()))?;
            all.retain(|g| g != "all");
            NodeSet::from_names(all).names()
        } else {
            sources.group(source, group).map_err(|e| e.at(span()))?;
            vec![group.to_owned()]
        };
        groups.extend(names.into_iter().map(|group| GroupName {
            source: source.to_owned(),
            group,
        }));
    }
    Ok(groups)
}

/// A set of node names. Displays folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet {
    /// For each shape of name the index tuples that occur, sorted and unique (outside of
    /// [`NodeSet::unite`]).
    shapes: BTreeMap<Shape, Vec<Box<[Index]>>>,
}

impl NodeSet {
    /// Reads a node set. Lines are united, as `nodeset` does with an argument of several lines.
    ///
    /// # Errors
    /// As [`expand`].
    pub fn parse(set: &str, sources: &GroupSources) -> Result<Self, NodeSetError> {
        Self::parse_in_place(set, sources, Blanks::Mistake, None)
    }

    /// The same, with what a blank means and where the text comes from.
    pub(super) fn parse_in_place(
        set: &str,
        sources: &GroupSources,
        blanks: Blanks,
        location: Option<&str>,
    ) -> Result<Self, NodeSetError> {
        let mut evaluator = Evaluator::new(sources);
        let mut all = Self::default();
        for line in set.lines() {
            let nodes = evaluator.evaluate(&Text {
                text: line,
                blanks,
                location,
                source: None,
            })?;
            let whole = 0..line.len();
            all.unite(nodes)
                .and_then(|()| all.settle())
                .map_err(|too_large| too_large.at(whole).in_text(line, location))?;
        }
        Ok(all)
    }

    /// The set of these names, taken literally: no operators, brackets or groups.
    pub fn from_names<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        let mut set = Self::default();
        for name in names {
            let (shape, indexes) = parse_name(name.as_ref());
            set.shapes.entry(shape).or_default().push(indexes);
        }
        set.sort();
        set
    }

    /// How many nodes it contains.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shapes.values().map(Vec::len).sum()
    }

    /// Whether it contains none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Whether it contains this node.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        let (shape, indexes) = parse_name(name);
        self.shapes
            .get(&shape)
            .is_some_and(|tuples| tuples.binary_search(&indexes).is_ok())
    }

    /// All names, in the order of `nodeset -e`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.len());
        for (shape, tuples) in &self.shapes {
            if tuples.first().is_some_and(|tuple| tuple.len() < 2) {
                names.extend(tuples.iter().map(|t| shape.fill(t, ToString::to_string)));
                continue;
            }
            for product in products(tuples) {
                for tuple in cartesian(&product) {
                    names.push(shape.fill(&tuple, ToString::to_string));
                }
            }
        }
        names
    }

    fn from_operand(operand: &Operand) -> Result<Self, TooLarge> {
        let size = operand
            .indexes
            .iter()
            .fold(1_usize, |n, set| n.saturating_mul(set.len()));
        let indexes = size.saturating_mul(operand.indexes.len());
        let names_bytes = size.saturating_mul(operand.shape.len());
        if size > MAX_NODES || indexes > MAX_INDEXES || names_bytes > MAX_NODES * MAX_SHAPE_BYTES {
            return Err(TooLarge);
        }
        let mut tuples = cartesian(&operand.indexes);
        tuples.sort_unstable();
        Ok(Self {
            shapes: BTreeMap::from([(operand.shape.clone(), tuples)]),
        })
    }

    fn apply(&mut self, operator: Operator, other: Self) -> Result<(), TooLarge> {
        match operator {
            Operator::Union => self.unite(other)?,
            Operator::Difference => self.remove(other)?,
            Operator::Intersection => {
                self.settle()?;
                self.keep(&other, true);
            }
            Operator::SymmetricDifference => {
                self.settle()?;
                let mut only_other = other.clone();
                only_other.keep(self, false);
                self.keep(&other, false);
                self.unite(only_other)?;
            }
        }
        Ok(())
    }

    /// Takes away the nodes of `other`, which need not be resolved.
    fn remove(&mut self, mut other: Self) -> Result<(), TooLarge> {
        if other.is_empty() {
            return Ok(());
        }
        self.settle()?;
        other.settle()?;
        self.keep(&other, false);
        Ok(())
    }

    /// Adds all of `other`, leaving the tuples unsorted, because a list of n names would otherwise
    /// be sorted n times.
    fn unite(&mut self, other: Self) -> Result<(), TooLarge> {
        for (shape, tuples) in other.shapes {
            let mine = self.shapes.entry(shape).or_default();
            if mine.is_empty() {
                *mine = tuples;
            } else {
                mine.extend(tuples);
            }
        }
        if self.len() > MAX_NODES {
            self.settle()?;
        }
        Ok(())
    }

    /// Puts the tuples in order, once each.
    fn settle(&mut self) -> Result<(), TooLarge> {
        self.sort();
        if self.len() > MAX_NODES {
            return Err(TooLarge);
        }
        Ok(())
    }

    fn sort(&mut self) {
        for tuples in self.shapes.values_mut() {
            if !tuples.is_sorted_by(|a, b| a < b) {
                tuples.sort_unstable();
                tuples.dedup();
            }
        }
        self.shapes.retain(|_, tuples| !tuples.is_empty());
    }

    /// Keeps the nodes that are in `other`, or those that are not. Both sets must be resolved.
    fn keep(&mut self, other: &Self, in_other: bool) {
        for (shape, tuples) in &mut self.shapes {
            match other.shapes.get(shape) {
                Some(others) => {
                    tuples.retain(|t| others.binary_search(t).is_ok() == in_other);
                }
                None if in_other => tuples.clear(),
                None => {}
            }
        }
        self.shapes.retain(|_, tuples| !tuples.is_empty());
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (shape, tuples) in &self.shapes {
            for product in products(tuples) {
                let part = shape.fill(&product, |indexes| write_indexes(indexes));
                write!(f, "{separator}{part}")?;
                separator = ",";
            }
        }
        Ok(())
    }
}

/// A set above [`MAX_NODES`].
struct TooLarge;

impl TooLarge {
    fn at(self, span: std::ops::Range<usize>) -> Fault {
        let problem = format!("more than {MAX_NODES} nodes");
        Fault::new(span, problem, "name a smaller set")
    }
}

/// Every combination, the last set varying fastest.
fn cartesian(sets: &[Vec<Index>]) -> Vec<Box<[Index]>> {
    let mut tuples: Vec<Vec<Index>> = vec![Vec::with_capacity(sets.len())];
    for set in sets {
        tuples = match set.as_slice() {
            [one] => {
                tuples.iter_mut().for_each(|tuple| tuple.push(*one));
                tuples
            }
            _ => tuples
                .iter()
                .flat_map(|tuple| {
                    set.iter().map(|&index| {
                        let mut longer = Vec::with_capacity(sets.len());
                        longer.extend_from_slice(tuple);
                        longer.push(index);
                        longer
                    })
                })
                .collect(),
        };
    }
    tuples.into_iter().map(Vec::into_boxed_slice).collect()
}

/// A text to evaluate and what is known of it.
struct Text<'a> {
    text: &'a str,
    blanks: Blanks,
    location: Option<&'a str>,
    /// The group source that names without a source belong to; `None` for the default one.
    source: Option<&'a str>,
}

/// A group on the way from the user's text to the one being looked up.
type GroupKey = (String, String);

/// Computes sets from texts and resolves the groups in them.
struct Evaluator<'a> {
    sources: &'a GroupSources,
    /// Groups already resolved; the flag shows whether wildcards were looked up.
    resolved: BTreeMap<(GroupKey, bool), NodeSet>,
    /// How many nodes they have in all.
    resolved_nodes: usize,
    /// Groups being resolved, outermost first.
    open: Vec<GroupKey>,
    /// False while all nodes of a source are being gathered: a wildcard can only select among nodes
    /// named otherwise.
    match_wildcards: bool,
}

impl<'a> Evaluator<'a> {
    fn new(sources: &'a GroupSources) -> Self {
        Self {
            sources,
            resolved: BTreeMap::new(),
            resolved_nodes: 0,
            open: Vec::new(),
            match_wildcards: true,
        }
    }

    fn evaluate(&mut self, text: &Text<'_>) -> Result<NodeSet, NodeSetError> {
        let fault = |fault: Fault| fault.in_text(text.text, text.location);
        let mut set = NodeSet::default();
        // Differences in a row are taken off together: one by one, each would go through the whole
        // set.
        let mut removed = NodeSet::default();
        for operand in parse(text.text, text.blanks).map_err(fault)? {
            let too_large = |error: TooLarge| fault(error.at(operand.span.clone()));
            let nodes = self.operand(&operand, text)?;
            if operand.operator == Operator::Difference {
                removed.unite(nodes).map_err(too_large)?;
                continue;
            }
            set.remove(std::mem::take(&mut removed))
                .map_err(too_large)?;
            set.apply(operand.operator, nodes).map_err(too_large)?;
        }
        set.remove(removed)
            .and_then(|()| set.settle())
            .map_err(|error| fault(error.at(0..text.text.len())))?;
        Ok(set)
    }

    fn operand(&mut self, operand: &Operand, text: &Text<'_>) -> Result<NodeSet, NodeSetError> {
        if operand.shape.starts_with('@') {
            self.groups(operand, text)
        } else if operand.shape.contains('*') || operand.shape.contains('?') {
            self.matching(operand, text)
        } else {
            NodeSet::from_operand(operand).map_err(|error| {
                error
                    .at(operand.span.clone())
                    .in_text(text.text, text.location)
            })
        }
    }

    /// The union of the groups an operand names: `@rack[1-3]`, `@source:*`, `@@`.
    fn groups(&mut self, operand: &Operand, text: &Text<'_>) -> Result<NodeSet, NodeSetError> {
        let too_large = |error: TooLarge| {
            error
                .at(operand.span.clone())
                .in_text(text.text, text.location)
        };
        let mut union = NodeSet::default();
        let names = NodeSet::from_operand(operand).map_err(too_large)?.names();
        for name in names {
            let nodes = self.group(&name, operand, text)?;
            union.unite(nodes).map_err(too_large)?;
        }
        union.settle().map_err(too_large)?;
        Ok(union)
    }

    fn group(
        &mut self,
        name: &str,
        operand: &Operand,
        text: &Text<'_>,
    ) -> Result<NodeSet, NodeSetError> {
        let fault = |fault: Fault| fault.in_text(text.text, text.location);
        let at = |problem: String, remedy: &str| {
            fault(Fault::new(operand.span.clone(), problem, remedy))
        };
        let bare = name.strip_prefix('@').unwrap_or(name);
        if let Some(source) = bare.strip_prefix('@') {
            let source = if source.is_empty() {
                None
            } else {
                Some(source)
            };
            let listed = self
                .sources
                .list(source)
                .map_err(|e| fault(e.at(operand.span.clone())))?;
            return Ok(NodeSet::from_names(listed));
        }
        let (source, group) = match bare.split_once(':') {
            Some((source, group)) => (Some(source), group),
            None => (text.source, bare),
        };
        if group.is_empty() {
            return Err(at(
                "`@` without a group name".into(),
                "write @NAME, @SOURCE:NAME, or @* for all nodes",
            ));
        }
        let source = self
            .sources
            .name_of(source)
            .map_err(|e| fault(e.at(operand.span.clone())))?
            .to_owned();
        let key = (source, group.to_owned());
        if self.open.contains(&key) {
            return Err(at(
                format!("group cycle: {}", self.cycle(&key)),
                "take one of these groups out of another's definition",
            ));
        }
        if self.open.len() >= MAX_GROUP_DEPTH {
            return Err(at(
                format!("groups nested more than {MAX_GROUP_DEPTH} deep"),
                "define the group with fewer groups in groups",
            ));
        }
        if let Some(nodes) = self.resolved.get(&(key.clone(), self.match_wildcards)) {
            return Ok(nodes.clone());
        }
        self.open.push(key.clone());
        let nodes = self.resolve(&key, operand, text);
        self.open.pop();
        let nodes = nodes?;
        self.resolved_nodes += nodes.len();
        if self.resolved_nodes > MAX_INDEXES {
            return Err(fault(TooLarge.at(operand.span.clone())));
        }
        self.resolved
            .insert((key, self.match_wildcards), nodes.clone());
        Ok(nodes)
    }

    fn resolve(
        &mut self,
        (source, group): &GroupKey,
        operand: &Operand,
        text: &Text<'_>,
    ) -> Result<NodeSet, NodeSetError> {
        let outside = |e: super::groups_error::LookupError| {
            e.at(operand.span.clone()).in_text(text.text, text.location)
        };
        let values = if group == "*" {
            self.sources.all(source).map_err(outside)?
        } else {
            vec![self.sources.group(source, group).map_err(outside)?]
        };
        let too_large = |error: TooLarge| {
            error
                .at(operand.span.clone())
                .in_text(text.text, text.location)
        };
        let mut union = NodeSet::default();
        for GroupValue { value, location } in &values {
            let nodes = self.evaluate(&Text {
                text: value,
                blanks: Blanks::Separator,
                location: Some(location),
                source: Some(source),
            })?;
            union.unite(nodes).map_err(too_large)?;
        }
        union.settle().map_err(too_large)?;
        Ok(union)
    }

    /// The nodes, among all of the source, that an operand with `*` or `?` matches.
    fn matching(&mut self, operand: &Operand, text: &Text<'_>) -> Result<NodeSet, NodeSetError> {
        if !self.match_wildcards {
            return Ok(NodeSet::default());
        }
        self.match_wildcards = false;
        let all = self.group_of_all(operand, text);
        self.match_wildcards = true;
        let mask = Mask::of(operand);
        let names = all?.names().into_iter();
        Ok(NodeSet::from_names(names.filter(|name| mask.matches(name))))
    }

    fn group_of_all(
        &mut self,
        operand: &Operand,
        text: &Text<'_>,
    ) -> Result<NodeSet, NodeSetError> {
        let everything = match text.source {
            Some(source) => format!("@{source}:*"),
            None => "@*".to_owned(),
        };
        // The groups open now use the wildcard; gathering all nodes may pass through them again,
        // without wildcards.
        let open = std::mem::take(&mut self.open);
        let all = self.group(&everything, operand, text);
        self.open = open;
        all
    }

    fn cycle(&self, again: &GroupKey) -> String {
        let start = self.open.iter().position(|key| key == again).unwrap_or(0);
        self.open[start..]
            .iter()
            .chain([again])
            .map(|(source, group)| format!("@{source}:{group}"))
            .collect::<Vec<_>>()
            .join(" -> ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups() -> GroupSources {
        GroupSources::from_flat(
            "local",
            "all: n[1-8]\nrack1: n[1-2] n3\nrack2 :n[4-6]\nboth: @rack[1-2]\na: @b\nb: n1,@c\nc: @a\nodd: n?,@rack1",
            "test",
        )
        .unwrap()
    }

    fn folded(set: &str) -> String {
        NodeSet::parse(set, &groups()).unwrap().to_string()
    }

    #[test]
    fn operations_run_left_to_right() {
        assert_eq!(folded("n[1-6]!n3,n3"), "n[1-6]");
        assert_eq!(folded("n3,n[1-6]!n3"), "n[1-2,4-6]");
        assert_eq!(folded("n[1-6]&n[4-9]^n[6-7]"), "n[4-5,7]");
        assert_eq!(folded("n1\n\nn2"), "n[1-2]");
        assert_eq!(folded("n1^n1"), "");
    }

    #[test]
    fn groups_resolve() {
        assert_eq!(folded("@rack[1-2]!@rack2"), "n[1-3]");
        assert_eq!(folded("@both,n9"), "n[1-6,9]");
        assert_eq!(folded("@*"), "n[1-8]");
        assert_eq!(folded("@local:*!n[2-8]"), "n1");
        assert_eq!(folded("@@"), "a,all,b,both,c,odd,rack[1-2]");
        assert_eq!(folded("n*!n[1-6]"), "n[7-8]");
        assert_eq!(folded("@odd"), "n[1-8]");
    }

    #[test]
    fn unknown_groups_are_errors_with_near_names() {
        let error = NodeSet::parse("n1,@rak1,n3", &groups()).unwrap_err();
        assert_eq!((error.offset, error.length), (3, 5));
        assert!(error.remedy.contains("@rack1"), "{error}");
        let error = NodeSet::parse("@nosrc:x", &groups()).unwrap_err();
        assert!(error.remedy.contains("local"), "{error}");
        assert!(NodeSet::parse("@rack*", &groups()).is_err());
        assert!(NodeSet::parse("@", &groups()).is_err());
        assert!(NodeSet::parse("@x", &GroupSources::default()).is_err());
    }

    #[test]
    fn cycles_are_named() {
        let error = NodeSet::parse("@a", &groups()).unwrap_err();
        assert_eq!(
            error.problem,
            "group cycle: @local:a -> @local:b -> @local:c -> @local:a"
        );
        assert!(error.location.unwrap().contains("@c"));
    }

    #[test]
    fn errors_inside_groups_show_the_line_of_the_file() {
        let text = "mc_rack1:host[102,104].my.company.com\nmc_rack3: host[302,304,305-0333].my.company.com\n";
        let sources = GroupSources::from_flat("local", text, "/etc/clustershell/groups").unwrap();
        let error = NodeSet::parse("@mc_rack[1,3]", &sources).unwrap_err();
        assert_eq!(
            error.to_string(),
            "padding mismatch: `305` has 3 digits, `0333` has 4 (group @mc_rack3 in /etc/clustershell/groups, line 2)\n\
             \x20 host[302,304,305-0333].my.company.com\n\
             \x20              ^^^^^^^^\n\
             write 305-333 or 0305-0333"
        );
        let error = NodeSet::parse("n[1-4,m2", &sources).unwrap_err();
        assert_eq!(
            error.to_string(),
            "missing closing bracket\n  n[1-4,m2\n   ^^^^\nclose it: `[1-4]`"
        );
        let error = NodeSet::parse("n[1-", &sources).unwrap_err();
        assert_eq!(
            error.to_string(),
            "missing closing bracket\n  n[1-\n   ^^^\nfinish it with a number and `]`, for example `[1-9]`"
        );
        let error = NodeSet::parse("n3,n1 n2", &sources).unwrap_err();
        assert_eq!(
            error.to_string(),
            "blank inside a name\n  n3,n1 n2\n       ^\nseparate node sets with a comma: `n1,n2`"
        );
    }

    #[test]
    fn doubling_groups_do_not_explode() {
        let mut text = String::from("g0: n1\n");
        for i in 1..40 {
            text.push_str(&format!("g{i}: @g{},@g{}\n", i - 1, i - 1));
        }
        let sources = GroupSources::from_flat("local", &text, "test").unwrap();
        assert_eq!(expand("@g39", &sources).unwrap(), ["n1"]);
        for i in 40..100 {
            text.push_str(&format!("g{i}: @g{}\n", i - 1));
        }
        let sources = GroupSources::from_flat("local", &text, "test").unwrap();
        assert!(
            expand("@g99", &sources)
                .unwrap_err()
                .problem
                .contains("deep")
        );
    }

    #[test]
    fn size_is_bounded() {
        let none = GroupSources::default();
        assert_eq!(count("n[1-1000000]", &none).unwrap(), MAX_NODES);
        assert!(count("n[1-1000000],m1", &none).is_err());
        assert_eq!(
            count("n[1-600000],n[1-600000]", &none).unwrap(),
            600_000,
            "one set twice is not too large"
        );
        assert!(count("n[1-1001]x[1-1000]", &none).is_err());
        assert!(count("n[1-1000]x[1-1000]x[1-1000]", &none).is_err());
        let many = |part: &str, times: usize| format!("n{}", part.repeat(times));
        assert!(count(&many(",n[1-1000000]", 9), &none).is_err());
        assert!(count(&many("[1-1000000]x", 9), &none).is_err());
        assert!(count(&many("a1", 9).replace('n', "n[1-1000000]"), &none).is_err());
        assert!(count(&many("a", 257).replace('n', "n[1-1000000]"), &none).is_err());
    }

    #[test]
    fn groups_are_bounded_together() {
        let line = |number: usize| format!("g{number}: n[1-1000000]\n");
        let text: String = (0..9).map(line).collect();
        let sources = GroupSources::from_flat("x", &text, "test").unwrap();
        assert_eq!(count("@g0,@g1", &sources).unwrap(), MAX_NODES);
        assert_eq!(count("@*", &sources).unwrap(), MAX_NODES);
        assert!(count("@g[0-8]", &sources).is_err());
    }

    #[test]
    fn folding_names_back() {
        assert_eq!(fold(["n2", "n1", "x", "r1n1", "r2n1"]), "n[1-2],r[1-2]n1,x");
        let set = NodeSet::from_names(["n2", "n10"]);
        assert!(set.contains("n10") && !set.contains("n010"));
    }

    #[test]
    fn all_nodes_of_overlapping_groups() {
        let sources =
            GroupSources::from_flat("x", "a: r1n1 r2n2\nb: r1n1 r2n1 r2n2", "test").unwrap();
        let all = "r1n1 r2n1 r2n2";
        assert_eq!(expand("@*", &sources).unwrap().join(" "), all);
        assert_eq!(
            NodeSet::parse("r*", &sources).unwrap(),
            NodeSet::from_names(all.split(' '))
        );
        assert_eq!(count("@*!r1n1!r9n9", &sources).unwrap(), 2);
    }
}
