//! The graph of a crate's top-level modules: an edge for each path that leads from one to another.

use std::collections::{BTreeMap, BTreeSet};

use super::rust_text;

type Path = Vec<String>;

/// One source file of a crate.
#[derive(Debug)]
pub(super) struct File<'a> {
    /// Below `src/`.
    pub(super) path: &'a str,
    /// For findings.
    pub(super) shown: &'a str,
    pub(super) text: &'a str,
}

/// The largest set of modules of which each leads to each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    pub(super) modules: Vec<String>,
    /// Its edges, as sentences with a place.
    pub(super) edges: Vec<String>,
}

/// A path of a source file: from where, to where.
#[derive(Debug)]
struct Mention {
    from: String,
    path: Path,
    place: String,
}

/// What a crate's modules declare and mention.
#[derive(Debug, Default)]
struct Graph {
    modules: BTreeSet<String>,
    /// Public names and the paths they stand in for, by module; the root's module is "".
    reexports: BTreeMap<(String, String), Path>,
    mentions: Vec<Mention>,
}

/// Reads the paths of one file.
struct Reader<'a> {
    tokens: Vec<(&'a str, usize)>,
    at: usize,
    /// The module of the file, and the inline modules around the current token with the depth of their braces.
    file: Path,
    inline: Vec<(usize, String)>,
    depth: usize,
    found: Vec<Found>,
}

/// A path, the name under which it is imported, and whether that is public.
#[derive(Debug)]
struct Found {
    path: Path,
    name: String,
    line: usize,
    is_public: bool,
}

/// Returns the largest cycle; one module, or none, if there is no cycle.
pub(super) fn largest_cycle(files: &[File<'_>]) -> Cycle {
    let graph = Graph::read(files);
    let mut edges: BTreeMap<(String, String), String> = BTreeMap::new();
    for mention in &graph.mentions {
        if let Some(to) = graph.module_of(&mention.path, 8)
            && to != mention.from
            && graph.modules.contains(&mention.from)
        {
            edges.insert((mention.from.clone(), to), mention.place.clone());
        }
    }
    let modules = largest_component(&graph.modules, &edges);
    let is_inside = |name: &String| modules.contains(name);
    let edges = edges
        .iter()
        .filter(|((from, to), _)| is_inside(from) && is_inside(to))
        .map(|((from, to), place)| format!("{place}: {from} uses {to}"))
        .collect();
    Cycle { modules, edges }
}

/// Returns the largest strongly connected set of modules.
fn largest_component(
    modules: &BTreeSet<String>,
    edges: &BTreeMap<(String, String), String>,
) -> Vec<String> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        modules.iter().map(|it| (it, reached(it, edges))).collect();
    let leads = |from: &String, to: &String| {
        let reached = reached.get(from);
        from == to || reached.is_some_and(|reached| reached.contains(to))
    };
    let component = |of: &String| {
        let both = |it: &&String| leads(of, it) && leads(it, of);
        modules.iter().filter(both).cloned().collect::<Vec<_>>()
    };
    let components = modules.iter().map(component);
    components.rev().max_by_key(Vec::len).unwrap_or_default()
}

fn reached<'a>(
    start: &'a String,
    edges: &'a BTreeMap<(String, String), String>,
) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(from) = open.pop() {
        let next = edges.keys().filter(|(a, _)| a == from).map(|(_, b)| b);
        open.extend(next.filter(|to| reached.insert(*to)));
    }
    reached
}

// === impl Graph ===

