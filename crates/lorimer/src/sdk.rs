//! `lorimer sdk`: agents for a program, over standard input and output.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lorimer_agent::Agent;
use lorimer_model::{DEEPSEEK_ROUTE, Provider};
use lorimer_rpc::wire::InitializeParams;
use lorimer_rpc::{Channels, Host, Route, RpcError, ServerOptions};
use lorimer_session::{Session, Store};
use tokio_util::sync::CancellationToken;

use crate::exit::{CommandError, Exit};
use crate::settings::{Settings, nearest};
use crate::signals::{Ending, Signals};
use crate::{compose, routes};

/// Another name of `deepseek-official`.
const DEEPSEEK: &str = "deepseek";

/// Serves one client until it is done.
///
/// # Errors
/// When it cannot begin.
pub fn serve(home: &Path, settings: Settings, cwd: &Path) -> Result<Exit, CommandError> {
    let output = take_stdout().map_err(|error| CommandError::failed(format!("cannot start: {error}")))?;
    let options = ServerOptions {
        max_frame_bytes: usize::try_from(settings.rpc_max_frame_bytes).unwrap_or(usize::MAX),
        max_queued_bytes: usize::try_from(settings.rpc_max_queued_bytes).unwrap_or(usize::MAX),
        shutdown_grace_ms: settings.rpc_shutdown_grace_ms,
    };
    let store = compose::store(&settings, home);
    let host: Arc<dyn Host> =
        Arc::new(Program { home: home.to_owned(), settings, cwd: cwd.to_owned(), store });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::failed(format!("cannot start: {error}")))?;
    let exit = runtime.block_on(serve_until_signal(host, output, options));
    // Whatever a tool still does in the background ends with the process.
    runtime.shutdown_background();
    exit
}

/// SIGTERM and SIGHUP end everything in order, exit 0; SIGINT the same, exit 130. A second signal does not wait.
async fn serve_until_signal(
    host: Arc<dyn Host>,
    output: File,
    options: ServerOptions,
) -> Result<Exit, CommandError> {
    let failed = |error: std::io::Error| CommandError::failed(format!("cannot start: {error}"));
    let mut signals = Signals::listen().map_err(failed)?;
    let stop = CancellationToken::new();
    let serving = lorimer_rpc::serve(host, Stdin, output, options, stop.clone());
    tokio::pin!(serving);
    let mut exit = Exit::Completed;
    loop {
        tokio::select! {
            biased;
            served = &mut serving => return served.map(|()| exit).map_err(failed),
            signal = signals.next() => {
                if signal == Ending::Interrupt {
                    exit = signal.exit();
                }
                if stop.is_cancelled() {
                    return Ok(exit);
                }
                stop.cancel();
            }
        }
    }
}

/// Keeps standard output for frames: whatever else writes there, a library or a panic, reaches standard error instead.
fn take_stdout() -> std::io::Result<File> {
    let kept = rustix::io::fcntl_dupfd_cloexec(std::io::stdout().as_fd(), 3)?;
    rustix::stdio::dup2_stdout(std::io::stderr().as_fd())?;
    Ok(File::from(kept))
}

/// Standard input without a lock or a buffer of its own.
struct Stdin;

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match rustix::io::read(rustix::stdio::stdin(), &mut *buffer) {
                // Whoever shares the pipe may have made it non-blocking.
                Err(rustix::io::Errno::AGAIN) => {
                    let stdin = rustix::stdio::stdin();
                    let mut wanted = [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN)];
                    rustix::event::poll(&mut wanted, None)?;
                }
                read => return Ok(read?),
            }
        }
    }
}

/// The program around the protocol.
struct Program {
    home: PathBuf,
    settings: Settings,
    /// The process's own directory.
    cwd: PathBuf,
    store: Store,
}

impl Host for Program {
    fn program(&self) -> (&str, &str) {
        ("lorimer", env!("CARGO_PKG_VERSION"))
    }

