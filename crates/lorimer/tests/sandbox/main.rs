//! The sandbox through the real program: commands that try to get out, in every mode, with every backend, as root and as
//! somebody else.
#![cfg(target_os = "linux")]

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

const ATTACK: &str = include_str!("attack.sh");
/// Somebody without rights.
const NOBODY: u32 = 65534;

/// A workspace in the middle of things that must stay as they are.
struct Field {
    root: TempDir,
    /// Whose everything is and who runs.
    user: Option<u32>,
}

impl Field {
    fn new(user: Option<u32>) -> Self {
        let root = tempfile::Builder::new().prefix("field-").tempdir_in("/var/tmp").expect("a folder");
        let field = Self { root, user };
        for folder in ["home/.lorimer/sessions/p/other", "ws/.git/hooks", "ws/.lorimer", "ws/sub", "outside"]
        {
            std::fs::create_dir_all(field.path(folder)).expect("a folder");
        }
        for (file, text) in [
            ("outside/victim", "as it was"),
            ("ws/kept", "as it was"),
            ("ws/.git/config", "[core]\n"),
            ("ws/.lorimer/config.toml", ""),
            ("ws/.bashrc", ""),
            ("home/.lorimer/credentials.toml", "[keys]\nDEEPSEEK_API_KEY = \"secret-key\"\n"),
            ("home/.lorimer/sessions/p/other/session.jsonl", "{}\n"),
        ] {
            std::fs::write(field.path(file), text).expect("a file");
        }
        let keys = field.path("home/.lorimer/credentials.toml");
        std::fs::set_permissions(keys, PermissionsExt::from_mode(0o600)).expect("private");
        field.give_away(&field.root());
        std::fs::set_permissions(field.root(), PermissionsExt::from_mode(0o755)).expect("readable");
        field
    }

