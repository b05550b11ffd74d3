// Package resolv reads and sets the DNS configuration of a link in systemd-resolved,
// over org.freedesktop.resolve1(5), and queries nameservers.
//
// It sets nameservers and search domains of one link and flushes the caches.
// It never touches the default-route flag, routing domains, LLMNR, multicast
// DNS, DNSSEC, DNS over TLS or resolv.conf, and never calls RevertLink, which
// would also revert what NetworkManager has set.
package resolv
