//! Rust source as words and marks, without what layering doesn't care for: comments, literals, lifetimes.

/// An identifier, `::`, or a single punctuation character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'s> {
    pub(super) text: &'s str,
    pub(super) line: usize,
}

/// Splits `source`; source that doesn't compile gives some tokens or others.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        rest: source,
        line: 1,
    };
    let mut found = Vec::new();
    while let Some(first) = lexer.rest.chars().next() {
        let line = lexer.line;
        if let Some(text) = lexer.token(first) {
            found.push(Token { text, line });
        }
    }
    found
}

struct Lexer<'s> {
    rest: &'s str,
    line: usize,
}

impl<'s> Lexer<'s> {
    /// Takes the next lexical element; `None` if it is one of those left out.
    fn token(&mut self, first: char) -> Option<&'s str> {
        if self.rest.starts_with("//") {
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.block_comment();
        } else if let Some(quote) = string_start(self.rest) {
            self.string(quote);
        } else if first == '\'' || self.rest.starts_with("b'") {
            self.quoted();
        } else if first.is_ascii_digit() {
            self.take(word_length(self.rest));
        } else if let Some(raw) = self.rest.strip_prefix("r#") {
            let length = word_length(raw);
            return self.take(2 + length).strip_prefix("r#");
        } else if is_word(first) {
            return Some(self.take(word_length(self.rest)));
        } else if self.rest.starts_with("::") {
            return Some(self.take(2));
        } else {
            let mark = self.take(first.len_utf8());
            return (!first.is_whitespace()).then_some(mark);
        }
        None
    }

    fn take(&mut self, length: usize) -> &'s str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.take(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.take(2);
            } else if let Some(next) = self.rest.chars().next() {
                self.take(next.len_utf8());
            } else {
                return;
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self, quote: Quote) {
        self.take(quote.prefix);
        if let Some(hashes) = quote.raw {
            let end = format!("\"{}", "#".repeat(hashes));
            let length = self.rest.find(&end).map(|at| at + end.len());
            self.take(length.unwrap_or(self.rest.len()));
        } else {
            self.escaped('"');
        }
    }

    /// The rest of a literal that ends with `end`, in which a backslash protects the next character.
    fn escaped(&mut self, end: char) {
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            if character == '\\' {
                characters.next();
            } else if character == end {
                self.take(at + end.len_utf8());
                return;
            }
        }
        self.take(self.rest.len());
    }

    /// A character literal or a lifetime.
    fn quoted(&mut self) {
        self.take(self.rest.find('\'').unwrap_or(0) + 1);
        let mut ahead = self.rest.chars();
        if ahead.next() == Some('\\') || ahead.next() == Some('\'') {
            self.escaped('\'');
        } else {
            self.take(word_length(self.rest));
        }
    }
}

#[derive(Clone, Copy)]
struct Quote {
    /// Bytes up to and with the opening quote.
    prefix: usize,
    /// The number of hashes of a raw string.
    raw: Option<usize>,
}

fn string_start(rest: &str) -> Option<Quote> {
    let letters = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix);
        after.is_some_and(|after| {
            let hashed = prefix.ends_with('r').then(|| after.trim_start_matches('#'));
            hashed.unwrap_or(after).starts_with('"')
        })
    })?;
    let after = rest.strip_prefix(letters)?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    Some(Quote {
        prefix: letters.len() + hashes + 1,
        raw: letters.ends_with('r').then_some(hashes),
    })
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

fn word_length(rest: &str) -> usize {
    rest.find(|character| !is_word(character))
        .unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::tokens;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|token| token.text).collect()
    }

    #[test]
    fn paths_are_words_and_double_colons() {
        assert_eq!(
            texts("crate::a::{B}"),
            ["crate", "::", "a", "::", "{", "B", "}"]
        );
    }

    #[test]
    fn comments_are_left_out() {
        assert_eq!(texts("a // crate::b\n/* c /* d */ e */ f"), ["a", "f"]);
    }

    #[test]
    fn literals_are_left_out() {
        let source = r##"a "b\"c" r#"d"e"# b"f" 'g' '\'' b'h' 1_000u64 '"' i"##;
        assert_eq!(texts(source), ["a", "i"]);
    }

    #[test]
    fn lifetimes_are_left_out() {
        assert_eq!(texts("&'a str"), ["&", "str"]);
        assert_eq!(texts("<'a, 'b>x"), ["<", ",", ">", "x"]);
    }

    #[test]
    fn raw_identifiers_lose_their_prefix() {
        assert_eq!(texts("r#type r"), ["type", "r"]);
    }

    #[test]
    fn lines_count_through_literals_and_comments() {
        let found = tokens("/*\n*/ \"\n\"\nlast");
        assert_eq!(found.last().map(|token| token.line), Some(4));
    }
}
