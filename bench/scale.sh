#!/usr/bin/env bash
# How training scales with the number of ranks: the six applications at batches of several sizes on each rank, and three
# models of bench/portfolio at minibatches. Prints a table, and writes all of it as CSV. Before a rate counts, some batches
# are trained: all ranks must have the same parameters, and the loss of one rank with their batches joined, of held-out
# sentences or of the last step. It needs built programs only: no Go, no MPI.
#
#   bench/scale.sh 1 2 4 8                   # ranks, each with its own GPU
#   LAUNCH="mpirun -n" VPPS_DEVICE=cpu bench/scale.sh 1 2
#   LAUNCH="torchrun --no-python --nproc-per-node" bench/scale.sh 1 2 4 8
#
# APPS, BATCHES, SECONDS_EACH, UPDATES, SIZE (of hidden states and embeddings), MODELS, MINIBATCHES, STEPS, B (the programs'
# folder), DATA and CSV choose what and where. GRADIENTS="fp32 bf16" has several ranks exchange gradients in both formats, one
# row each. Without LAUNCH the ranks are started here, by torchrun's variables.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${APPS=treelstm rvnn tdrnn tdlstm bilstm bilstm_char}" "${BATCHES:=1 16 128}" "${SECONDS_EACH:=2}" "${UPDATES:=20}" "${SIZE:=256}"
: "${MODELS=language_model_256 transformer gru_tagger}" "${MINIBATCHES:=16 64}" "${STEPS:=20}"
: "${GRADIENTS:=${VPPS_COMM_GRADIENTS:-fp32}}"
: "${B:=build}" "${DATA:=cpp_examples/data}" "${CSV:=$B/scale.csv}" "${LAUNCH:=}" "${FIRST_PORT:=29600}"
export VPPS_COMM_GRADIENTS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- 1 2

# Starts ranks, and waits for them. Rank 0's output is in $work/0; all of it is shown if one fails.
start() { # RANKS COMMAND...
	local n=$1 rank pids=() failed=0
	shift
	rm -f "$work"/[0-9]*
	if [ "$n" = 1 ]; then
		"$@" >"$work/0" 2>"$work/0.err" || failed=1
	elif [ -n "$LAUNCH" ]; then
		# shellcheck disable=SC2086 # a command and its flags
		$LAUNCH "$n" "$@" >"$work/0" 2>"$work/0.err" || failed=1
	else
		echo . >>"$work/starts"
		PORT=$((FIRST_PORT + $(wc -l <"$work/starts"))) # no rank of a run before can disturb
		for ((rank = 0; rank < n; rank++)); do
			RANK=$rank WORLD_SIZE=$n LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT \
				"$@" >"$work/$rank" 2>"$work/$rank.err" &
			pids+=($!)
		done
		for rank in "${pids[@]}"; do wait "$rank" || failed=1; done
	fi
	[ "$failed" = 0 ] || { echo "$n ranks: $*"; tail -n 5 "$work"/[0-9]*; return 1; } >&2
}
data() { case $1 in bilstm*) echo "--tags $DATA/tags" ;; *) echo "--trees $DATA" ;; esac; }
# As deep as a sentence is long, these need small steps: else a rounding error grows to another model.
rate() { case $1 in tdrnn | tdlstm) echo 0.001 ;; *) echo 0.01 ;; esac; }
train() { # RANKS APP BATCH: trains, and prints the held-out loss
	# shellcheck disable=SC2046 # flags
	start "$1" "$B/$2" $(data "$2") --hidden "$SIZE" --embed "$SIZE" --batch-size "$3" --updates "$UPDATES" \
		--learning-rate "$(rate "$2")" --curve "$work/curve" || return 1
	awk -F, '{ loss = $(NF - 1) } END { print loss }' "$work/curve"
}
measure() { # RANKS APP BATCH: prints sentences/s: the median, the slowest and the fastest window; and the device
	# shellcheck disable=SC2046
	start "$1" "$B/$2" $(data "$2") --hidden "$SIZE" --embed "$SIZE" --measure "$SECONDS_EACH" --batch-sizes "$3" --csv || return 1
	tail -n 1 "$work/0" | sed -E 's/"([^"]*)"/X/; t; d' | awk -F, '{ printf "%s %s %s ", $9, $10, $11 }'
	tail -n 1 "$work/0" | sed -E 's/[^"]*"([^"]*)".*/\1/'
}

