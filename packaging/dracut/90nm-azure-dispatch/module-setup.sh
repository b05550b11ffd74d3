#!/bin/bash
# Reports to Azure why a boot failed in the initrd. Included in every initrd that dracut builds if the program is
# installed; nm-azure-report-generator decides at boot.

check() {
    require_binaries /usr/libexec/nm-azure-dispatch systemctl journalctl
}

depends() {
    echo systemd network
}

# Images are rarely built on Azure, so dracut would not find these drivers on the build machine.
installkernel() {
    hostonly='' instmods hv_netvsc hv_utils mana
}

install() {
    inst_multiple /usr/libexec/nm-azure-dispatch systemctl journalctl
    inst_simple "$moddir/nm-azure-report-failure.service" "$systemdsystemunitdir/nm-azure-report-failure.service"
    inst_simple "$moddir/nm-azure-report-failure.timer" "$systemdsystemunitdir/nm-azure-report-failure.timer"
    inst_script "$moddir/nm-azure-report-generator" "$systemdutildir/system-generators/nm-azure-report-generator"
}
