//! The commands, one module each.

pub mod config;
pub mod demo;
pub mod doctor;
pub mod login;
pub mod models;
pub mod run;
pub mod sessions;
pub mod trust;
