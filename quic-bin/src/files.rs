//! From the path of a request to a file that may be served.
//!
//! The path is decoded first and checked after, and what it names is made canonical, links followed, and must still
//! lie under the root. Only regular files are opened, without waiting: a named pipe or a device never is.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use crate::{content_type, failure::Failure, limits::MAX_PATH_BYTES};

/// A directory whose files are served.
#[derive(Clone, Debug)]
pub struct Root {
    directory: PathBuf,
}

/// A file to be served.
#[derive(Debug)]
pub struct Found {
    /// The file, open for reading.
    pub file: File,
    /// Its size when it was opened.
    pub length: u64,
    /// Its media type.
    pub content_type: &'static str,
}

/// Why nothing is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The path is malformed: status 400.
    BadPath,
    /// There is nothing to be served under that path, or it may not be: status 404.
    NotFound,
    /// The system has no room for another open file: status 503.
    Unavailable,
}

impl Refusal {
    /// The HTTP status that says so.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BadPath => 400,
            Self::NotFound => 404,
            Self::Unavailable => 503,
        }
    }
}

impl Root {
    /// Serves what is under `directory`.
    ///
    /// # Errors
    ///
    /// When it isn't a directory that can be read.
    pub fn new(directory: &Path) -> Result<Self, Failure> {
        let fail = |error| Failure::with_file(directory, &error);
        let canonical = directory.canonicalize().map_err(fail)?;
        fs::read_dir(&canonical).map_err(fail)?;
        Ok(Self {
            directory: canonical,
        })
    }

    /// The file that a request's `:path` names. A directory stands for the `index.html` in it.
    ///
    /// # Errors
    ///
    /// When there is none to be served.
    pub fn find(&self, path: &str) -> Result<Found, Refusal> {
        let mut full = self.directory.clone();
        for segment in decode(path)?.split('/') {
            full.extend(check(segment)?);
        }
        let found = self.canonical(&full)?;
        if found.is_dir() {
            return open(&self.canonical(&found.join("index.html"))?);
        }
        if path
            .split('?')
            .next()
            .is_some_and(|path| path.ends_with('/'))
        {
            return Err(Refusal::NotFound);
        }
        open(&found)
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf, Refusal> {
        let canonical = path.canonicalize().ok().ok_or(Refusal::NotFound)?;
        if canonical.starts_with(&self.directory) {
            Ok(canonical)
        } else {
            Err(Refusal::NotFound)
        }
    }
}

/// Undoes percent-encoding; the query is cut off.
fn decode(path: &str) -> Result<String, Refusal> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if path.len() > MAX_PATH_BYTES || !path.starts_with('/') {
        return Err(Refusal::BadPath);
    }
    let mut bytes = path.bytes();
    let mut decoded = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(Refusal::BadPath);
        };
        decoded.extend(u8::try_from(high << 4 | low));
    }
    String::from_utf8(decoded).ok().ok_or(Refusal::BadPath)
}

/// The name in one decoded segment, if it adds one.
fn check(segment: &str) -> Result<Option<&str>, Refusal> {
    match segment {
        "" | "." => return Ok(None),
        ".." => return Err(Refusal::BadPath),
        _ => {}
    }
    if segment.chars().any(char::is_control) {
        return Err(Refusal::BadPath);
    }
    // Hidden files are not meant for others, but for the one directory that is.
    if segment.starts_with('.') && segment != ".well-known" {
        return Err(Refusal::NotFound);
    }
    // Separators, drives, streams and ignored endings of other systems.
    if segment.contains(['\\', ':']) || cfg!(windows) && segment.ends_with(['.', ' ']) {
        return Err(Refusal::NotFound);
    }
    Ok(Some(segment))
}

fn open(path: &Path) -> Result<Found, Refusal> {
    let not_found = |_: io::Error| Refusal::NotFound;
    // Opening a device can have effects, so it is looked at first, and again once it can't change any more.
    if !fs::symlink_metadata(path).map_err(not_found)?.is_file() {
        return Err(Refusal::NotFound);
    }
    let mut options = OpenOptions::new();
    options.read(true);
    dont_wait(&mut options);
    let file = options.open(path).map_err(|error| refusal(&error))?;
    let metadata = file.metadata().map_err(not_found)?;
    if !metadata.is_file() {
        return Err(Refusal::NotFound);
    }
    Ok(Found {
        file,
        length: metadata.len(),
        content_type: content_type::of(path),
    })
}

/// Whether a file that there is can't be opened for now, or not at all.
fn refusal(error: &io::Error) -> Refusal {
    if is_out_of_room(error) {
        Refusal::Unavailable
    } else {
        Refusal::NotFound
    }
}

#[cfg(unix)]
fn is_out_of_room(error: &io::Error) -> bool {
    use rustix::io::Errno;

    let of_the_kind = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| of_the_kind.contains(&errno))
}

#[cfg(not(unix))]
fn is_out_of_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

#[cfg(unix)]
fn dont_wait(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::OFlags;

    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    if let Ok(flags) = i32::try_from(flags.bits()) {
        options.custom_flags(flags);
    }
}

#[cfg(not(unix))]
const fn dont_wait(_: &mut OpenOptions) {}

#[cfg(test)]
mod tests {
    use std::{fs, io::Read as _, path::PathBuf};

    use super::{Refusal, Root};

    /// A directory that goes with the test.
    struct Base(PathBuf);

