package boottest

import (
	"context"
	"os"
)

// startContainer starts systemd-nspawn. It ends with 133 when the guest reboots.
func startContainer(ctx context.Context, w *world, c Config) error {
	for name, text := range map[string]string{"cmdline": c.Cmdline, "asset_tag": c.AssetTag} {
		if err := os.WriteFile(w.path("shared/"+name), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	const loop = `while :; do "$@" </dev/null; [ $? = 133 ] || exit 1; done`
	nspawn := w.command(context.WithoutCancel(ctx), "sh", "-c", loop, "sh", "env", "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1",
		"systemd-nspawn", "--quiet", "--directory="+scratch+"/root", "--settings=no", "--register=no", "--keep-unit",
		"--machine=guest", "--capability=all", "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe",
		"--kill-signal=SIGRTMIN+3", "--network-bridge=br0", "--bind="+scratch+"/shared:/boottest",
		ourDir+roleInit)
	if err := startLogged(w, nspawn); err != nil {
		return err
	}
	go func() { _ = nspawn.Wait() }() // it ends with the world
	return nil
}
