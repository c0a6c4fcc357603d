//! Where a session works.

use serde_json::{Value, json};

use crate::driver::{Client, Driver};
use crate::lab::Lab;
use crate::server::{Server, ask, asks, say};

with_both_clients!(a_session_works_elsewhere, what_is_no_directory_is_refused);

fn a_session_works_elsewhere(client: Client) {
    let looks = [
        ("bash", json!({"command": "pwd", "description": "Look"})),
        ("read", json!({"file_path": "here.txt"})),
    ];
    let server = Server::scripted(&[
        asks(&looks),
        say("in sub"),
        ask("read", json!({"file_path": "here.txt"})),
        say("still"),
    ]);
    let lab = Lab::new();
    lab.put("here.txt", "above\n");
    lab.put("sub/here.txt", "below\n");
    lab.put("sub/deep/x.txt", "");
    let (workspace, sub) = (path(&lab, ""), path(&lab, "sub"));
    let mut driver = Driver::start(client);
    driver.open("a", &lab.unfenced(&server)).ok();
    assert_eq!(driver.directory("a", "s"), workspace);
    assert_eq!(driver.change_directory("a", "s", "sub/deep").ok(), path(&lab, "sub/deep"));
    assert_eq!(driver.change_directory("a", "s", "..").ok(), sub);
    assert_eq!(driver.directory("a", "s"), sub);
    let results = driver.run("a", "s", "look").results();
    assert!(results[0].contains(sub.as_str().expect("a path")), "{results:?}");
    assert!(results[1].contains("below"), "{results:?}");
    // Another session of the runtime stays where it began.
    assert_eq!(driver.directory("a", "other"), workspace);
    driver.close("a");

    driver.open("b", &lab.options(&server)).ok();
    driver.resume("b", "s").ok();
    assert_eq!(driver.directory("b", "s"), sub);
    let results = driver.run("b", "s", "look again").results();
    assert!(results[0].contains("below"), "{results:?}");
    driver.close("b");
    assert_eq!(lab.log("s").header["cwd"], workspace);
}

fn what_is_no_directory_is_refused(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("here")]));
    lab.put("file.txt", "");
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    let workspace = path(&lab, "");
    for wrong in ["missing", "file.txt"] {
        let refused = driver.change_directory("a", "s", wrong);
        assert_eq!(refused.refusal(), format!("working-directory: directory does not exist: \"{wrong}\""));
        assert_eq!(driver.directory("a", "s"), workspace);
    }
    assert_eq!(driver.run("a", "s", "where?").text, "here");
    driver.close("a");
}

fn path(lab: &Lab, below: &str) -> Value {
    let folder = lab.workspace();
    let folder = if below.is_empty() { folder } else { folder.join(below) };
    folder.display().to_string().into()
}