    impl Base {
        fn join(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Base {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    /// A directory with some files in it, and a secret beside it.
    fn fixture(name: &str) -> (Base, Root) {
        let base = std::env::temp_dir().join(format!("quic-bin-{name}-{}", std::process::id()));
        let root = base.join("root");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::create_dir_all(root.join("bare")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join(".well-known")).unwrap();
        for (file, text) in [
            ("root/index.html", "home"),
            ("root/a b.txt", "spaced"),
            ("root/ä.txt", "umlaut"),
            ("root/100%.txt", "percent"),
            ("root/sub/index.html", "sub"),
            ("root/sub/deep/x.json", "{}"),
            ("root/.git/config", "hidden"),
            ("root/.well-known/x", "known"),
            ("secret", "secret"),
            ("root-secret", "secret"),
        ] {
            fs::write(base.join(file), text).unwrap();
        }
        let root = Root::new(&root).unwrap();
        (Base(base), root)
    }

    fn read(root: &Root, path: &str) -> Result<String, Refusal> {
        let mut found = root.find(path)?;
        let mut text = String::new();
        found.file.read_to_string(&mut text).unwrap();
        assert_eq!(u64::try_from(text.len()).unwrap(), found.length);
        Ok(text)
    }

    /// A file that can't be opened for want of room is there all the same.
    #[cfg(unix)]
    #[test]
    fn want_of_room_is_not_absence() {
        use rustix::io::Errno;

        for (errno, status) in [
            (Errno::MFILE, 503),
            (Errno::NFILE, 503),
            (Errno::NOENT, 404),
            (Errno::ACCESS, 404),
        ] {
            let error = std::io::Error::from(errno);
            assert_eq!(super::refusal(&error).status(), status);
        }
    }

    #[test]
    fn files_and_indexes_are_found() {
        let (_base, root) = fixture("found");
        for (path, text) in [
            ("/", "home"),
            ("/index.html", "home"),
            ("/index.html?query=/../x", "home"),
            ("/a%20b.txt", "spaced"),
            ("/%C3%A4.txt", "umlaut"),
            ("/100%25.txt", "percent"),
            ("/sub", "sub"),
            ("/sub/", "sub"),
            ("//sub//deep/./x.json", "{}"),
            ("/.well-known/x", "known"),
        ] {
            assert_eq!(read(&root, path).as_deref(), Ok(text), "{path}");
        }
        assert_eq!(
            root.find("/sub/deep/x.json").unwrap().content_type,
            "application/json"
        );
    }

    #[test]
    fn nothing_outside_is_served() {
        let (_base, root) = fixture("outside");
        for path in [
            "/../secret",
            "/%2e%2e/secret",
            "/%2E./secret",
            "/sub/../../secret",
            "/sub/%2e%2e%2f%2e%2e%2fsecret",
            "/..%2fsecret",
            "/../root-secret",
            "/index.html%00",
            "/%00",
            "/index%0a.html",
            "/%",
            "/%2",
            "/%zz",
            "/%ff",
            "index.html",
            "",
            "*",
            "https://a/index.html",
        ] {
            assert_eq!(read(&root, path), Err(Refusal::BadPath), "{path}");
        }
        for path in [
            "/etc/passwd",
            "//etc/passwd",
            "/..\\secret",
            "/..%5csecret",
            "/c:/windows",
            "/.git/config",
            "/missing",
            "/bare",
            "/bare/",
            "/index.html/",
            "/index.html/x",
        ] {
            assert_eq!(read(&root, path), Err(Refusal::NotFound), "{path}");
        }
    }

    #[test]
    fn a_path_may_be_long_but_not_longer() {
        let (_base, root) = fixture("long");
        let path = |bytes: usize| "/".repeat(bytes);
        assert_eq!(
            read(&root, &path(super::MAX_PATH_BYTES)).as_deref(),
            Ok("home")
        );
        assert_eq!(
            read(&root, &path(super::MAX_PATH_BYTES + 1)),
            Err(Refusal::BadPath)
        );
        let name = format!("/{}", "x".repeat(4000));
        assert_eq!(read(&root, &name), Err(Refusal::NotFound));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_inside_only() {
        use std::os::unix::fs::symlink;

        let (base, root) = fixture("links");
        let link = |target: PathBuf, name: &str| {
            let link = base.join("root").join(name);
            drop(fs::remove_file(&link));
            symlink(target, link).unwrap();
        };
        link(base.join("secret"), "out");
        link(base.0.clone(), "up");
        link(PathBuf::from("/dev/zero"), "zero");
        link(base.join("root/sub/deep"), "in");
        assert_eq!(read(&root, "/out"), Err(Refusal::NotFound));
        assert_eq!(read(&root, "/up/secret"), Err(Refusal::NotFound));
        assert_eq!(read(&root, "/zero"), Err(Refusal::NotFound));
        assert_eq!(read(&root, "/in/x.json").as_deref(), Ok("{}"));
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn only_regular_files_are_opened() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};

        let (base, root) = fixture("special");
        let pipe = base.join("root/pipe");
        drop(fs::remove_file(&pipe));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(read(&root, "/pipe"), Err(Refusal::NotFound));
        let everything = Root::new(std::path::Path::new("/")).unwrap();
        for path in ["/dev/zero", "/dev/tty", "/dev/null", "/proc/self/fd/0"] {
            assert_eq!(
                everything.find(path).err(),
                Some(Refusal::NotFound),
                "{path}"
            );
        }
    }

    #[test]
    fn a_root_must_be_a_directory() {
        let (base, _root) = fixture("root");
        assert!(Root::new(&base.join("secret")).is_err());
        assert!(Root::new(&base.join("missing")).is_err());
    }
}