    fn root(&self) -> PathBuf {
        self.root.path().to_owned()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn give_away(&self, path: &Path) {
        let Some(user) = self.user else { return };
        chown(path, Some(user), Some(user)).expect("given away");
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.give_away(&entry.path());
            } else {
                chown(entry.path(), Some(user), Some(user)).expect("given away");
            }
        }
    }

    /// Starts the program on one command in a mode. It waits for its task.
    fn start(&self, settings: &[&str], mode: &str) -> Child {
        let script = self.path("script.json");
        let call =
            json!({"name": "bash", "arguments": {"command": "bash ../command.sh", "description": "Get out"}});
        std::fs::write(&script, json!({"turns": [{"calls": [call]}, {"text": "alive"}]}).to_string())
            .expect("a script");
        let mut program = Command::new(env!("CARGO_BIN_EXE_lorimer"));
        program.args(["run", "--json", "--permission-mode", mode]);
        for setting in settings {
            program.args(["-c", setting]);
        }
        program.args(["-m", &format!("offline/{}", script.display()), "-"]);
        program.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", self.path("home"));
        program.current_dir(self.path("ws"));
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(user) = self.user {
            program.uid(user).gid(user);
        }
        program.spawn().expect("the program starts")
    }

    /// Gives the program its task: to run this.
    fn go(&self, child: &mut Child, command: &str) {
        std::fs::write(self.path("command.sh"), command).expect("a command");
        let mut stdin = child.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut stdin, b"get out").expect("it reads");
    }

    /// Runs one command in a mode and returns its result as the model reads it.
    fn command(&self, settings: &[&str], mode: &str, command: impl Fn(u32) -> String) -> String {
        let mut child = self.start(settings, mode);
        let command = command(child.id());
        self.go(&mut child, &command);
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout);
        let events: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let errors = String::from_utf8_lossy(&output.stderr);
        let answer = events.last().unwrap_or_else(|| panic!("no result line: {errors}"));
        assert_eq!(answer["text"], "alive", "{said} {errors}");
        let result = events.iter().find(|event| event["type"] == "tool/result").expect("a result");
        result["data"]["message"]["content"][0]["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Lets the attack loose and returns what it said.
    fn attack(&self, backend: &str, mode: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = self.path("outside/socket");
        let local = UnixListener::bind(&socket).expect("a socket");
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o777)).expect("open to all");
        let port = listener.local_addr().expect("an address").port();
        let other = self.path("home/.lorimer/sessions/p/other/session.jsonl");
        let text = self.command(&[&backend_of(backend)], mode, |harness| {
            format!(
                "set -- '{}' {harness} {port} '{}' '{}' {mode}\n{ATTACK}",
                self.path("outside").display(),
                socket.display(),
                other.display()
            )
        });
        drop(local);
        std::fs::remove_file(socket).expect("it is still there");
        text
    }

    fn assert_untouched(&self, what: &str) {
        let mut victim = String::new();
        let mut file = std::fs::File::open(self.path("outside/victim")).expect("it is there");
        file.read_to_string(&mut victim).expect("readable");
        assert_eq!(victim, "as it was", "{what}");
        assert_eq!(std::fs::read_dir(self.path("outside")).expect("a folder").count(), 1, "{what}");
        assert_eq!(std::fs::read_to_string(self.path("ws/kept")).expect("there"), "as it was", "{what}");
        for (file, text) in
            [("ws/.git/config", "[core]\n"), ("ws/.bashrc", ""), ("ws/.lorimer/config.toml", "")]
        {
            assert_eq!(std::fs::read_to_string(self.path(file)).expect("there"), text, "{what}: {file}");
        }
        let hooks = std::fs::read_dir(self.path("ws/.git/hooks")).expect("there");
        assert_eq!(hooks.count(), 0, "{what}");
        let other = self.path("home/.lorimer/sessions/p/other/session.jsonl");
        assert_eq!(std::fs::read_to_string(other).expect("there"), "{}\n", "{what}");
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whoever runs the tests and, when that is root, somebody without rights.
fn users() -> Vec<Option<u32>> {
    if is_root() { vec![None, Some(NOBODY)] } else { vec![None] }
}

fn works(backend: &str) -> bool {
    let doctor = Command::new(env!("CARGO_BIN_EXE_lorimer")).arg("doctor").output().expect("it runs");
    let wanted = format!("ok  confining commands with {backend} works");
    String::from_utf8_lossy(&doctor.stdout).lines().any(|line| line == wanted)
}

fn backend_of(name: &str) -> String {
    format!("sandbox.backend={name}")
}

/// Where a backend does not work, nothing runs.
fn commands_are_refused(backend: &str) {
    let said =
        Field::new(None).command(&[&backend_of(backend)], "workspace-write", |_| "echo ran".to_owned());
    assert!(said.starts_with("Error: commands cannot be confined here: "), "{said}");
}

fn nothing_gets_out(backend: &str) {
    for user in users() {
        for mode in ["read-only", "workspace-write"] {
            let field = Field::new(user);
            let said = field.attack(backend, mode);
            let what = format!("{backend}, {mode}, user {user:?}: {said}");
            assert!(said.contains("all tried"), "{what}");
            assert!(!said.contains("ESCAPED"), "{what}");
            field.assert_untouched(&what);
        }
    }
}

#[test]
fn nothing_gets_out_of_landlock() {
    if works("landlock") {
        nothing_gets_out("landlock");
    } else {
        commands_are_refused("landlock");
    }
}

#[test]
#[ignore = "needs bubblewrap; run scripts/test"]
fn nothing_gets_out_of_bubblewrap() {
    assert!(works("bubblewrap"), "bubblewrap is installed and this system gives namespaces");
    nothing_gets_out("bubblewrap");
}

/// A program of the name in a folder that commands can write in is not taken for bubblewrap.
#[test]
fn a_planted_program_is_not_run() {
    let field = Field::new(None);
    let planted = field.path("ws/bwrap");
    std::fs::write(&planted, "#!/bin/sh\ntouch ../outside/planted\n").expect("a file");
    std::fs::set_permissions(&planted, PermissionsExt::from_mode(0o755)).expect("a program");
    let path = format!("{}:/usr/bin:/bin", field.path("ws").display());
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_lorimer"));
    doctor.arg("doctor").env("PATH", path).env("HOME", field.path("home")).current_dir(field.path("ws"));
    doctor.output().expect("it runs");
    assert!(!field.path("outside/planted").exists());
}

/// Work that people expect to go on inside.
const WORK: &str = r#"
set -e
echo text > file && cat file && mkdir folder && mv file folder/ && ln -s folder/file link && cat link
echo t > "$TMPDIR/t" && cat "$TMPDIR/t"
cat <<END
here
END
git init -q inner && git -C inner -c user.name=n -c user.email=e commit -q --allow-empty -m m && git -C inner log --oneline | wc -l
python3 -c "import multiprocessing, threading, subprocess; multiprocessing.Lock(); print(subprocess.run(['echo', 'sub'], capture_output=True).stdout)"
(sleep 0.01 & wait) && echo waited
exec 3<>/dev/null && echo null
"#;

fn work_goes_on(backend: &str) {
    for user in users() {
        let field = Field::new(user);
        let said = field.command(&[&backend_of(backend)], "workspace-write", |_| WORK.to_owned());
        assert_eq!(said, "text\ntext\nt\nhere\n1\nb'sub\\n'\nwaited\nnull\n", "{backend}, user {user:?}");
    }
}

#[test]
fn work_goes_on_in_landlock() {
    if works("landlock") {
        work_goes_on("landlock");
    } else {
        commands_are_refused("landlock");
    }
}

#[test]
#[ignore = "needs bubblewrap; run scripts/test"]
fn work_goes_on_in_bubblewrap() {
    work_goes_on("bubblewrap");
}

/// Whether a process runs whose arguments hold this text.
fn runs(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|arguments| String::from_utf8_lossy(&arguments).contains(text))
}

