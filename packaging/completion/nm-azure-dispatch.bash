# bash completion for nm-azure-dispatch(8). A test compares the words with the program's --help.
_nm_azure_dispatch() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=
	case $prev in
	--interface) words=$(cd /sys/class/net 2>/dev/null && echo *) ;;
	--name | --reason | --server | --timeout) return ;;
	*)
		case ${COMP_WORDS[1]} in
		check-in) words='--force --server --timeout --help' ;;
		doctor) words='--json --interface --name --help' ;;
		report-failure) words='--reason --failed-units --timeout --help' ;;
		status) words='--json --help' ;;
		version) words='--help' ;;
		hook) return ;;
		esac
		[ "$COMP_CWORD" -gt 1 ] || words='check-in doctor hook report-failure status version --help --version'
		;;
	esac
	# shellcheck disable=SC2207 # no word has a space in it
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _nm_azure_dispatch nm-azure-dispatch
