//! Sockets of services that act for whoever asks: a command that reaches one acts with the service's rights.

use std::path::PathBuf;

/// Below `/run`. Container engines, the system's and the person's service managers and message buses.
const CONTROL: [&str; 12] = [
    "docker.sock",
    "podman/podman.sock",
    "containerd/containerd.sock",
    "crio/crio.sock",
    "dbus/system_bus_socket",
    "systemd/private",
    "systemd/io.systemd.Manager",
    "snapd.socket",
    "snapd-snap.socket",
    "libvirt/libvirt-sock",
    "libvirt/virtqemud-sock",
    "cloud-init/share/hotplug.sock",
];

/// Below `/run/user/<id>`.
const PERSONAL: [&str; 4] = ["bus", "systemd/private", "podman/podman.sock", "docker.sock"];

/// The control sockets that are here.
pub(super) fn control_sockets() -> Vec<PathBuf> {
    let personal = PathBuf::from("/run/user").join(rustix::process::getuid().as_raw().to_string());
    let system = CONTROL.iter().map(|name| PathBuf::from("/run").join(name));
    let own = PERSONAL.iter().map(|name| personal.join(name));
    system.chain(own).filter(|path| path.exists()).collect()
}
