//! How urgent a response is, [RFC 9218, section 4](https://www.rfc-editor.org/rfc/rfc9218#section-4): the value of the
//! `priority` field, and of PRIORITY_UPDATE frames.
//!
//! The value is a dictionary of structured fields (RFC 8941, 3.2), of which two members mean something here; the rest is only
//! found the end of.

/// The urgency, 0 first and 7 last, and whether the response is of use in parts, so that it shares with others as urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priority {
    pub(crate) urgency: u8,
    pub(crate) incremental: bool,
}

impl Default for Priority {
    /// What a member that is left out stands for.
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: false,
        }
    }
}

impl Priority {
    /// The priority with the members of another value, which is ignored as a whole if it isn't a dictionary.
    pub(crate) fn with(self, value: &[u8]) -> Self {
        self.read(value).unwrap_or(self)
    }

    fn read(mut self, value: &[u8]) -> Option<Self> {
        let mut rest = trim(value);
        while !rest.is_empty() {
            let (member, after) = split(rest, b',')?;
            self.take(trim(member))?;
            rest = trim(after.unwrap_or_default());
            // A comma is followed by another member.
            if after.is_some() && rest.is_empty() {
                return None;
            }
        }
        Some(self)
    }

    /// Takes a member; the last of one name counts, and one of another type not at all.
    fn take(&mut self, member: &[u8]) -> Option<()> {
        let (item, _parameters) = split(member, b';')?;
        let item = trim(item);
        let end = item.iter().position(|byte| *byte == b'=');
        let (key, value) = item.split_at(end.unwrap_or(item.len()));
        let is_key = key.iter().enumerate().all(|(place, byte)| match byte {
            b'a'..=b'z' | b'*' => true,
            b'0'..=b'9' | b'_' | b'-' | b'.' => place > 0,
            _ => false,
        });
        if key.is_empty() || !is_key || value == b"=" {
            return None;
        }
        match (key, value) {
            (b"u", [b'=', digit @ b'0'..=b'7']) => self.urgency = digit - b'0',
            (b"i", b"" | b"=?1") => self.incremental = true,
            (b"i", b"=?0") => self.incremental = false,
            _ => {}
        }
        Some(())
    }

    /// The value that says so.
    pub(crate) fn value(self) -> &'static [u8] {
        const VALUES: [[&[u8]; 2]; 8] = [
            [b"u=0", b"u=0, i"],
            [b"u=1", b"u=1, i"],
            [b"u=2", b"u=2, i"],
            [b"u=3", b"u=3, i"],
            [b"u=4", b"u=4, i"],
            [b"u=5", b"u=5, i"],
            [b"u=6", b"u=6, i"],
            [b"u=7", b"u=7, i"],
        ];
        let [plain, incremental] = VALUES
            .get(usize::from(self.urgency))
            .copied()
            .unwrap_or([b"u=7", b"u=7, i"]);
        if self.incremental { incremental } else { plain }
    }
}

/// What is before and after the first `separator` that stands in no string and in no list; `None` when one of those has no
/// end.
fn split(bytes: &[u8], separator: u8) -> Option<(&[u8], Option<&[u8]>)> {
    let (mut in_string, mut in_list, mut is_escaped) = (false, false, false);
    for (place, byte) in bytes.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'(' => in_list = true,
            b')' => in_list = false,
            _ if in_list => {}
            byte if *byte == separator => {
                let (before, after) = bytes.split_at(place);
                return Some((before, after.get(1..)));
            }
            _ => {}
        }
    }
    (!in_string && !in_list).then_some((bytes, None))
}

fn trim(bytes: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = bytes.iter().position(|byte| !is_space(byte));
    let end = bytes.iter().rposition(|byte| !is_space(byte));
    match (start, end) {
        (Some(start), Some(end)) => bytes.get(start..=end).unwrap_or_default(),
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use quic_common::Random;

    use super::Priority;

    fn read(value: &str) -> (u8, bool) {
        let priority = Priority::default().with(value.as_bytes());
        (priority.urgency, priority.incremental)
    }

    /// RFC 9218, 4.1 and 4.2, and RFC 8941, 3.2.
    #[test]
    fn dictionaries_are_read() {
        for (value, expected) in [
            ("", (3, false)),
            ("u=5", (5, false)),
            ("i", (3, true)),
            ("u=0, i", (0, true)),
            ("i=?1,u=7", (7, true)),
            ("u=2, u=6", (6, false)),
            ("i, i=?0", (3, false)),
            ("u=1;x=2;y, i;a", (1, true)),
            ("  u=4\t,\ti  ", (4, true)),
            ("a=\"x, u=1\", b=(1 2), u=6, c=:AAAA:", (6, false)),
            ("a=\"\\\", u=1\", i", (3, true)),
        ] {
            assert_eq!(read(value), expected, "{value}");
        }
    }

    /// RFC 9218, 4: members of other types and out of range are ignored, alone.
    #[test]
    fn strange_members_are_ignored() {
        for value in [
            "u=8", "u=-1", "u=1.5", "u=?1", "u", "u=\"1\"", "i=1", "i=?2", "urgent=1",
        ] {
            assert_eq!(read(value), (3, false), "{value}");
            assert_eq!(read(&format!("{value}, u=2")), (2, false), "{value}");
        }
    }

    /// RFC 8941, 4.2: what is no dictionary is ignored as a whole.
    #[test]
    fn what_is_no_dictionary_is_ignored() {
        for value in [
            "u=1,",
            "u=1,,i",
            ",u=1",
            "u=",
            "U=1",
            "1=u",
            "u=1, a=\"",
            "u=1, a=(",
            "u =1",
        ] {
            assert_eq!(read(value), (3, false), "{value}");
        }
    }

    #[test]
    fn values_come_back() {
        for urgency in 0..8 {
            for incremental in [false, true] {
                let priority = Priority {
                    urgency,
                    incremental,
                };
                assert_eq!(Priority::default().with(priority.value()), priority);
            }
        }
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut random = Random::from_seed([8; 32]);
        let alphabet = b"ui=?017,;\"\\() \tabc:";
        for round in 0_usize..20_000 {
            let mut value = vec![0; round % 30];
            random.fill(&mut value);
            for byte in &mut value {
                *byte = alphabet[usize::from(*byte) % alphabet.len()];
            }
            assert!(Priority::default().with(&value).urgency < 8);
        }
    }
}
