#!/bin/bash
# A boot that fails in the initrd tells Azure why. In every initrd that dracut makes where the program is installed;
# nm-azure-report-generator decides at boot.

check() {
    require_binaries /usr/libexec/nm-azure-dispatch systemctl journalctl
}

depends() {
    echo systemd network
}

# An image is seldom made on Azure, so these would not be found on the machine that makes it.
installkernel() {
    hostonly='' instmods hv_netvsc hv_utils mana
}

install() {
    inst_multiple /usr/libexec/nm-azure-dispatch systemctl journalctl
    inst_simple "$moddir/nm-azure-report-failure.service" "$systemdsystemunitdir/nm-azure-report-failure.service"
    inst_simple "$moddir/nm-azure-report-failure.timer" "$systemdsystemunitdir/nm-azure-report-failure.timer"
    inst_script "$moddir/nm-azure-report-generator" "$systemdutildir/system-generators/nm-azure-report-generator"
}
