# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The jobs of scripts/test. Parts register them, with the builds that each needs; then
# run_jobs() runs them, PARALLEL at a time, builds first and long ones before short ones.
# Their output is shown as they end. How long each took is kept for the next time.
#
# Variables are shared with scripts/test.
# shellcheck disable=SC2034,SC2153,SC2154

# Guests at a time: each wants two processors, and mostly waits for one.
PARALLEL=2

DURATIONS=$KV_CACHE/durations

# One entry for each job: its name; "build" or "check"; the indices of the builds that it
# waits for; the command, quoted; the slots that it takes; and its state, one of waiting,
# running, done, failed and cut (a build that it needs has failed).
job_name=() job_kind=() job_needs=() job_command=() job_slots=() job_state=()
job_started=() job_took=()
declare -A job_of_pid build_index last_took

# The builds that jobs registered from now on need; parts begin with none.
needs=()

# add_job <kind> <slots> "<needs>" <name> <command>
add_job() {
	local kind=$1 slots=$2 needed=$3 name=$4
	shift 4
	job_name+=("$name")
	job_kind+=("$kind")
	job_slots+=("$slots")
	job_needs+=("$needed")
	printf -v "job_command[${#job_command[@]}]" '%q ' "$@"
	job_state+=(waiting)
}

# spawn <name> <command>: a check, to be run beside others.
spawn() {
	add_job check 1 "${needs[*]-}" "$@"
}

# spawn_guest <what it shows> <arguments of check_guest>
spawn_guest() {
	spawn "$1" check_guest "$@"
}

# spawn_guest_alone: the same, for one that wants the whole machine.
spawn_guest_alone() {
	add_job check $PARALLEL "${needs[*]-}" "$1" check_guest "$@"
}

# build_job "<needs>" <name> <command>: something that checks registered after it in the same
# part need. One of this name is registered once. It needs other builds only if they are named.
build_job() {
	local index=${build_index[$2]:-}
	if [ -z "$index" ]; then
		add_job build 1 "$@"
		index=$((${#job_name[@]} - 1))
		build_index[$2]=$index
	fi
	needs+=("$index")
}

read_durations() {
	local seconds name
	[ -r "$DURATIONS" ] || return 0
	while read -r seconds name; do
		last_took[$name]=$seconds
	done <"$DURATIONS"
}

# Those of jobs that were not run this time are kept.
write_durations() {
	local i
	for i in "${!job_took[@]}"; do
		[ "${job_state[i]}" != 'done' ] || last_took[${job_name[i]}]=${job_took[i]}
	done
	mkdir -p "$KV_CACHE"
	for i in "${!last_took[@]}"; do
		echo "${last_took[$i]} $i"
	done | sort -rn >"$DURATIONS.$$"
	mv "$DURATIONS.$$" "$DURATIONS"
}

# Sets ready, unless one of the builds that the job needs is not done. Cuts the job if one
# has failed.
job_ready() {
	local i=$1 need
	ready=true
	for need in ${job_needs[i]}; do
		case ${job_state[need]} in
		done) ;;
		failed | cut)
			job_state[i]='cut'
			ready=false
			check_failed "not run, for a build failed: ${job_name[i]}"
			return ;;
		*) ready=false ;;
		esac
	done
}

# Sets next to the job to be started, or to nothing: a build, one at a time, for each uses
# all processors; or the check that took longest the last time. Those that never ran come
# first.
next_job() {
	local i took most=-1
	next=''
	for i in "${!job_name[@]}"; do
		[ "${job_state[i]}" = waiting ] || continue
		job_ready "$i"
		$ready || continue
		if [ "${job_kind[i]}" = build ]; then
			! $building || continue
			next=$i
			return
		fi
		took=${last_took[${job_name[i]}]:-100000}
		# At the end, when nothing is beside them.
		[ "${job_slots[i]}" -eq 1 ] || took=0
		if [ "$took" -gt "$most" ]; then
			most=$took next=$i
		fi
	done
}

start_job() {
	local i=$1 last=${last_took[${job_name[$1]}]:-} left=0 seconds=0 j
	job_state[i]=running
	[ "${job_kind[i]}" != build ] || building=true
	job_started[i]=$SECONDS
	for j in "${!job_name[@]}"; do
		[ "${job_state[j]}" = waiting ] || continue
		left=$((left + 1))
		seconds=$((seconds + ${last_took[${job_name[j]}]:-30}))
	done
	say "[$((SECONDS - started)) s] ${job_name[i]}${last:+ (last time $last s)};" \
		"$left left, some $((seconds / PARALLEL)) s"
	(
		KV_TALLY=$work/tally-$i
		: >"$KV_TALLY"
		eval "${job_command[i]}"
	) >"$work/job-$i.out" 2>&1 9>&- &
	job_of_pid[$!]=$i
	slots_used=$((slots_used + job_slots[i]))
}

end_job() {
	local i=$1 status=$2
	job_took[i]=$((SECONDS - job_started[i]))
	slots_used=$((slots_used - job_slots[i]))
	[ "${job_kind[i]}" != build ] || building=false
	job_state[i]='done'
	cat "$work/job-$i.out"
	cat "$work/tally-$i" >>"$run_tally"
	if [ "$status" -eq 0 ] && [ ! -s "$work/tally-$i" ]; then
		echo "it has checked nothing"
		status=1
	fi
	[ "$status" -ne 0 ] || return 0
	job_state[i]=failed
	grep -q '^failed ' "$work/tally-$i" ||
		check_failed "ended with status $status: ${job_name[i]}"
}

run_jobs() {
	local pid status next ready building=false
	slots_used=0
	read_durations
	while :; do
		next_job
		while [ -n "$next" ] && [ $((slots_used + job_slots[next])) -le $PARALLEL ]; do
			start_job "$next"
			next_job
		done
		[ $slots_used -gt 0 ] || break
		status=0
		wait -n -p pid || status=$?
		# The one that measures the machine's speed is no job.
		[ -n "${job_of_pid[$pid]:-}" ] || continue
		end_job "${job_of_pid[$pid]}" $status
	done
	write_durations
}

slowest_jobs() {
	local i
	echo "The slowest parts, in seconds:"
	for i in "${!job_took[@]}"; do
		printf '%6d  %s\n' "${job_took[i]}" "${job_name[i]}"
	done | sort -rn | head -n 10 || true
}
