//! The files of a crate, found by following its `mod` lines, without unit tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::tokens::{Token, tokens};

/// The sources of one crate.
#[derive(Debug)]
pub(super) struct Source {
    /// Text by path from the crate's directory, with `/` between parts.
    texts: BTreeMap<String, String>,
}

/// One file, seen as the module that it is.
#[derive(Debug)]
pub(super) struct File<'s> {
    pub(super) path: &'s str,
    /// Names of the modules from the root to this one.
    pub(super) module: Vec<&'s str>,
    /// The tokens outside of unit tests.
    pub(super) tokens: Vec<Token<'s>>,
}

/// All files, and the order in which each module declares its children.
#[derive(Debug, Default)]
pub(super) struct Files<'s> {
    pub(super) files: Vec<File<'s>>,
    pub(super) children: BTreeMap<Vec<&'s str>, Vec<&'s str>>,
}

impl Source {
    /// Reads what is under `src` in `directory`.
    pub(super) fn read(directory: &Path) -> Self {
        let mut texts = BTreeMap::new();
        read_into(&mut texts, &directory.join("src"), "src");
        assert!(
            texts.contains_key("src/lib.rs"),
            "no src/lib.rs in {}",
            directory.display()
        );
        Self { texts }
    }

    #[cfg(test)]
    pub(super) fn made_up(files: &[(&str, &str)]) -> Self {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self {
            texts: files.iter().map(owned).collect(),
        }
    }

    /// Follows the `mod` lines from `lib.rs`.
    pub(super) fn files(&self) -> Files<'_> {
        let mut found = Files::default();
        self.follow(Vec::new(), &mut found);
        found
    }

    fn follow<'s>(&'s self, module: Vec<&'s str>, found: &mut Files<'s>) {
        let stem = [&["src"], module.as_slice()].concat().join("/");
        let candidates = if module.is_empty() {
            ["src/lib.rs".to_owned(), "src/main.rs".to_owned()]
        } else {
            [format!("{stem}.rs"), format!("{stem}/mod.rs")]
        };
        let file = candidates
            .iter()
            .find_map(|path| self.texts.get_key_value(path));
        let Some((path, text)) = file else {
            return; // A made-up source that leaves out what it doesn't need.
        };
        let tokens = without_tests(&tokens(text));
        let mut declared = Vec::new();
        for (inline, child, is_file) in declarations(&tokens) {
            let parent = [module.as_slice(), &inline].concat();
            let path = [parent.as_slice(), &[child]].concat();
            found.children.entry(parent).or_default().push(child);
            if is_file {
                declared.push(path);
            }
        }
        found.files.push(File {
            path,
            module,
            tokens,
        });
        for child in declared {
            self.follow(child, found);
        }
    }
}

fn read_into(texts: &mut BTreeMap<String, String>, directory: &Path, name: &str) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let name = format!("{name}/{file}");
        if path.is_dir() {
            read_into(texts, &path, &name);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            texts.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

/// Calls `visit(index, inline modules)` for each token, where these are the modules opened with braces in this file.
pub(super) fn walk<'s>(tokens: &[Token<'s>], mut visit: impl FnMut(usize, &[&'s str])) {
    let mut inline = Vec::new();
    let mut depths = Vec::new();
    let mut depth = 0_usize;
    for at in 0..tokens.len() {
        match tokens[at].text {
            "{" => {
                depth += 1;
                if at >= 2 && tokens[at - 2].text == "mod" {
                    inline.push(tokens[at - 1].text);
                    depths.push(depth);
                }
            }
            "}" => {
                if depths.last() == Some(&depth) {
                    inline.pop();
                    depths.pop();
                }
                depth = depth.saturating_sub(1);
            }
            _ => visit(at, &inline),
        }
    }
}

/// The `mod` items of a file: the inline modules around each, its name, and whether it is in a file of its own.
fn declarations<'s>(tokens: &[Token<'s>]) -> Vec<(Vec<&'s str>, &'s str, bool)> {
    let mut found = Vec::new();
    walk(tokens, |at, inline| {
        let ahead = (tokens.get(at + 1), tokens.get(at + 2));
        if let ("mod", (Some(name), Some(after))) = (tokens[at].text, ahead)
            && ["{", ";"].contains(&after.text)
        {
            found.push((inline.to_vec(), name.text, after.text == ";"));
        }
    });
    found
}

/// Leaves out each item that has the attribute `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
fn without_tests<'s>(tokens: &[Token<'s>]) -> Vec<Token<'s>> {
    let begins = |rest: &[Token<'s>], texts: &[&str]| {
        rest.len() >= texts.len()
            && rest
                .iter()
                .zip(texts)
                .all(|(token, text)| token.text == *text)
    };
    let mut kept = Vec::new();
    let mut rest = tokens;
    while let Some(first) = rest.first() {
        let test = begins(rest, &["#", "[", "cfg", "(", "test", ")"])
            || begins(rest, &["#", "[", "cfg", "(", "all", "(", "test"]);
        if test {
            rest = &rest[item_length(rest)..];
        } else {
            kept.push(*first);
            rest = &rest[1..];
        }
    }
    kept
}

/// Tokens up to the end of an item: its semicolon, or the brace that closes its first block or what it is in.
fn item_length(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "}" if depth == 0 => return at,
            "}" => {
                depth -= 1;
                let is_use = tokens.get(at + 1).is_some_and(|next| next.text == ";");
                if depth == 0 && !is_use {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}
