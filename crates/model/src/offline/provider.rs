//! [`OfflineProvider`]: replies without a key or a network.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lorimer_protocol::StreamChunk;
use tokio_util::sync::CancellationToken;

use super::planner::next_turn;
use super::play::{failed, play, turn_chunks};
use super::script::Script;
use crate::{ChunkStream, ModelError, ModelInfo, ModelRequest, Provider};

/// Route id of the models that need no network.
pub const OFFLINE_ROUTE: &str = "offline";
/// The default model: it plans its replies from the conversation by fixed rules.
pub const PLANNER_MODEL: &str = "planner";

/// Another name of the planner.
const DEMO_MODEL: &str = "demo";
/// Window in tokens of the offline models.
const CONTEXT_WINDOW_TOKENS: u64 = 1_000_000;

/// The models `planner` (also called `demo`) and, under any other id, the script in the file of that name.
///
/// Deterministic: equal requests get equal replies, but for the failures that a script plans by the number of the
/// request, counted from the start of the provider.
#[derive(Debug, Default)]
pub struct OfflineProvider {
    requests: Mutex<HashMap<PathBuf, u64>>,
}

impl OfflineProvider {
    /// A provider that has not been asked for anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a request to a script; the first one is 1.
    fn count(&self, path: &Path) -> u64 {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let count = requests.entry(path.to_owned()).or_default();
        *count += 1;
        *count
    }

    fn chunks(&self, request: &ModelRequest) -> Vec<StreamChunk> {
        let model = request.config.model.as_str();
        if is_planner(model) {
            return turn_chunks(&next_turn(request), request);
        }
        let path = Path::new(model);
        match load(path) {
            Ok(script) => script.chunks(request, self.count(path)),
            Err(error) => failed(error.failure()),
        }
    }
}

fn is_planner(model: &str) -> bool {
    model.is_empty() || model == PLANNER_MODEL || model == DEMO_MODEL
}

fn load(path: &Path) -> Result<Script, ModelError> {
    Script::load(path).map_err(|reason| ModelError::Unusable { provider: OFFLINE_ROUTE.to_owned(), reason })
}

fn info(id: &str, name: String, context_window: u64) -> ModelInfo {
    ModelInfo {
        id: id.to_owned(),
        name,
        context_window: Some(context_window),
        default_max_tokens: None,
        efforts: Vec::new(),
        default_effort: None,
        accepts_images: false,
        prices: None,
    }
}

fn planner_info() -> ModelInfo {
    info(PLANNER_MODEL, "Offline planner".to_owned(), CONTEXT_WINDOW_TOKENS)
}

impl Provider for OfflineProvider {
    fn id(&self) -> &str {
        OFFLINE_ROUTE
    }

    fn name(&self) -> &str {
        "Offline"
    }

    fn models(&self) -> Vec<ModelInfo> {
        vec![planner_info()]
    }

    fn missing(&self) -> Option<ModelError> {
        None
    }

    fn resolve(&self, model: &str) -> Result<ModelInfo, ModelError> {
        if is_planner(model) {
            return Ok(planner_info());
        }
        let path = Path::new(model);
        let script = load(path)?;
        let name =
            path.file_name().map_or_else(|| model.to_owned(), |name| name.to_string_lossy().into_owned());
        Ok(info(model, name, script.context_window.unwrap_or(CONTEXT_WINDOW_TOKENS)))
    }

    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ChunkStream {
        play(self.chunks(&request), cancel)
    }
}