# A model's row of bench/portfolio, and behind it the ranks' checksum.
portfolio() { # RANKS MODEL BATCH STEPS
	start "$1" "$B/bench/portfolio" --vpps-data-parallel --models "$2" --batches "$3" --steps "$4" || return 1
	cat "$work/0"
}
loss_of_model() { portfolio "$@" | awk -F, 'NF == 8 { print $8 }'; }

echo "app,device,launcher,size,batch,ranks,sentences_per_s,slowest,fastest,times_one_rank,loss,loss_of_one,checksum,gradients" >"$CSV"
printf '%-18s %6s %6s %9s %12s %22s %8s  %s\n' app batch ranks gradients sentences/s "slowest .. fastest" "x 1 rank" "loss, one rank's, checksum"
same_parameters() { # RANKS APP: prints the ranks' checksum
	[ "$1" -gt 1 ] || { echo -; return; }
	sed -n "s/^$1 ranks have the same parameters, checksum //p" "$work/0" | grep . ||
		{ echo "$2: nothing says that $1 ranks have the same parameters" >&2; return 1; }
}
equal() { # APP LOSS RANKS BATCH LOSS_OF_ONE
	awk -v a="$2" -v b="$5" -v half="$([ "$VPPS_COMM_GRADIENTS" != bf16 ] || echo 1)" \
		'BEGIN { d = (a - b) / b; most = half ? 1e-2 : 1e-3; exit !(b > 0 && d > -most && d < most) }' ||
		{ echo "$1: loss $2 of $3 ranks with batches of $4, $5 of one rank with their batches joined" >&2; return 1; }
}
row() { # APP DEVICE SIZE BATCH RANKS MEDIAN SLOWEST FASTEST LOSS LOSS_OF_ONE CHECKSUM
	[ "$5" = 1 ] && one=$6
	local times
	times=$(awk -v a="$6" -v b="$one" 'BEGIN { if (b > 0) printf "%.2f", a / b; else print "-" }')
	printf '%-18s %6d %6d %9s %12.0f %10s .. %8s %8s  %s %s %s\n' "$1" "$4" "$5" "$VPPS_COMM_GRADIENTS" "$6" "${7%.*}" "${8%.*}" "$times" "${@:9}"
	echo "$1,\"$2\",$([ "$5" = 1 ] || echo "${LAUNCH:-none}"),$3,$4,$5,$6,$7,$8,$times,$9,${10},${11},$VPPS_COMM_GRADIENTS" >>"$CSV"
}
# What numbers of ranks and formats there are, as "2 bf16". One rank exchanges nothing.
runs() {
	local n format
	for n in "$@"; do
		for format in $GRADIENTS; do
			echo "$n $format"
			[ "$n" -gt 1 ] || break
		done
	done
}

for app in $APPS; do
	for batch in $BATCHES; do
		one=
		while read -r n VPPS_COMM_GRADIENTS <&3; do
			loss=$(train "$n" "$app" "$batch") || exit 1
			checksum=$(same_parameters "$n" "$app") || exit 1
			joined=$loss
			[ "$n" = 1 ] || { joined=$(train 1 "$app" $((batch * n))) && equal "$app" "$loss" "$n" "$batch" "$joined"; } || exit 1
			read -r median slowest fastest device < <(measure "$n" "$app" "$batch")
			row "$app" "$device" "$SIZE" "$batch" "$n" "$median" "$slowest" "$fastest" "$loss" "$joined" "$checksum"
		done 3< <(runs "$@")
	done
done
device=$("$B/vpps-info" | sed -n 's/^device: *//p')
for model in $MODELS; do
	for batch in $MINIBATCHES; do
		one=
		while read -r n VPPS_COMM_GRADIENTS <&3; do
			loss=$(loss_of_model "$n" "$model" "$batch" 1) || exit 1
			checksum=$(same_parameters "$n" "$model") || exit 1
			joined=$loss
			[ "$n" = 1 ] || { joined=$(loss_of_model 1 "$model" $((batch * n)) 1) && equal "$model" "$loss" "$n" "$batch" "$joined"; } || exit 1
			rate=$(portfolio "$n" "$model" "$batch" "$STEPS" | awk -F, -v n="$n" 'NF == 8 { printf "%.1f", 1e3 * n * $4 / $5 }') || exit 1
			row "$model" "$device" - "$batch" "$n" "$rate" - - "$loss" "$joined" "$checksum"
		done 3< <(runs "$@")
	done
done