    fn route(&self, params: &InitializeParams, max_tokens: Option<u64>) -> Result<Route, RpcError> {
        let named = match (&params.provider, &params.model) {
            (None, None) => self.settings.model.clone(),
            (None, Some(model)) => format!("{}/{model}", self.configured_provider()),
            (Some(provider), None) => provider.clone(),
            (Some(provider), Some(model)) => format!("{provider}/{model}"),
        };
        let settings = Settings { model: named, ..self.settings.clone() };
        let chosen = self.choose(&settings, params.provider.as_deref())?;
        check_model(chosen.provider.as_ref(), &chosen.model)?;
        check_effort(chosen.provider.as_ref(), &chosen.model, params.reasoning_effort.as_deref())?;
        let cwd = self.cwd.join(params.cwd.as_deref().unwrap_or("."));
        let cwd =
            std::fs::canonicalize(&cwd).and_then(|real| std::fs::read_dir(&real).map(|_| real)).map_err(
                |error| RpcError::new(format!("initialize cannot work in {}: {error}", cwd.display())),
            )?;
        Ok(Route {
            cwd,
            provider: chosen.provider.id().to_owned(),
            model: chosen.model,
            reasoning_effort: params.reasoning_effort.clone(),
            max_tokens,
            permission_mode: params.permission_mode.unwrap_or(self.settings.permission_mode),
        })
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn agent(
        &self,
        route: &Route,
        workspace: &Path,
        session: Arc<Session>,
        channels: Channels,
    ) -> Result<Agent, RpcError> {
        let settings = Settings {
            model: format!("{}/{}", route.provider, route.model),
            effort: route.reasoning_effort.clone().or_else(|| self.settings.effort.clone()),
            max_tokens: route.max_tokens.or(self.settings.max_tokens),
            permission_mode: route.permission_mode,
            ..self.settings.clone()
        };
        let chosen = compose::choose(&settings, &self.home).map_err(told)?;
        let composed = compose::agent(chosen, &settings, &self.home, workspace, session, &channels);
        Ok(composed.map_err(told)?.agent)
    }
}

impl Program {
    fn configured_provider(&self) -> &str {
        lorimer_model::split_route(&self.settings.model).0
    }

    fn choose(&self, settings: &Settings, provider: Option<&str>) -> Result<compose::Chosen, RpcError> {
        compose::choose(settings, &self.home).map_err(|error| {
            let known = routes::providers(&self.settings, &self.home).ok();
            let ids: Vec<String> = known
                .iter()
                .flat_map(|known| known.iter().map(|provider| provider.id().to_owned()))
                .collect();
            match provider {
                // The text begins as DSH's.
                Some(name) if !ids.iter().any(|id| id == name) && name != DEEPSEEK => {
                    let near = nearest(name, ids.iter().map(String::as_str).chain([DEEPSEEK]));
                    let near = near.map(|near| if near == DEEPSEEK { DEEPSEEK_ROUTE } else { near });
                    let offered = offer(near, &ids);
                    RpcError::new(format!("no adapter registered for provider \"{name}\" ({offered})"))
                }
                _ => told(error),
            }
        })
    }
}

/// A provider that lists its models has no others.
fn check_model(provider: &dyn Provider, model: &str) -> Result<(), RpcError> {
    let resolved = provider.resolve(model).map_err(|error| RpcError::new(error.to_string()))?;
    let known: Vec<String> = provider.models().into_iter().map(|model| model.id).collect();
    // A script of the offline provider is a path.
    if known.is_empty() || known.contains(&resolved.id) || provider.id() == "offline" {
        return Ok(());
    }
    let id = provider.id();
    let offered = offer(nearest(model, known.iter().map(String::as_str)), &known);
    Err(RpcError::new(format!(
        "provider \"{id}\" has no model \"{model}\" ({offered}); list it under [[providers.{id}.models]] in config.toml to use it"
    )))
}

fn check_effort(provider: &dyn Provider, model: &str, effort: Option<&str>) -> Result<(), RpcError> {
    let Some(effort) = effort else { return Ok(()) };
    let offered = provider.resolve(model).map(|info| info.efforts).unwrap_or_default();
    if offered.iter().any(|one| one == effort) {
        return Ok(());
    }
    let offered = match offered.is_empty() {
        true => "it has none; leave it out".to_owned(),
        false => offer(nearest(effort, offered.iter().map(String::as_str)), &offered),
    };
    // The text begins as DSH's.
    Err(RpcError::new(format!(
        "provider \"{}\" model \"{model}\" does not support reasoning effort \"{effort}\" ({offered})",
        provider.id(),
    )))
}

/// The nearest valid name, and all of them.
fn offer(near: Option<&str>, known: &[String]) -> String {
    let near = near.map(|near| format!("did you mean \"{near}\"? ")).unwrap_or_default();
    format!("{near}there are: {}", known.join(", "))
}

fn told(error: CommandError) -> RpcError {
    RpcError::new(error.message)
}
