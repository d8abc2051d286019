# Writes docs/interop.md from the cells' results. Part of `run`, whose variables it uses.

# The cell of ROLE PEER FEATURE as it stands in the table; failures are numbered in $notes.
notes=()
cell_text=''
cell() {
  local file=$WORK/cells/$1.$2.$3/result what=server
  cell_text=''
  [ "$1" = server ] && what=client
  if ! is_possible "$3"; then
    cell_text="no switch"
  elif [ -s "$file" ]; then
    local result; result=$(cat "$file")
    if [ "$result" = pass ]; then cell_text=pass; return; fi
    local finding=${FINDING[$2.$what.$3]:-}
    notes+=("**${TITLE[$3]}**, our $1 with $2: ${result#fail }${finding:+. Found: $finding}")
    cell_text="**fail** [${#notes[@]}]"
  elif [ -z "${CAN[$2.$what.$3]:-}" ]; then
    cell_text="-"
  else
    cell_text="not run"
  fi
}

table() { # ROLE PEER...
  local role=$1 peer feature; shift
  printf '| |'; printf ' %s |' "$@"; printf '\n|---|'; printf ' --- |%.0s' "$@"; echo
  for feature in "${FEATURES[@]}"; do
    printf '| %s |' "${TITLE[$feature]}"
    for peer in "$@"; do
      if [ "$peer" = ours ] && [ ! -s "$WORK/cells/$role.ours.$feature/result" ]; then
        printf ' no switch |'
      else
        cell "$role" "$peer" "$feature"; printf ' %s |' "$cell_text"
      fi
    done
    echo
  done
}

# What a peer is, in the words of its own README.
origin() {
  sed -n 's/^[^:]*: \([^;]*\);.*/\1/p' "$PEERS/$1/README" 2>/dev/null | head -n 1
}

mkdir -p "$root/docs"
servers=() clients=()
for peer in "${present[@]}"; do
  has_role "$peer" server && servers+=("$peer")
  has_role "$peer" client && clients+=("$peer")
done
{
  cat <<'HEAD'
# Interoperability

Written by `quic-bin/interop/run`, which says how to run it again. A cell passes when every file has arrived byte for
byte, the client has ended without an error, and our own qlog shows what the row is about: the Retry packet, the key
phase, the validated path, and so on (`quic-bin/interop/features.sh`). All runs are over loopback on one machine. Rows
speak hq-interop, or HTTP/3 where that is all that the peer speaks.

"-": the peer, or the program around it, doesn't have the feature. "no switch": our programs have no option for it.

HEAD
  echo "## Our client, with the servers of others"
  echo
  table client ours "${servers[@]}"
  echo
  if [ ${#clients[@]} -gt 0 ]; then
    echo "## Our server, with the clients of others"
    echo
    table server "${clients[@]}"
    echo
  fi
  if [ ${#notes[@]} -gt 0 ]; then
    echo "## Failures"
    echo
    number=0
    for note in "${notes[@]}"; do
      number=$((number + 1))
      echo "$number. $note"
    done
    echo
  fi
  echo "## Peers"
  echo
  for peer in "${present[@]}"; do echo "- $peer: $(origin "$peer")"; done
  for peer in "${missing[@]}"; do echo "- $peer: missing in this run"; done
} >"$root/docs/interop.md"
echo "written: docs/interop.md"
