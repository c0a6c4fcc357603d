//! `cargo xtask tidy`: checks of the repository that no compiler makes.

mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::tidy(),
        _ => {
            report("usage: cargo xtask tidy");
            ExitCode::from(2)
        }
    }
}

/// Says something to whoever runs the check.
fn report(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}
