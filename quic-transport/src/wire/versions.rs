//! The versions that an endpoint speaks, in its order
//! ([RFC 9368, section 2](https://www.rfc-editor.org/rfc/rfc9368#section-2)).

use super::version::Version;

/// As many as there are to choose from.
const MOST: usize = 2;

/// Some of the versions that there are, each once, most wanted first.
///
/// All of them are compatible with each other: a first flight of one can be taken for one of another (RFC 9369, 4).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    list: [Version; MOST],
    count: usize,
}

impl Versions {
    /// Version 1, and version 2 if the other end wants it.
    pub const DEFAULT: Self = Self {
        list: [Version::V1, Version::V2],
        count: 2,
    };

    /// These versions, most wanted first; `None` when there is none, one that isn't known, or one that comes twice.
    #[must_use]
    pub fn new(versions: &[Version]) -> Option<Self> {
        let known = Self::known(versions.iter().copied());
        (known.count == versions.len() && known.count > 0).then_some(known)
    }

    /// Those of `versions` that are known.
    pub(crate) fn known(versions: impl IntoIterator<Item = Version>) -> Self {
        let mut known = Self {
            list: [Version::NEGOTIATION; MOST],
            count: 0,
        };
        for version in versions {
            if version.is_known()
                && !known.contains(version)
                && let Some(place) = known.list.get_mut(known.count)
            {
                *place = version;
                known.count += 1;
            }
        }
        known
    }

    /// The versions, most wanted first.
    pub fn iter(&self) -> impl Iterator<Item = Version> + use<> {
        self.list.into_iter().take(self.count)
    }

    /// Whether `version` is one of them.
    #[must_use]
    pub fn contains(&self, version: Version) -> bool {
        self.iter().any(|ours| ours == version)
    }

    /// The most wanted of those that are in `offered`, too.
    pub(crate) fn choose(&self, offered: &Self) -> Option<Version> {
        self.iter().find(|version| offered.contains(*version))
    }
}

impl Default for Versions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl std::fmt::Debug for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|version| version.to_string()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Version, Versions};

    const OTHER: Version = Version(7);

    #[test]
    fn a_list_has_known_versions_once_each() {
        let both = Versions::new(&[Version::V2, Version::V1]).unwrap();
        assert!(both.iter().eq([Version::V2, Version::V1]));
        assert!(!both.contains(OTHER));
        for wrong in [
            &[][..],
            &[OTHER],
            &[Version::V1, OTHER],
            &[Version::V1, Version::V1],
        ] {
            assert_eq!(Versions::new(wrong), None, "{wrong:?}");
        }
        let reserved = Version::reserved(3);
        let known = Versions::known([reserved, Version::V1, OTHER, Version::V1]);
        assert_eq!(Some(known), Versions::new(&[Version::V1]));
        assert_eq!(format!("{both:?} {known:?}"), r#"["v2", "v1"] ["v1"]"#);
    }

    #[test]
    fn ones_own_order_decides() {
        let one = |version| Versions::new(&[version]).unwrap();
        let two_first = Versions::new(&[Version::V2, Version::V1]).unwrap();
        assert_eq!(two_first.choose(&Versions::DEFAULT), Some(Version::V2));
        assert_eq!(Versions::DEFAULT.choose(&two_first), Some(Version::V1));
        assert_eq!(two_first.choose(&one(Version::V1)), Some(Version::V1));
        assert_eq!(one(Version::V2).choose(&one(Version::V1)), None);
    }
}
