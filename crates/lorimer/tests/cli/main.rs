//! The real program against scripted model servers, real files and real processes.
//!
//! What must hold: every test has a home, a workspace and a server of its own, so that all can run at once; nothing
//! leaves the machine; nothing depends on how long anything takes.

mod config;
mod demo;
mod dsh_grammar;
mod faults;
mod files;
mod forks;
mod help;
mod images;
mod imports;
mod input;
mod lab;
mod limits;
mod log;
mod outcomes;
mod permissions;
mod prefix;
mod protocols;
mod replay;
mod scenarios;
mod secrets;
mod server;
mod sessions;
mod shell;
mod signals;
mod streams;
mod usage;
mod watched;
mod window;
