//! The commands, one module each.

pub mod demo;
pub mod models;
pub mod run;
pub mod sessions;
