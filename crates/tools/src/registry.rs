//! Which tools an agent sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::erased::{ErasedTool, erase};
use crate::tool::Tool;

/// Reserved for the transport of code mode.
const RESERVED: &str = "run_code";

/// A tool that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegistryError {
    /// The name is taken for everyone.
    #[error("tool \"{0}\" is already registered (for a variant of one agent, register it for that agent)")]
    Duplicate(String),
    /// The name is taken in this scope.
    #[error("tool \"{0}\" is already registered in this scope")]
    DuplicateInScope(String),
    /// The name belongs to code mode.
    #[error(
        "tool name \"{RESERVED}\" is reserved for the Code Mode presentation transport and cannot be registered or shadowed"
    )]
    Reserved,
    /// A timeout of zero.
    #[error("tool \"{0}\" timeoutMs must be a positive finite number")]
    Timeout(String),
}

/// Filters what an agent inherits from everyone. Its own tools are not filtered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restriction {
    /// Only these, when given.
    pub allow: Option<Vec<String>>,
    /// Never these.
    pub deny: Vec<String>,
}

impl Restriction {
    fn admits(&self, name: &str) -> bool {
        self.allow.as_ref().is_none_or(|allowed| allowed.iter().any(|other| other == name))
            && !self.deny.iter().any(|other| other == name)
    }
}

/// Tools for everyone, tools for one agent, and what an agent is denied.
#[derive(Clone, Default)]
pub struct Registry {
    everyone: Vec<Arc<dyn ErasedTool>>,
    by_agent: BTreeMap<String, Vec<Arc<dyn ErasedTool>>>,
    restrictions: BTreeMap<String, Vec<Restriction>>,
}

impl Registry {
    /// Adds a tool for every agent.
    ///
    /// # Errors
    /// When the name is taken or reserved.
    pub fn register(&mut self, tool: impl Tool) -> Result<(), RegistryError> {
        let tool = admit(tool)?;
        if self.everyone.iter().any(|other| other.name() == tool.name()) {
            return Err(RegistryError::Duplicate(tool.name().to_owned()));
        }
        self.everyone.push(tool);
        Ok(())
    }

    /// Adds a tool for one agent; it shadows a tool of everyone's with the same name.
    ///
    /// # Errors
    /// When the name is taken in this scope, or reserved.
    pub fn register_for(&mut self, agent_id: &str, tool: impl Tool) -> Result<(), RegistryError> {
        let tool = admit(tool)?;
        let scope = self.by_agent.entry(agent_id.to_owned()).or_default();
        if scope.iter().any(|other| other.name() == tool.name()) {
            return Err(RegistryError::DuplicateInScope(tool.name().to_owned()));
        }
        scope.push(tool);
        Ok(())
    }

    /// Takes a tool of every agent away again. `false` when there is none of this name.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.everyone.len();
        self.everyone.retain(|tool| tool.name() != name);
        self.everyone.len() < before
    }

    /// Filters what an agent inherits; several restrictions intersect.
    pub fn restrict(&mut self, agent_id: &str, restriction: Restriction) {
        self.restrictions.entry(agent_id.to_owned()).or_default().push(restriction);
    }

    /// What an agent sees: inherited tools in order of registration, then its own.
    pub fn visible(&self, agent_id: &str) -> Vec<Arc<dyn ErasedTool>> {
        let own = self.by_agent.get(agent_id).map_or(&[][..], Vec::as_slice);
        let restrictions = self.restrictions.get(agent_id).map_or(&[][..], Vec::as_slice);
        self.everyone
            .iter()
            .filter(|tool| restrictions.iter().all(|restriction| restriction.admits(tool.name())))
            .filter(|tool| !own.iter().any(|other| other.name() == tool.name()))
            .chain(own)
            .cloned()
            .collect()
    }

    /// The tool an agent means by a name.
    pub fn find(&self, agent_id: &str, name: &str) -> Option<Arc<dyn ErasedTool>> {
        self.visible(agent_id).into_iter().find(|tool| tool.name() == name)
    }
}

fn admit(tool: impl Tool) -> Result<Arc<dyn ErasedTool>, RegistryError> {
    let tool = erase(tool);
    if tool.name() == RESERVED {
        return Err(RegistryError::Reserved);
    }
    if tool.timeout_ms() == Some(0) {
        return Err(RegistryError::Timeout(tool.name().to_owned()));
    }
    Ok(tool)
}
