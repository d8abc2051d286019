//! The static table of [RFC 9204, appendix A](https://www.rfc-editor.org/rfc/rfc9204#appendix-A).
//!
//! Names are found through a small hash table, and entries of one name through a chain; both are computed at compile time.

/// Where a field line stands in the static table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// The name and the value.
    Line(u8),
    /// Only the name.
    Name(u8),
}

/// The entry at `index`: its name and value.
#[inline]
pub(super) fn entry(index: u64) -> Option<(&'static [u8], &'static [u8])> {
    let index = usize::try_from(index).ok()?;
    TABLE
        .get(index)
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
}

/// The best entry for a line.
#[inline]
pub(super) fn find(name: &[u8], value: &[u8]) -> Option<Match> {
    let mut slot = hash(name);
    let first = loop {
        let index = *INDEX.slots.get(slot)?;
        if index == NONE {
            return None;
        }
        let (candidate, _) = entry(u64::from(index))?;
        if candidate == name {
            break index;
        }
        slot = (slot + 1) % SLOTS;
    };
    let mut index = first;
    while index != NONE {
        let (_, candidate) = entry(u64::from(index))?;
        if candidate == value {
            return Some(Match::Line(index));
        }
        index = *INDEX.next.get(usize::from(index))?;
    }
    Some(Match::Name(first))
}

/// No entry.
const NONE: u8 = u8::MAX;
const SLOTS: usize = 256;

struct Index {
    /// The first entry of each name, at its hash or the next free slot after it.
    slots: [u8; SLOTS],
    /// The next entry with the same name.
    next: [u8; TABLE.len()],
}

static INDEX: Index = index();

/// A hash that keeps the names of the table well apart.
#[expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    reason = "runs at compile time too, where `From` and `get` are not available; each index is below the length"
)]
#[inline]
const fn hash(name: &[u8]) -> usize {
    let length = name.len();
    if length == 0 {
        return 0;
    }
    let (first, middle, last) = (name[0], name[length / 2], name[length - 1]);
    (length * 7 + first as usize * 5 + middle as usize * 37 + last as usize * 11) % SLOTS
}

#[expect(
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "runs at compile time, where an overrun is a compile error"
)]
const fn index() -> Index {
    let mut index = Index {
        slots: [NONE; SLOTS],
        next: [NONE; TABLE.len()],
    };
    let mut i = 0;
    while i < TABLE.len() {
        let name = TABLE[i].0.as_bytes();
        let mut slot = hash(name);
        while index.slots[slot] != NONE
            && !equal(TABLE[index.slots[slot] as usize].0.as_bytes(), name)
        {
            slot = (slot + 1) % SLOTS;
        }
        if index.slots[slot] == NONE {
            index.slots[slot] = i as u8;
        } else {
            let mut last = index.slots[slot] as usize;
            while index.next[last] != NONE {
                last = index.next[last] as usize;
            }
            index.next[last] = i as u8;
        }
        i += 1;
    }
    index
}

#[expect(clippy::indexing_slicing, reason = "runs at compile time")]
const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

const TABLE: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    (
        "strict-transport-security",
        "max-age=31536000; includesubdomains",
    ),
    (
        "strict-transport-security",
        "max-age=31536000; includesubdomains; preload",
    ),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    (
        "content-security-policy",
        "script-src 'none'; object-src 'none'; base-uri 'none'",
    ),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

#[cfg(test)]
mod tests {
    use super::{Match, SLOTS, TABLE, entry, find, hash};

    #[test]
    fn every_line_finds_itself() {
        for (index, (name, value)) in TABLE.iter().enumerate() {
            let index = u8::try_from(index).unwrap();
            assert_eq!(
                find(name.as_bytes(), value.as_bytes()),
                Some(Match::Line(index))
            );
            let first = TABLE.iter().position(|(other, _)| other == name).unwrap();
            assert_eq!(
                find(name.as_bytes(), b"no such value"),
                Some(Match::Name(u8::try_from(first).unwrap()))
            );
        }
    }

    #[test]
    fn other_names_are_not_found() {
        for name in ["", ":", "x-custom", ":authorit", "cookie2", "Cookie"] {
            assert_eq!(find(name.as_bytes(), b""), None);
        }
        assert_eq!(entry(99), None);
        assert_eq!(entry(u64::MAX), None);
    }

    #[test]
    fn names_are_found_in_few_steps() {
        let mut names: Vec<_> = TABLE.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        let mut hashes: Vec<_> = names.iter().map(|name| hash(name.as_bytes())).collect();
        assert!(hashes.iter().all(|hash| *hash < SLOTS));
        hashes.sort_unstable();
        hashes.dedup();
        assert!(
            hashes.len() * 10 >= names.len() * 8,
            "{} of {}",
            hashes.len(),
            names.len()
        );
    }
}
