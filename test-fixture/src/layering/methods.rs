//! A type whose methods are spread over the files of one module: each file calls only methods of the files above it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Violation;
use super::source::{File, Source};
use super::tokens::Token;

/// The calls, in the files of `module`, of methods of the type `shared` that are defined in a file below.
///
/// The module's own file counts as above all others.
pub(super) fn violations(source: &Source, module: &str, shared: &str) -> Vec<Violation> {
    let files = source.files();
    let order = files.children.get(&[module][..]);
    let order = order.map_or(&[][..], Vec::as_slice);
    let rank = |file: &File<'_>| {
        let child = file.module.get(1)?;
        order.iter().position(|sibling| sibling == child)
    };
    let inside: Vec<_> = files
        .files
        .iter()
        .filter(|file| file.module.first() == Some(&module))
        .collect();
    let mut defined: BTreeMap<&str, Option<usize>> = BTreeMap::new();
    for file in &inside {
        for name in definitions(file, shared) {
            let place = rank(file);
            defined
                .entry(name)
                .and_modify(|known| *known = place.min(*known))
                .or_insert(place);
        }
    }
    let mut found = Vec::new();
    for file in &inside {
        for (line, name) in calls(file, shared) {
            let Some(place) = defined.get(name).filter(|place| **place > rank(file)) else {
                continue;
            };
            let own = file.module.get(1).copied().unwrap_or(module);
            let other = place.and_then(|place| order.get(place)).copied();
            let other = other.unwrap_or(module);
            found.push(Violation {
                file: file.path.to_owned(),
                line,
                text: format!("`{own}` calls `{name}()` of `{other}`, which is below it"),
            });
        }
    }
    found
}

/// The names of the functions in the blocks `impl shared`.
fn definitions<'s>(file: &File<'s>, shared: &str) -> Vec<&'s str> {
    let mut found = Vec::new();
    for block in blocks(&file.tokens, shared) {
        for pair in file.tokens[block].windows(2) {
            if pair[0].text == "fn" {
                found.push(pair[1].text);
            }
        }
    }
    found
}

/// Calls `self.name(`, `Self::name(`, `shared::name(`, and those on a parameter of that type.
fn calls<'s>(file: &File<'s>, shared: &str) -> Vec<(usize, &'s str)> {
    let tokens = &file.tokens;
    let blocks = blocks(tokens, shared);
    let parameters = parameters(tokens, shared);
    let mut found = Vec::new();
    for (at, window) in tokens.windows(4).enumerate() {
        let [receiver, joint, name, after] = window else {
            continue;
        };
        let begins = at == 0 || ![".", "::"].contains(&tokens[at - 1].text);
        let inside = blocks.iter().any(|block| block.contains(&at));
        let is_receiver = match (receiver.text, joint.text) {
            ("self", ".") | ("Self", "::") => inside && begins,
            (text, "::") => text == shared,
            (text, ".") => begins && parameters.contains(&text),
            _ => false,
        };
        if is_receiver && ["(", "::"].contains(&after.text) {
            found.push((name.line, name.text));
        }
    }
    found
}

/// Names of function parameters whose type is a reference to `shared`.
fn parameters<'s>(tokens: &[Token<'s>], shared: &str) -> Vec<&'s str> {
    let mut found = Vec::new();
    for (at, window) in tokens.windows(3).enumerate() {
        if window[1].text != ":" || window[2].text != "&" {
            continue;
        }
        let kind = tokens[at + 3..]
            .iter()
            .find(|token| !["mut", "super", "crate", "::"].contains(&token.text));
        if kind.is_some_and(|token| token.text == shared) {
            found.push(window[0].text);
        }
    }
    found
}

/// The bodies of the items `impl shared` and `impl Trait for shared`.
fn blocks(tokens: &[Token<'_>], shared: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let is_item = at == 0 || ["}", ";", "]", "{", "unsafe"].contains(&tokens[at - 1].text);
        if tokens[at].text != "impl" || !is_item {
            continue;
        }
        let Some(open) = tokens[at..].iter().position(|token| token.text == "{") else {
            continue;
        };
        let open = at + open;
        if subject(&tokens[at + 1..open]) == Some(shared) {
            found.push(open..close(tokens, open));
        }
    }
    found
}

/// The type that an `impl` header is for: the last name before its own generic arguments.
fn subject<'s>(header: &[Token<'s>]) -> Option<&'s str> {
    let mut depth = 0_usize;
    let mut subject = None;
    for token in header {
        match token.text {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            "where" if depth == 0 => break,
            "for" if depth == 0 => subject = None,
            text if depth == 0 && text.starts_with(char::is_alphabetic) => subject = Some(text),
            _ => {}
        }
    }
    subject
}

fn close(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}