impl Graph {
    fn read(files: &[File<'_>]) -> Self {
        let mut graph = Self::default();
        let is_root = |file: &File<'_>| matches!(file.path, "lib.rs" | "main.rs");
        for file in files.iter().filter(|file| is_root(file)) {
            graph.modules.extend(declared(file.text));
        }
        for file in files {
            let path = module_path(file.path);
            let from = path.first().cloned().unwrap_or_default();
            for found in Reader::read(file.text, path, &graph.modules) {
                if found.is_public {
                    let key = (from.clone(), found.name);
                    graph.reexports.insert(key, found.path.clone());
                }
                graph.mentions.push(Mention {
                    from: from.clone(),
                    path: found.path,
                    place: format!("{}:{}", file.shown, found.line),
                });
            }
        }
        graph
    }

    /// Returns the module in which `path` ends, behind `hops` re-exports at most.
    fn module_of(&self, path: &[String], hops: usize) -> Option<String> {
        let (first, rest) = path.split_first()?;
        let is_module = self.modules.contains(first);
        let key = match rest.first() {
            Some(name) if is_module => (first.clone(), name.clone()),
            _ => (String::new(), first.clone()),
        };
        match self.reexports.get(&key) {
            Some(target) if hops > 0 && target != path => self.module_of(target, hops - 1),
            _ => is_module.then(|| first.clone()),
        }
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    fn read(text: &'a str, file: Path, modules: &BTreeSet<String>) -> Vec<Found> {
        let is_root = file.is_empty();
        let mut reader = Self {
            tokens: rust_text::tokens(text),
            at: 0,
            file,
            inline: Vec::new(),
            depth: 0,
            found: Vec::new(),
        };
        let mut is_public = false;
        while let Some(token) = reader.next() {
            match token {
                "{" => reader.depth += 1,
                "}" => reader.close(),
                "mod" => reader.open(),
                "use" => {
                    // In the root, a path may begin with a module's name alone.
                    let starts_here = reader.peek().is_some_and(|it| modules.contains(it));
                    if is_root && starts_here {
                        reader.tree(&Path::new(), is_public);
                    } else {
                        reader.path(is_public);
                    }
                }
                "crate" | "super" | "self" => {
                    reader.at -= 1;
                    reader.path(false);
                }
                _ => {}
            }
            is_public = token == "pub" || is_public && matches!(token, "(" | ")" | "crate");
        }
        reader.found
    }

    fn next(&mut self) -> Option<&'a str> {
        let (token, _) = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|(token, _)| *token)
    }

    fn skip(&mut self, token: &str) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    /// Enters `mod name {`; a declaration `mod name;` changes nothing.
    fn open(&mut self) {
        if let (Some(name), Some(("{", _))) = (self.peek(), self.tokens.get(self.at + 1)) {
            self.inline.push((self.depth, name.to_owned()));
        }
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self
            .inline
            .last()
            .is_some_and(|(depth, _)| *depth == self.depth)
        {
            self.inline.pop();
        }
    }

    /// Reads a path that begins with `crate`, `super` or `self`.
    fn path(&mut self, is_public: bool) {
        let begin = self.at;
        let mut base: Path = self.file.clone();
        base.extend(self.inline.iter().map(|(_, name)| name.clone()));
        loop {
            match self.peek() {
                Some("crate") => base.clear(),
                Some("super") => drop(base.pop()),
                Some("self") => {}
                _ => break,
            }
            self.at += 1;
            if !self.skip("::") {
                return;
            }
        }
        if self.at > begin {
            self.tree(&base, is_public);
        }
    }

    /// Reads a use tree below `base`.
    fn tree(&mut self, base: &Path, is_public: bool) {
        let mut path = base.clone();
        loop {
            if self.skip("{") {
                while self.peek().is_some_and(|token| token != "}") {
                    self.tree(&path, is_public);
                    self.skip(",");
                }
                self.skip("}");
                return;
            }
            let line = self.tokens.get(self.at).map_or(0, |(_, line)| *line);
            let Some(segment) = self.next() else { return };
            if segment != "self" && segment != "*" {
                path.push(segment.to_owned());
            }
            if self.peek() == Some("::") && self.is_path_after() {
                self.at += 1;
                continue;
            }
            let renamed = self.skip("as").then(|| self.next()).flatten();
            let name = renamed.or(path.last().map(String::as_str)).unwrap_or("");
            let name = name.to_owned();
            self.found.push(Found {
                path,
                name,
                line,
                is_public,
            });
            return;
        }
    }

    /// A turbofish ends the path.
    fn is_path_after(&self) -> bool {
        self.tokens
            .get(self.at + 1)
            .is_some_and(|(it, _)| *it != "<")
    }
}

fn declared(text: &str) -> BTreeSet<String> {
    let tokens = rust_text::tokens(text);
    let name = |it: &[(&str, usize)]| match it {
        [("mod", _), (name, _), (";", _)] => Some((*name).to_owned()),
        _ => None,
    };
    tokens.windows(3).filter_map(name).collect()
}

fn module_path(path: &str) -> Path {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    if matches!(path, "lib" | "main") {
        return Path::new();
    }
    path.split('/').map(String::from).collect()
}
