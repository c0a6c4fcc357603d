//! Stands for Lorimer in tests: `process-test-helper <script>` runs the script and prints what it printed.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use lorimer_process::{CommandSpec, Runner, Supervisor, scrubbed_env, supervise_if_asked};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    supervise_if_asked();
    let script = std::env::args_os().nth(1).unwrap_or_default();
    match run(script) {
        Ok(text) if std::io::stdout().write_all(text.as_bytes()).is_ok() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn run(script: OsString) -> Result<String, Box<dyn std::error::Error>> {
    let env = scrubbed_env(std::env::vars_os(), &[]);
    let spec = CommandSpec::new(vec!["bash".into(), "-c".into(), script], std::env::current_dir()?, env);
    let runner = Runner::new(Supervisor::this_program()?);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(runtime.block_on(runner.run(spec, CancellationToken::new()))?.stdout.text)
}
