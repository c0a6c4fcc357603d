# Every way out that is known, one after the other. Whatever succeeds says ESCAPED.
# Arguments: a folder outside, the process id of the harness, the port of a listener, the path of a local socket, another
# session's log, the mode.
outside=$1 harness=$2 port=$3 socket=$4 other_log=$5 mode=$6
out() { echo "ESCAPED: $1"; }
tried() { echo "tried: $1"; }

tried "writing outside"
echo x 2>/dev/null > "$outside/new" && out "new file outside"
echo x 2>/dev/null >> "$outside/victim" && out "append outside"
rm -f "$outside/victim" 2>/dev/null && [ ! -e "$outside/victim" ] && out "removal outside"
mv "$outside/victim" "$outside/moved" 2>/dev/null && out "rename outside"
truncate -s 0 "$outside/victim" 2>/dev/null && out "truncation outside"
chmod 0777 "$outside/victim" 2>/dev/null && out "mode outside"
touch -d 2001-01-01 "$outside/victim" 2>/dev/null && out "time outside"
mkdir "$outside/folder" 2>/dev/null && out "folder outside"
mknod "$outside/device" c 1 3 2>/dev/null && out "device outside"

tried "links"
ln -s "$outside" link 2>/dev/null
echo x 2>/dev/null > link/new && out "through a link"
ln "$outside/victim" hard 2>/dev/null && echo x >> hard && out "through a hard link"
echo x 2>/dev/null > "sub/../../outside/new" && out "through .."

tried "processes"
echo x 2>/dev/null > "/proc/self/root$outside/new" && out "through /proc/self/root"
echo x 2>/dev/null > "/proc/self/cwd/../outside/new" && out "through /proc/self/cwd"
echo x 2>/dev/null > "/proc/$harness/root$outside/new" && out "through the harness's root"
ls "/proc/$harness/fd" >/dev/null 2>&1 && for fd in "/proc/$harness/fd/"*; do
  echo x 2>/dev/null >> "$fd" && case "$(readlink "$fd")" in /*session.jsonl) out "the harness's log descriptor" ;; esac
done
head -c 1 "/proc/$harness/environ" >/dev/null 2>&1 && out "the harness's environment"
head -c 1 "/proc/$harness/mem" >/dev/null 2>&1 && out "the harness's memory"
kill -0 "$harness" 2>/dev/null && out "a signal to the harness"
kill -KILL "$harness" 2>/dev/null && out "killing the harness"
for fd in /proc/self/fd/*; do
  case "$(readlink "$fd" 2>/dev/null)" in "$outside"* | *session.jsonl | *session.lock) out "an open descriptor: $fd" ;; esac
done

tried "mounts and namespaces"
mount -t tmpfs none /mnt 2>/dev/null && out "mount"
mount -o remount,rw / 2>/dev/null && out "remount"
umount "$PWD" 2>/dev/null && out "umount"
unshare -Urm sh -c 'mount -t tmpfs none /mnt' 2>/dev/null && out "mount in a namespace"
chroot / true 2>/dev/null && out "chroot"

tried "rights"
grep -q '^NoNewPrivs:[[:space:]]*1' /proc/self/status || out "programs can gain rights"
su -c true root </dev/null 2>/dev/null && [ "$(id -u)" != 0 ] && out "su"
command -v sudo >/dev/null && sudo -n true 2>/dev/null && [ "$(id -u)" != 0 ] && out "sudo"
LD_PRELOAD=/nonexistent.so sh -c "echo x > '$outside/new'" 2>/dev/null && out "with LD_PRELOAD"

tried "what stays read-only inside"
for file in .git/hooks/pre-commit .git/config .lorimer/config.toml .bashrc; do
  echo x 2>/dev/null >> "$file" && out "changed $file"
done
mv .git moved-git 2>/dev/null && { out "moved .git away"; mv moved-git .git; }
rm -rf .git/hooks 2>/dev/null && [ ! -d .git/hooks ] && out "removed the hooks"
[ "$mode" = read-only ] && echo x 2>/dev/null > inside && out "a file in a read-only workspace"

tried "sessions and keys"
echo x 2>/dev/null >> "$DSH_SESSION_JSONL" && out "the session's own log"
rm -f "$DSH_SESSION_JSONL" 2>/dev/null && [ ! -e "$DSH_SESSION_JSONL" ] && out "removed the own log"
echo x 2>/dev/null >> "$other_log" && out "another session's log"
grep -q secret-key "$HOME/.lorimer/credentials.toml" 2>/dev/null && out "the stored keys"

python3 - "$harness" "$port" "$socket" <<'PY'
import ctypes
import os
import resource
import socket
import sys

harness, port, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)


def attempt(what, action):
    print("tried:", what)
    try:
        if action():
            print("ESCAPED:", what)
    except OSError:
        pass


def connect(family, address):
    with socket.socket(family) as client:
        client.settimeout(2)
        client.connect(address)
    return True


PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
attempt("ptrace", lambda: libc.ptrace(PTRACE_ATTACH, harness, 0, 0) == 0 or libc.ptrace(PTRACE_SEIZE, harness, 0, 0) == 0)
attempt("a connection", lambda: connect(socket.AF_INET, ("127.0.0.1", port)))
attempt("a local socket", lambda: connect(socket.AF_UNIX, path))
attempt("a datagram", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)) == 1)
attempt("a datagram of a pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt("limits of the harness", lambda: resource.prlimit(harness, resource.RLIMIT_NOFILE, (64, 64)) is not None)
attempt("a terminal", lambda: any(os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY) for number in range(32)))
attempt("io_uring", lambda: libc.syscall(425, 8, ctypes.create_string_buffer(256)) >= 0)
attempt("bpf", lambda: libc.syscall(321, 0, 0, 0) >= 0)
attempt("a raw disk", lambda: any(os.open("/dev/" + name, os.O_RDWR) for name in ("vda", "sda", "mem")))
PY
echo "all tried"
