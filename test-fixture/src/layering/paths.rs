//! Which modules a file names, and which of those lie below it.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{File, Files, Source, walk};
use super::tokens::Token;
use super::{METHODS, Violation};

/// The places that name a module below their own.
pub(super) fn violations(source: &Source) -> Vec<Violation> {
    let files = source.files();
    let exports = exports(&files);
    let mut found = BTreeSet::new();
    for file in files.files.iter().filter(|file| !file.module.is_empty()) {
        for (line, here, path) in named(file) {
            if let Some(text) = judge(&files, &exports, &here, &path) {
                found.insert(Violation {
                    file: file.path.to_owned(),
                    line,
                    text,
                });
            }
        }
    }
    found.into_iter().collect()
}

/// What is wrong with the module `here` naming `path`, both from the crate's root.
fn judge<'s>(
    files: &Files<'s>,
    exports: &BTreeMap<&'s str, &'s str>,
    here: &[&'s str],
    path: &[&'s str],
) -> Option<String> {
    let mut path = path.to_vec();
    let modules = files.children.get(&[][..]).map_or(&[][..], Vec::as_slice);
    match path.first() {
        None | Some(&"*") => return Some("names everything in the crate root".to_owned()),
        Some(first) if !modules.contains(first) => {
            let Some(module) = exports.get(first) else {
                return Some(format!(
                    "names `{first}` in the crate root, which no module is known to define"
                ));
            };
            path.insert(0, module);
        }
        Some(_) => {}
    }
    let shared = here.iter().zip(&path).take_while(|(a, b)| a == b).count();
    let ordered = shared == 0
        || METHODS
            .iter()
            .any(|(module, _)| [*module] == here[..shared]);
    let (Some(own), Some(other)) = (here.get(shared), path.get(shared)) else {
        return None; // It names itself, its own inside, or a module that it is inside of.
    };
    let siblings = files.children.get(&here[..shared])?;
    let rank = |name| siblings.iter().position(|sibling| sibling == name);
    let is_below = rank(other)? > rank(own)?;
    (ordered && is_below).then(|| {
        let (own, other) = (here[..=shared].join("::"), path[..=shared].join("::"));
        format!("`{own}` names `{other}`, which is below it")
    })
}

/// Each path that starts from the crate or from a parent: line, module it stands in, and the path from the root.
fn named<'s>(file: &File<'s>) -> Vec<(usize, Vec<&'s str>, Vec<&'s str>)> {
    let mut found = Vec::new();
    walk(&file.tokens, |at, inline| {
        let is_start = |token: &Token<'_>| ["crate", "super"].contains(&token.text);
        let follows = at > 0 && file.tokens[at - 1].text == "::";
        let leads = file
            .tokens
            .get(at + 1)
            .is_some_and(|next| next.text == "::");
        if !is_start(&file.tokens[at]) || follows || !leads {
            return;
        }
        let here = [file.module.as_slice(), inline].concat();
        let mut paths = Vec::new();
        tree(&file.tokens, at, &mut Vec::new(), &mut paths);
        for path in paths {
            let up = path.iter().take_while(|part| **part == "super").count();
            let base = if path[0] == "crate" {
                Vec::new()
            } else {
                here[..here.len().saturating_sub(up)].to_vec()
            };
            let rest = &path[up.max(1)..];
            found.push((file.tokens[at].line, here.clone(), [&base, rest].concat()));
        }
    });
    found
}

/// Reads a path or a tree of paths, such as `a::{b, c::*}`, and returns where it ends.
fn tree<'s>(
    tokens: &[Token<'s>],
    mut at: usize,
    prefix: &mut Vec<&'s str>,
    paths: &mut Vec<Vec<&'s str>>,
) -> usize {
    let depth = prefix.len();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    loop {
        if text(at) == "{" {
            at += 1;
            while !["}", ""].contains(&text(at)) {
                at = tree(tokens, at, prefix, paths);
                while ![",", "}", ""].contains(&text(at)) {
                    at += 1; // `as name`
                }
                at += usize::from(text(at) == ",");
            }
            at += 1;
            break;
        }
        if text(at) != "self" {
            prefix.push(text(at));
        }
        at += 1;
        if text(at) != "::" || text(at + 1) == "<" {
            paths.push(prefix.clone());
            break;
        }
        at += 1;
    }
    prefix.truncate(depth);
    at
}

/// Names that `lib.rs` re-exports, and the module that each is from.
fn exports<'s>(files: &Files<'s>) -> BTreeMap<&'s str, &'s str> {
    let mut found = BTreeMap::new();
    let Some(root) = files.files.iter().find(|file| file.module.is_empty()) else {
        return found;
    };
    walk(&root.tokens, |at, inline| {
        if root.tokens[at].text == "use" && inline.is_empty() {
            let mut paths = Vec::new();
            tree(&root.tokens, at + 1, &mut Vec::new(), &mut paths);
            for path in paths {
                let path = path.strip_prefix(&["crate"]).unwrap_or(&path);
                if let [module, .., name] = path {
                    found.insert(*name, *module);
                }
            }
        }
    });
    found
}
