#!/usr/bin/env bash
# The entry point of an image for the QUIC Interop Runner: it maps test cases to flags of our programs.
#
# ROLE, TESTCASE, REQUESTS, SSLKEYLOGFILE and QLOGDIR come from the environment, files lie in /www, /downloads and
# /certs. It ends with 127 for a test case that isn't supported.
set -u
bin=${BIN:-/usr/local/bin} www=${WWW:-/www} downloads=${DOWNLOADS:-/downloads} certs=${CERTS:-/certs}
listen=${LISTEN:-[::]:443}
testcase=${TESTCASE:-}

has() { "$bin/quic-$ROLE" --help | grep -q -- "$1\b"; }
# flag FLAG [VALUE]: a flag that the test case can't do without.
flags=()
flag() {
  has "$1" || exit 127
  flags+=("$@")
}

# Other ports of this machine's addresses, one of each family, for clients to move to.
prefer() {
  local address v4='' v6=''
  for address in ${ADDRESSES:-$(hostname -I)}; do
    case $address in
      *:*) v6=${v6:-[$address]:4443} ;;
      *) v4=${v4:-$address:4443} ;;
    esac
  done
  for address in $v4 $v6; do flag --preferred-address "$address"; done
}

alpn=hq-interop
case $testcase in
  handshake | transfer | multiplexing | longrtt | multiconnect | ipv6 | goodput | crosstraffic | blackhole) ;;
  handshakeloss | handshakecorruption | transferloss | transfercorruption | amplificationlimit) ;;
  ecn | rebind-port | rebind-addr) ;;
  http3) alpn=h3 ;;
  chacha20) flag --cipher chacha20 ;;
  retry) [ "$ROLE" = client ] || flag --retry ;;
  keyupdate) [ "$ROLE" = server ] || flag --key-update ;;
  resumption) [ "$ROLE" = server ] || flag --resume ;;
  zerortt) [ "$ROLE" = server ] || flag --0rtt ;;
  v2) if [ "$ROLE" = client ]; then flag --first-version v1; fi; flag --quic-versions v2,v1 ;;
  connectionmigration) [ "$ROLE" = client ] || prefer ;;
  *) exit 127 ;;
esac

[ -x /setup.sh ] && /setup.sh
case ${ROLE:-} in
  server)
    exec "$bin/quic-server" --dir "$www" --listen "$listen" --cert "$certs/cert.pem" --key "$certs/priv.key" \
      --alpn "h3,hq-interop" "${flags[@]}"
    ;;
  client)
    [ -x /wait-for-it.sh ] && /wait-for-it.sh sim:57832 -s -t 30
    fetch() {
      local url arguments=()
      for url in "$@"; do arguments+=("$url"); done
      for url in "$@"; do arguments+=(-o "$downloads/${url##*/}"); done
      "$bin/quic-client" --insecure --timeout 50 --alpn "$alpn" "${flags[@]}" "${arguments[@]}"
    }
    read -ra requests <<<"${REQUESTS:-}"
    case $testcase in
      multiconnect | handshakeloss | handshakecorruption)
        for request in "${requests[@]}"; do fetch "$request" || exit 1; done
        ;;
      *) fetch "${requests[@]}" || exit 1 ;;
    esac
    ;;
  *) echo "ROLE is neither client nor server" >&2; exit 1 ;;
esac