fn wait_until(what: impl Fn() -> bool) -> bool {
    let limit = Instant::now() + Duration::from_secs(60);
    while Instant::now() < limit {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

fn nothing_outlives_the_harness(backend: &str) {
    let field = Field::new(None);
    let mut child = field.start(&[&backend_of(backend)], "workspace-write");
    // Numbers that no other process sleeps for.
    let (left, stayed) = (format!("30{}.5", child.id()), format!("31{}.5", child.id()));
    field.go(&mut child, &format!("setsid sleep {left} & (setsid sleep {left} &)\nsleep {stayed}"));
    assert!(wait_until(|| runs(&left) && runs(&stayed)), "the commands run");
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(wait_until(|| !runs(&left) && !runs(&stayed)), "the commands are gone");
}

#[test]
fn nothing_outlives_the_harness_in_landlock() {
    if works("landlock") {
        nothing_outlives_the_harness("landlock");
    } else {
        commands_are_refused("landlock");
    }
}

#[test]
#[ignore = "needs bubblewrap; run scripts/test"]
fn nothing_outlives_the_harness_in_bubblewrap() {
    nothing_outlives_the_harness("bubblewrap");
}

fn the_network_is_a_setting(backend: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let field = Field::new(None);
    let connect = |network: &str| {
        let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
        let settings = [backend_of(backend), format!("sandbox.network={network}")];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        field.command(&settings, "workspace-write", |_| command.clone())
    };
    assert_eq!(connect("true"), "connected\n");
    assert!(!connect("false").contains("connected\n"));
}

#[test]
fn the_network_is_a_setting_in_landlock() {
    if works("landlock") {
        the_network_is_a_setting("landlock");
    } else {
        commands_are_refused("landlock");
    }
}

#[test]
#[ignore = "needs bubblewrap; run scripts/test"]
fn the_network_is_a_setting_in_bubblewrap() {
    the_network_is_a_setting("bubblewrap");
}
