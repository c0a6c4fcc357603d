//! The real program under the clients that the DeepSeek Harness has published, as their users install them.
//!
//! What must hold: the packages are unchanged; every story is told with both clients; every test has a home, a
//! workspace and a server of its own; every wait is bounded; nothing is left running.
//!
//! `LORIMER_TEST_PYTHON` is a Python that has the one client, `LORIMER_TEST_NODE_MODULES` a folder whose `node_modules`
//! has the other. `scripts/test` installs both.

/// A module for each client with a test of each of these stories.
macro_rules! with_both_clients {
    ($($story:ident),* $(,)?) => {
        mod python {
            with_both_clients!(@tests Python $($story)*);
        }
        mod node {
            with_both_clients!(@tests Node $($story)*);
        }
    };
    (@tests $client:ident $($story:ident)*) => {
        $(#[test]
        #[ignore = "needs pip and npm packages; run scripts/test"]
        fn $story() {
            super::$story(crate::driver::Client::$client);
        })*
    };
}

mod beginnings;
mod directories;
mod driver;
mod ends;
mod failures;
mod lab;
#[path = "../cli/log.rs"]
#[expect(dead_code, reason = "what the command line's tests need is more")]
mod log;
mod resuming;
mod run;
#[path = "../cli/server.rs"]
#[expect(dead_code, reason = "what the command line's tests need is more")]
mod server;
mod turns;
