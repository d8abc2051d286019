//! Reading a command line: one that makes no sense ends the program with one line, like every other failure.

use std::io::Write as _;

use clap::Parser;

/// The exit code of a command line that makes no sense.
const WRONG: i32 = 2;

/// The program's command line. Ends the program when it is wrong, also by `check`, or asks for help.
pub(super) fn from_arguments<P: Parser>(check: impl FnOnce(&P) -> Result<(), String>) -> P {
    let line = match P::try_parse() {
        Ok(arguments) => match check(&arguments) {
            Ok(()) => return arguments,
            Err(line) => line,
        },
        // Help and the version, which are asked for.
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => in_one_line(&error.render().to_string()),
    };
    let program = P::command();
    let program = program.get_name();
    // With stderr gone there is nobody to tell.
    drop(writeln!(
        std::io::stderr(),
        "{program}: {line} (see {program} --help)"
    ));
    std::process::exit(WRONG)
}

/// What is wrong, without the advice that follows.
fn in_one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let first: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    let line = first.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::in_one_line;
    use crate::cli::{Client, Server};

    #[test]
    fn what_is_wrong_is_one_line() {
        let server = |arguments: &[&str]| {
            let all = std::iter::once(&"quic-server").chain(arguments);
            let error = Server::try_parse_from(all).unwrap_err();
            in_one_line(&error.render().to_string())
        };
        for (arguments, expected) in [
            (&["--nope"][..], "unexpected argument '--nope' found"),
            (
                &[],
                "the following required arguments were not provided: <--dir <DIR>|--test-resources>",
            ),
            (
                &["--dir", ".", "--alpn", "x"],
                "invalid value 'x' for '--alpn <NAME>' [possible values: h3, hq-interop]",
            ),
        ] {
            assert_eq!(server(arguments), expected);
        }
        let error = Client::try_parse_from(["quic-client", "a"]).unwrap_err();
        let line = in_one_line(&error.render().to_string());
        assert!(
            line.ends_with("not a URL (it begins with https://)"),
            "{line}"
        );
    }
}
