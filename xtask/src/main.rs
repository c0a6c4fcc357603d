//! `cargo xtask`: checks of the repository that no compiler makes, and a trial against a real server.

mod real_model;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, [])) if command == "tidy" => tidy::tidy(),
        Some((command, rest)) if command == "real-model" => real_model::real_model(rest),
        _ => {
            report(
                "usage: cargo xtask tidy\n       cargo xtask real-model [--lorimer BIN] [--python PYTHON]",
            );
            ExitCode::from(2)
        }
    }
}

/// Says something to whoever runs the check.
fn report(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}
