//! The Python client in `clients/python` on the program: its own tests, which need python3 only.

use std::path::Path;
use std::process::Command;

#[test]
fn the_python_client_passes_its_tests() {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    let ran = Command::new("python3")
        .args(["-B", "-W", "error", "-m", "unittest", "discover", "-s", "tests"])
        .current_dir(&client)
        .env("LORIMER_TEST_BINARY", env!("CARGO_BIN_EXE_lorimer"))
        .output()
        .expect("python3 starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
