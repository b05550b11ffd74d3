// Package resolv reads and sets what systemd-resolved holds for a link, over
// org.freedesktop.resolve1 (see org.freedesktop.resolve1(5)), and asks
// nameservers whether they answer.
//
// It sets nameservers and search domains of one link and flushes the caches.
// It never touches the default-route flag, routing domains, LLMNR, multicast
// DNS, DNSSEC, DNS over TLS or resolv.conf, and never calls RevertLink, which
// would take along what NetworkManager has set.
package resolv
